package report

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/episode"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// mostFlows and mostSenders bound the lists of an episode.
const (
	mostFlows   = 8
	mostSenders = 32
)

// Episode is one time of congestion of a queue.
type Episode struct {
	ID            uint64            `json:"id"`
	Port          string            `json:"port"`
	Class         string            `json:"class"`
	Start         time.Time         `json:"start" doc:"When the congestion began."`
	End           *time.Time        `json:"end" doc:"When the congestion ended; null while it continues."`
	PeakBytes     uint64            `json:"peak_bytes" doc:"Greatest depth of the queue during the episode."`
	ECNMarked     uint64            `json:"ecn_marked"`
	Notifications map[string]uint64 `json:"notifications"` // sent, by kind
	Observed      uint64            `json:"notifications_observed" doc:"Notifications that would have been sent, in observe mode."`
	Suppressed    map[string]uint64 `json:"suppressed" doc:"Times that a sender behind the port's peer was not notified, by reason; of all classes of the port."`
	Lost          uint64            `json:"notifications_lost" doc:"Notifications that were overwritten before they were counted."` // of the whole gateway: overwritten before any episode counted them
	Flows         []EpisodeFlow     `json:"flows"`                                                                                  // that sent most, in the order of bytes
	Senders       []EpisodeFlow     `json:"senders" doc:"Senders that were notified."`                                              // of flows about which a notification was sent or observed, in the order of their first notifications
	MoreSenders   int               `json:"more_senders" doc:"Number of senders that the list leaves out."`
}

// EpisodeFlow is a flow in an episode.
type EpisodeFlow struct {
	SourceIP      netip.Addr `json:"source_ip" column:"SOURCE,Sender,host"`
	DestinationIP netip.Addr `json:"destination_ip" column:"DESTINATION,Receiver,host"`
	SourceQP      *uint32    `json:"source_qp" column:"SOURCE_QP,,qp"` // null unless it is confirmed
	DestinationQP uint32     `json:"destination_qp" column:"DESTINATION_QP,QP,id"`
	VLAN          []uint16   `json:"vlan,omitempty" column:",VLAN or tunnel,place"` // as in Flow
	Tunnel        string     `json:"tunnel,omitempty"`                              // as in Flow
	TunnelID      uint32     `json:"tunnel_id,omitempty"`                           // as in Flow
	Bytes         uint64     `json:"bytes" column:"BYTES,Bytes,bytes,3"`            // that arrived during the episode
	Queued        uint64     `json:"queued_bytes" doc:"Queued bytes of the flow, as far as the worker tracks them; in an episode the maximum." column:"QUEUED,Most queued,bytes,1"`
	Notifications uint64     `json:"notifications" column:"NOTIFIED,Notifications,count,2"` // sent or observed
	FirstNotified *time.Time `json:"first_notified,omitempty" doc:"When the sender was notified first."`
	Before        *uint64    `json:"rate_before_bps,omitempty" doc:"Rate of the flow before the first notification." column:"BEFORE,Rate before,rate"`
	After         *uint64    `json:"rate_after_bps,omitempty" doc:"Rate of the flow after the first notification." column:"AFTER,Rate after,rate"`
	Slowed        *bool      `json:"slowed,omitempty" doc:"Whether the flow's rate fell by more than an eighth after the first notification." column:"SLOWED,Slowed,slowed"`
	AtFairRate    bool       `json:"at_fair_rate,omitempty" doc:"Whether it did not slow down because it is not above the rate that the law allows it."`
}

// EpisodePorts are the ports of a configuration, for episode.NewWatcher.
func EpisodePorts(c *config.Config) (all []episode.Port) {
	for i := range c.Ports {
		all = append(all, episode.Port{Peer: c.Ports[i].Peer, Classes: len(c.Ports[i].ClassNames), Rate: c.Ports[i].Rate})
	}
	return all
}

// MakeEpisode describes an episode.
func MakeEpisode(c *config.Config, e *episode.Episode) Episode {
	port := &c.Ports[e.Queue.Port]
	out := Episode{
		ID: e.ID, Port: port.Name, Class: port.ClassNames[e.Queue.Class], Start: unix(e.Start), PeakBytes: e.Peak, ECNMarked: e.Marked,
		Notifications: byName(packet.FastCNP, e.Notifications[:]), Suppressed: byName(counters.Suppression(1), e.Suppressed[:]), Observed: e.Observed, Lost: e.Lost, Flows: []EpisodeFlow{}, Senders: []EpisodeFlow{},
	}
	if e.Over {
		end := unix(e.End)
		out.End = &end
	}
	flows := slices.Clone(e.Flows)
	slices.SortStableFunc(flows, func(a, b episode.Flow) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Queued, a.Queued))
	})
	for i := range flows[:min(len(flows), mostFlows)] {
		out.Flows = append(out.Flows, makeEpisodeFlow(&flows[i]))
	}
	flows = slices.DeleteFunc(flows, func(f episode.Flow) bool { return f.Notifications == 0 })
	slices.SortStableFunc(flows, func(a, b episode.Flow) int { return cmp.Compare(a.First, b.First) })
	for i := range flows[:min(len(flows), mostSenders)] {
		out.Senders = append(out.Senders, makeEpisodeFlow(&flows[i]))
	}
	out.MoreSenders = len(flows) - len(out.Senders)
	return out
}

func makeEpisodeFlow(f *episode.Flow) EpisodeFlow {
	k := &f.Record.Key
	place := Flow{}
	place.setPlace(k)
	out := EpisodeFlow{
		VLAN: place.VLAN, Tunnel: place.Tunnel, TunnelID: place.TunnelID,
		SourceIP: k.Src.Netip(), DestinationIP: k.Dst.Netip(), SourceQP: confirmed(f.Record.View.Answer), DestinationQP: k.DestQP, Bytes: f.Bytes, Queued: f.Queued, Notifications: f.Notifications,
		Before: rate(f.Before), After: rate(f.After),
	}
	if f.Notifications > 0 {
		first := unix(f.First)
		out.FirstNotified = &first
	}
	if slowed, known := f.Slowed(); known {
		out.Slowed, out.AtFairRate = &slowed, f.AtFairRate()
	}
	return out
}

func rate(r episode.Rate) *uint64 {
	if !r.Known {
		return nil
	}
	return &r.BPS
}

func unix(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// SlowedSenders counts the senders that slowed down after they were notified.
func (e *Episode) SlowedSenders() (n int) {
	for i := range e.Senders {
		if s := e.Senders[i].Slowed; s != nil && *s {
			n++
		}
	}
	return n
}
