package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/telemetry"
)

// reading is what top reads of a gateway at a time.
type reading struct {
	at       time.Time
	counters *report.Counters
	flows    *api.FlowsBody // with the rates
	senders  *api.SendersBody
	episodes *api.Episodes
	health   *api.Health
	modes    *api.Modes
	rdma     *health.Report
}

// topView is what top shows: two readings compared.
type topView struct {
	Time       time.Time   `json:"time"`
	Gateway    string      `json:"gateway"`
	Observing  []string    `json:"observing,omitempty"` // ports that notify nobody; what they would do is counted
	Notified   uint64      `json:"notifications_per_second"`
	Suppressed uint64      `json:"suppressed_per_second"`
	Top        string      `json:"top_suppression,omitempty"`
	Ports      []topPort   `json:"ports"`
	Queues     []topQueue  `json:"queues"`
	Senders    []topSender `json:"senders"`
	Flows      []topFlow   `json:"flows"`
	RDMA       *topRDMA    `json:"rdma,omitempty"`

	allSenders, allFlows int // that the filters select
}

// topRDMA is how many RDMA connections are followed, how many have a verdict, and what matters most.
type topRDMA struct {
	Connections int    `json:"connections"`
	Bad         int    `json:"bad"`
	Worst       string `json:"worst,omitempty"`
}

func makeTopRDMA(r *health.Report) *topRDMA {
	if r == nil || r.Summary.Connections == 0 {
		return nil
	}
	t := &topRDMA{Connections: r.Summary.Connections, Bad: r.Summary.Bad}
	if len(r.Verdicts) > 0 {
		t.Worst = r.Verdicts[0].Name
	}
	return t
}

func (t *topRDMA) text() string {
	switch {
	case t == nil:
		return ""
	case t.Bad == 0:
		return fmt.Sprintf("  RDMA connections %d", t.Connections)
	}
	return fmt.Sprintf("  RDMA connections %d, %d bad: %s", t.Connections, t.Bad, t.Worst)
}

type topPort struct {
	Name     string   `json:"port" column:"PORT"`
	Role     string   `json:"role" column:"ROLE,,,1"`
	Rate     uint64   `json:"rate_bps"`
	RX       uint64   `json:"rx_bps" column:"RX,,rate"`
	TX       uint64   `json:"tx_bps" column:"TX,,rate"`
	Load     *float64 `json:"load" column:"LOAD,,percent"` // TX as a part of the rate; null if that is 0
	Queued   uint64   `json:"queue_depth_bytes" column:"QUEUE,,bytes"`
	Notified uint64   `json:"notifications_per_second" column:"NOTIFIED/S,,count"`
	Marked   uint64   `json:"marked_per_second" column:"MARKED/S,,count,2"`
	Dropped  uint64   `json:"dropped_per_second" column:"DROPPED/S,,count"`
	Problem  string   `json:"problem,omitempty" column:"PROBLEM"`
}

type topQueue struct {
	Port     string   `json:"port" column:"PORT"`
	Class    string   `json:"class" column:"CLASS"`
	Queued   uint64   `json:"queue_depth_bytes" column:"QUEUE,,bytes"`
	Full     *float64 `json:"full" column:"FULL,,percent"` // of its capacity
	Peak     uint64   `json:"queue_watermark_bytes" column:"PEAK,,bytes"`
	Capacity uint64   `json:"queue_capacity_bytes" column:"CAPACITY,,bytes,1"`
	Notified uint64   `json:"notifications" column:"NOTIFIED,,count"` // in the present or latest episode
	Senders  int      `json:"senders"`                                // notified in it
	Slowed   int      `json:"senders_slowed" column:"SLOWED"`
}

type topSender struct {
	Source   netip.Addr `json:"source_ip" column:"SOURCE,,host"`
	Place    string     `json:"place" column:"VLAN,,,3"` // VLAN or tunnel
	Flows    int        `json:"flows" column:"FLOWS,,count"`
	Rate     uint64     `json:"rate_bps" column:"RATE,,rate"`
	Queued   uint64     `json:"queued_bytes" column:"QUEUED,,bytes"`
	Notified uint64     `json:"notifications_per_second" column:"NOTIFIED/S,,count"`
	Marked   uint64     `json:"marked_per_second" column:"MARKED/S,,count,2"`
	Reacting int        `json:"flows_notified"` // of which the reaction is known
	Slowed   int        `json:"flows_slowed" column:"SLOWED"`
}

type topFlow struct {
	Source        netip.Addr `json:"source_ip" column:"SOURCE,,host"`
	Place         string     `json:"place" column:"VLAN,,,3"`
	Destination   netip.Addr `json:"destination_ip" column:"DESTINATION,,host"`
	DestinationQP uint32     `json:"destination_qp" column:"DESTINATION_QP,,id"`
	Rate          uint64     `json:"rate_bps" column:"RATE,,rate"`
	Queued        uint64     `json:"queued_bytes" column:"QUEUED,,bytes"`
	Notified      uint64     `json:"notifications_per_second" column:"NOTIFIED/S,,count"`
	Marked        uint64     `json:"marked_per_second"`
	Reaction      *int       `json:"reaction_percent" column:"REACTION"` // change of the rate since the first notification of the latest episode
}

// The tables of each kind of row.
var (
	portsOfTop   = columns.New[topPort]()
	queuesOfTop  = columns.New[topQueue]()
	sendersOfTop = columns.New[topSender]()
	flowsOfTop   = columns.New[topFlow]("source_ip", "destination_ip", "destination_qp")
)

// Cell implements columns.Celler.
func (q *topQueue) Cell(name string) (text string, ok bool) {
	return part(q.Slowed, q.Senders), name == "SLOWED"
}

// Cell implements columns.Celler.
func (s *topSender) Cell(name string) (text string, ok bool) {
	return part(s.Slowed, s.Reacting), name == "SLOWED"
}

// Cell implements columns.Celler.
func (f *topFlow) Cell(name string) (text string, ok bool) {
	if f.Reaction == nil {
		return "-", name == "REACTION"
	}
	return fmt.Sprintf("%+d%%", *f.Reaction), name == "REACTION"
}

// flowName is what distinguishes flows of one gateway.
type flowName struct {
	port, place         string
	source, destination netip.Addr
	qp                  uint32
}

func nameOf(f *api.Flow) flowName {
	return flowName{f.Port, columns.PlaceText(f.Tunnel, f.TunnelID, f.VLAN), f.SourceIP, f.DestinationIP, f.DestinationQP}
}

// compare makes a view of two readings.
func compare(before, now *reading) *topView {
	r := ratesBetween(before.counters, now.counters, now.at.Sub(before.at))
	v := &topView{Time: now.at, Gateway: now.counters.Gateway, Observing: observing(now.modes), RDMA: makeTopRDMA(now.rdma)}
	suppressed := telemetry.Reading{By: map[string]uint64{}}
	for i := range now.counters.Ports {
		p := &now.counters.Ports[i]
		rx, tx := 8*r.perSecond(i, telemetry.ReceivedBytes), 8*r.perSecond(i, telemetry.ForwardedBytes)
		port := topPort{
			Name: p.Name, Role: p.Role, Rate: p.RateBps, RX: rx, TX: tx, Load: partOf(tx, p.RateBps), Queued: p.DepthBytes, Problem: now.health.Problems[p.Name],
			Notified: r.perSecond(i, telemetry.NotificationsSent) + r.perSecond(i, telemetry.NotificationsObserved),
			Marked:   r.perSecond(i, telemetry.ECNMarkedPackets) + r.perSecond(i, telemetry.ECNObservedPackets), Dropped: r.perSecond(i, telemetry.DroppedPackets),
		}
		v.Ports = append(v.Ports, port)
		v.Notified += port.Notified
		v.Suppressed += r.perSecond(i, telemetry.NotificationsSuppressed)
		if r.since != nil {
			for reason, n := range r.since.Ports[i].Counters[telemetry.NotificationsSuppressed.Name].By {
				suppressed.By[reason] += n
			}
		}
		for _, q := range p.Queues {
			v.Queues = append(v.Queues, queueOf(p, q, now.episodes.Episodes))
		}
	}
	v.Top = mostOf(suppressed.By)
	reactions := reactionsOf(now.episodes.Episodes)
	v.Flows, v.Senders = flowsOf(before, now, reactions), sendersOf(before, now, reactions)
	joined := len(now.flows.Flows) - len(v.Flows) // which several workers see
	v.allFlows, v.allSenders = max(int(now.flows.Total)-joined, len(v.Flows)), int(now.senders.Total)
	return v
}

// mostOf is the reason with the highest count, the first in the order of reasons; "" if all are 0.
func mostOf(by map[string]uint64) (top string) {
	for s := counters.Suppression(1); s <= counters.Suppressions; s++ {
		if by[s.String()] > by[top] {
			top = s.String()
		}
	}
	return top
}

func queueOf(p *report.Port, q report.Queue, episodes []report.Episode) topQueue {
	out := topQueue{Port: p.Name, Class: q.Class, Queued: q.DepthBytes, Full: partOf(q.DepthBytes, p.CapacityBytes), Peak: q.WatermarkBytes, Capacity: p.CapacityBytes}
	for i := range slices.Backward(episodes) {
		e := &episodes[i]
		if e.Port != p.Name || e.Class != q.Class {
			continue
		}
		out.Notified = e.Observed + sum(e.Notifications)
		out.Senders, out.Slowed = len(e.Senders)+e.MoreSenders, e.SlowedSenders()
		break
	}
	return out
}

// flowCounts are what was counted of a flow.
type flowCounts struct{ notified, marked uint64 }

// countsOf joins what workers have counted of flows.
func countsOf(flows []api.Flow) map[flowName]flowCounts {
	all := map[flowName]flowCounts{}
	for i := range flows {
		f := &flows[i]
		c := all[nameOf(f)]
		all[nameOf(f)] = flowCounts{c.notified + sum(f.Notifications), c.marked + f.ECNMarked}
	}
	return all
}

// flowsOf joins the records that workers have of a flow, and adds what has changed and how its sender reacted.
func flowsOf(before, now *reading, reactions map[flowName]*report.EpisodeFlow) []topFlow {
	was, is := countsOf(before.flows.Flows), countsOf(now.flows.Flows)
	place, out := map[flowName]int{}, []topFlow{}
	for i := range now.flows.Flows {
		f := &now.flows.Flows[i]
		name := nameOf(f)
		if _, known := place[name]; !known {
			place[name] = len(out)
			row := topFlow{Source: f.SourceIP, Place: name.place, Destination: f.DestinationIP, DestinationQP: f.DestinationQP}
			if old, known := was[name]; known {
				row.Notified, row.Marked = since(before, now, old.notified, is[name].notified), since(before, now, old.marked, is[name].marked)
			}
			anywhere := name
			anywhere.port = ""
			row.Reaction = reactionIn(reactions[anywhere])
			out = append(out, row)
		}
		row := &out[place[name]]
		row.Queued += f.QueuedBytes
		if f.RateBPS != nil {
			row.Rate += *f.RateBPS
		}
	}
	return out
}

// reactionsOf are the flows of the latest episode that has each, by their names without a port.
func reactionsOf(episodes []report.Episode) map[flowName]*report.EpisodeFlow {
	all := map[flowName]*report.EpisodeFlow{}
	for i := range episodes {
		for _, flows := range [][]report.EpisodeFlow{episodes[i].Flows, episodes[i].Senders} {
			for k := range flows {
				f := &flows[k]
				all[flowName{"", columns.PlaceText(f.Tunnel, f.TunnelID, f.VLAN), f.SourceIP, f.DestinationIP, f.DestinationQP}] = f
			}
		}
	}
	return all
}

// reactionIn is the change of a flow's rate after its first notification in an episode, percent; nil if it isn't known.
func reactionIn(f *report.EpisodeFlow) (percent *int) {
	if f == nil || f.Before == nil || f.After == nil || *f.Before == 0 {
		return nil
	}
	change := int(100 * (float64(*f.After)/float64(*f.Before) - 1))
	return &change
}

// sendersOf adds what has changed of each sender, and how those of its flows reacted that were notified in the episodes.
func sendersOf(before, now *reading, reactions map[flowName]*report.EpisodeFlow) []topSender {
	nameOf := func(s *api.Sender) flowName {
		return flowName{place: columns.PlaceText(s.Tunnel, s.TunnelID, s.VLAN), source: s.SourceIP}
	}
	old := map[flowName]*api.Sender{}
	for i := range before.senders.Senders {
		s := &before.senders.Senders[i]
		old[nameOf(s)] = s
	}
	reacting, slowed := map[flowName]int{}, map[flowName]int{}
	for of, f := range reactions {
		if reactionIn(f) == nil || f.Slowed == nil {
			continue
		}
		of = flowName{place: of.place, source: of.source}
		reacting[of]++
		if *f.Slowed {
			slowed[of]++
		}
	}
	out := []topSender{}
	for i := range now.senders.Senders {
		s := &now.senders.Senders[i]
		name := nameOf(s)
		row := topSender{Source: s.SourceIP, Place: name.place, Flows: int(s.Flows), Queued: s.QueuedBytes, Reacting: reacting[name], Slowed: slowed[name]}
		if s.RateBPS != nil {
			row.Rate = *s.RateBPS
		}
		if was := old[name]; was != nil {
			row.Notified, row.Marked = since(before, now, was.Notifications, s.Notifications), since(before, now, was.ECNMarked, s.ECNMarked)
		}
		out = append(out, row)
	}
	return out
}

// since is a count's growth between two readings, per second; 0 of another gateway's.
func since(before, now *reading, was, is uint64) uint64 {
	seconds := now.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return uint64(float64(is-min(was, is)) / seconds)
}

// sort puts the rows with most of a key first, and others in the order of their names. Ports keep the order of the configuration, unless they are what is
// shown: above other rows they should not jump.
func (v *topView) sort(kind, by string) {
	key := func(rate, queued, notified uint64) uint64 {
		return map[string]uint64{"rate": rate, "queue": queued, "notified": notified}[by]
	}
	slices.SortStableFunc(v.Flows, func(a, b topFlow) int {
		return cmp.Or(cmp.Compare(key(b.Rate, b.Queued, b.Notified), key(a.Rate, a.Queued, a.Notified)), a.Source.Compare(b.Source), a.Destination.Compare(b.Destination),
			cmp.Compare(a.DestinationQP, b.DestinationQP), cmp.Compare(a.Place, b.Place))
	})
	slices.SortStableFunc(v.Senders, func(a, b topSender) int {
		return cmp.Or(cmp.Compare(key(b.Rate, b.Queued, b.Notified), key(a.Rate, a.Queued, a.Notified)), a.Source.Compare(b.Source), cmp.Compare(a.Place, b.Place))
	})
	slices.SortStableFunc(v.Queues, func(a, b topQueue) int {
		return cmp.Compare(key(0, b.Queued, b.Notified), key(0, a.Queued, a.Notified))
	})
	if kind != "port" {
		return
	}
	slices.SortStableFunc(v.Ports, func(a, b topPort) int {
		return cmp.Compare(key(b.RX+b.TX, b.Queued, b.Notified), key(a.RX+a.TX, a.Queued, a.Notified))
	})
}
