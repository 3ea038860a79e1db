// Package report writes the results of a run or a replay as JSON: the flows, every counter, and each port's queue. It reads what
// workers have published, and their flow tables; it changes nothing.
package report

import (
	"encoding/json"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/telemetry"
)

// Report is the complete report, totals first. Its metrics have the names of the catalogue in package telemetry.
type Report struct {
	Identity
	Counters telemetry.Values `json:"counters"` // of all ports and workers together
	Ports    []Port           `json:"ports" doc:"All ports."`
	Flows    []Flow           `json:"flows"`
	// FlowsLeft sums up the flows that Flows leaves out; nil if it has all.
	FlowsLeft *FlowsLeft `json:"flows_left_out,omitempty"`
	// Unresponsive are the senders that don't react to notifications.
	Unresponsive []UnresponsiveSender `json:"unresponsive_senders,omitempty"`
	// Histograms are a running gateway's; a replay has none, as its time is not real.
	Histograms []Histogram `json:"histograms,omitempty" doc:"Distributions of values."`
	// BeganMS is the start time in milliseconds since 1970, which the timeline counts from; a replay has none.
	BeganMS  int64   `json:"began_unix_ms,omitempty"`
	Timeline []Depth `json:"timeline,omitempty"`
}

// Port is one port's part.
type Port struct {
	Name      string `json:"name" doc:"Name of the port, or of the histogram."`
	Role      string `json:"role" doc:"Side of the port: fabric, wan or tap."`
	Peer      string `json:"peer" doc:"Port by which the frames leave that this one receives."`
	RateBps   uint64 `json:"rate_bps" doc:"Rate: of a port its configured one, of a flow the measured one, bit/s."`
	KMinBytes uint64 `json:"k_min_bytes"`
	KMaxBytes uint64 `json:"k_max_bytes"`
	// QRefBytes is the depth that the control law keeps, NotifyAboveBytes that from which it notifies; 0 where thresholds apply.
	QRefBytes        uint64 `json:"q_ref_bytes,omitempty" doc:"Depth that the control law keeps; left out where thresholds apply."`
	NotifyAboveBytes uint64 `json:"notify_above_bytes,omitempty" doc:"Depth from which the control law notifies; left out where thresholds apply."`
	CapacityBytes    uint64 `json:"queue_capacity_bytes" doc:"Maximum bytes of a class."`
	// RTTNanoseconds is RTT_est, 0 if not known. RTTSource is its source: configured, passive or stamp.
	RTTNanoseconds          int64  `json:"rtt_estimate_nanoseconds" doc:"RTT_est in force, 0 if it is unknown."`
	RTTSource               string `json:"rtt_source" doc:"Source of RTT_est: configured, passive, stamp."`
	FlowIntervalNanoseconds int64  `json:"flow_interval_nanoseconds" doc:"Minimum time between two notifications of a flow."`
	AdjustedPercent         int    `json:"adjusted_percent" doc:"Percentage by which dynamic adjustment multiplies thresholds and intervals."`
	// DepthBytes and WatermarkBytes are the greatest of all classes.
	DepthBytes     uint64           `json:"queue_depth_bytes"`
	WatermarkBytes uint64           `json:"queue_watermark_bytes" doc:"Maximum depth of a class so far."`
	Queues         []Queue          `json:"queues" doc:"Traffic classes of the port's queue."` // by class, highest priority first
	Counters       telemetry.Values `json:"counters"`
	// Device has the device's own counters, for frames that no worker has seen; a replay has none.
	Device telemetry.Values `json:"device,omitempty"`
	Facts  *Device          `json:"facts,omitempty" doc:"Of the port's device; of a running gateway only."`
}

// Device has the facts of a port's device.
type Device struct {
	Driver    string `json:"driver" doc:"DPDK's name of the driver."`
	Interface string `json:"interface,omitempty" doc:"The kernel's interface behind the device."`
	MAC       string `json:"mac,omitempty" doc:"MAC address of the device."`
	MTU       int    `json:"mtu" doc:"Bytes of an IP packet that the device takes."`
	LinkUp    bool   `json:"link_up" doc:"Whether the port has a link."`
	SpeedBPS  uint64 `json:"speed_bps,omitempty" doc:"Of the link; left out if it isn't known."`
}

// Queue is one traffic class of a port's queue.
type Queue struct {
	Class          string `json:"class"`
	DepthBytes     uint64 `json:"queue_depth_bytes"`
	WatermarkBytes uint64 `json:"queue_watermark_bytes" doc:"Maximum depth of a class so far."`
}

// Gauges are the port's metrics that are not in Counters: its parameters.
func (p *Port) Gauges() telemetry.Values {
	v := telemetry.Values{}
	v.Add(telemetry.RateBPS, "", p.RateBps)
	v.Add(telemetry.KMinBytes, "", p.KMinBytes)
	v.Add(telemetry.KMaxBytes, "", p.KMaxBytes)
	v.Add(telemetry.QueueCapacityBytes, "", p.CapacityBytes)
	v.Add(telemetry.RTTEstimate, "", uint64(p.RTTNanoseconds))
	v.Add(telemetry.FlowInterval, "", uint64(p.FlowIntervalNanoseconds))
	v.Add(telemetry.AdjustedPercent, "", uint64(p.AdjustedPercent))
	return v
}

// Depth is a port's queue at a moment of a run.
type Depth struct {
	MS         int64  `json:"ms"` // since the run began
	Port       string `json:"port"`
	DepthBytes uint64 `json:"depth_bytes"`
}

// SetTimeline adds the depths of a run that started at began, in the order of time. It drops a port's samples of depth 0 between others of depth 0,
// which doesn't change a plot.
func (r *Report) SetTimeline(began time.Time, all []Depth) {
	r.BeganMS = began.UnixMilli()
	keep, previous := make([]bool, len(all)), map[string]int{}
	for i := range all {
		before, ok := previous[all[i].Port]
		keep[i] = all[i].DepthBytes > 0 || ok && all[before].DepthBytes > 0
		if ok && all[i].DepthBytes > 0 {
			keep[before] = true
		}
		previous[all[i].Port] = i
	}
	for i := range all {
		if keep[i] {
			r.Timeline = append(r.Timeline, all[i])
		}
	}
}

// Write writes the report, indented, with a newline at its end.
func (r *Report) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Make makes a report of a dataplane, once, with the flows that have ended; nil: none have. Its workers must have stopped, or be stepped by the caller's goroutine.
func Make(c *config.Config, d *dataplane.Dataplane, flows *Flows) *Report {
	n := MakeCounters(c, d)
	r := &Report{Identity: n.Identity, Counters: n.Counters, Ports: n.Ports, Unresponsive: unresponsive(c, d)}
	if flows == nil {
		flows = &Flows{}
	}
	r.Flows, r.FlowsLeft = flows.list(d)
	return r
}

// Counters is the part of a report that is available while the gateway runs.
type Counters struct {
	Identity
	Mark       *time.Time       `json:"mark,omitempty" doc:"The time since which the counters and histograms count; without it, since the gateway's start."`
	Counters   telemetry.Values `json:"counters" doc:"Counters of all ports and workers together."`
	Ports      []Port           `json:"ports" doc:"All ports."`
	Histograms []Histogram      `json:"histograms,omitempty" doc:"Distributions of values."`
}

// MakeCounters reads what the workers of a dataplane have published. Any goroutine may call it.
func MakeCounters(c *config.Config, d *dataplane.Dataplane) *Counters {
	r := &Counters{Identity: Identify(c), Counters: d.Values()}
	for i := range c.Ports {
		s := d.Port(i)
		r.Ports = append(r.Ports, makePort(c, i, &d.Policy().Ports[i], &s))
	}
	for i := range d.Workers() {
		addWorker(r.Counters, d.Worker(i).FlowStats(), d.Worker(i).PairingStats())
	}
	return r
}

// addWorker adds what a worker's flow table and its learner of source QPs counted.
func addWorker(v telemetry.Values, f flowtable.Stats, p pairing.Stats) {
	v.Add(telemetry.FlowsKnown, "", f.Flows)
	v.Add(telemetry.FlowsAged, "", f.Aged)
	v.Add(telemetry.FlowEvictions, "", f.Evictions)
	v.Add(telemetry.FlowsRefused, "", f.Refused)
	for e := pairing.EvidenceStatic; e < pairing.Evidences; e++ {
		v.Add(telemetry.QPEvidence, e.String(), p.Evidence[e])
		v.Add(telemetry.QPConfirmed, e.String(), p.Confirmed[e])
	}
	v.Add(telemetry.QPContradictions, "", p.Contradictions)
	v.Add(telemetry.QPReuses, "", p.Reuses)
	v.Add(telemetry.QPEvidenceSkipped, "", p.Skipped)
	v.Add(telemetry.QPUnpaired, "", p.NoSlot)
	v.Add(telemetry.QPDisplaced, "", p.Displaced)
	v.Add(telemetry.QPCMDropped, "", p.CMDropped)
	v.Add(telemetry.QPHintsAmbiguous, "", p.Ambiguous)
}

// makePort makes a port's part, with the policy in force.
func makePort(c *config.Config, i int, policy *dataplane.PortPolicy, s *dataplane.PortStats) Port {
	p := &c.Ports[i]
	law := &policy.Law
	out := Port{
		Name: p.Name, Role: p.Role.String(), Peer: c.Ports[p.Peer].Name, RateBps: p.Rate,
		KMinBytes: policy.KMin, KMaxBytes: policy.KMax, CapacityBytes: p.Capacity,
		RTTNanoseconds: policy.RTT, RTTSource: policy.RTTSource.String(), FlowIntervalNanoseconds: int64(policy.PerFlow), AdjustedPercent: policy.Percent,
		DepthBytes: slices.Max(s.Depth[:]), WatermarkBytes: slices.Max(s.Watermark[:]), Queues: queues(p.ClassNames, s),
		Counters: s.Values(),
	}
	if law.On() {
		out.QRefBytes, out.NotifyAboveBytes = uint64(law.Reference), uint64(law.NotifiesAbove())
	}
	return out
}

// Levels are the two depths of a queue that matter: with the law q_ref and the one from which it notifies, else K_min and K_max.
func (p *Port) Levels() (keeps, notifies uint64) {
	if p.QRefBytes > 0 {
		return p.QRefBytes, p.NotifyAboveBytes
	}
	return p.KMinBytes, p.KMaxBytes
}

func queues(classes []string, s *dataplane.PortStats) []Queue {
	all := make([]Queue, len(classes))
	for i, name := range classes {
		all[i] = Queue{name, s.Depth[i], s.Watermark[i]}
	}
	return all
}

// Identity identifies the gateway of an answer or a report. A replay has no start time.
type Identity struct {
	Gateway    string     `json:"gateway" doc:"Name of the gateway in the configuration."`
	Version    string     `json:"version,omitempty" doc:"Version of the program: tag and commit."`
	StartTime  *time.Time `json:"start_time,omitempty" doc:"When the gateway started."`
	ConfigHash string     `json:"config_hash" doc:"SHA-256 of the configuration in force, hexadecimal."`
}

// Identify gives the identity of a gateway with a configuration, without version and start time.
func Identify(c *config.Config) Identity {
	return Identity{Gateway: c.Name, ConfigHash: c.File.Hash()}
}

// UnresponsiveSender is a sender that doesn't react to notifications.
type UnresponsiveSender struct {
	IP   netip.Addr `json:"source_ip"`
	VLAN []uint16   `json:"vlan,omitempty"` // VID of each tag of its flows, the outer one first
	Port string     `json:"port"`           // by which its flows leave
}

// unresponsive lists the senders of a dataplane that don't react to notifications.
func unresponsive(c *config.Config, d *dataplane.Dataplane) (all []UnresponsiveSender) {
	senders, _ := d.Unresponsive()
	for i := range senders {
		var f Flow
		f.SetScope(senders[i].Host.Scope)
		all = append(all, UnresponsiveSender{senders[i].Host.Netip(), f.VLAN, c.Ports[senders[i].Port].Name})
	}
	return all
}
