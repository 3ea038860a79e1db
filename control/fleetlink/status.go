//go:build !nofleet

package fleetlink

import (
	"github.com/nats-io/nats.go"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/pairing"
)

// Status is the state of the fleet as this gateway sees it.
func (p *Participant) Status() FleetStatus {
	s := FleetStatus{Enabled: true, Site: p.Config.Site, Name: p.Config.Name, Connections: []FleetConnection{}, Members: []fleet.MemberView{}, Counters: map[string]uint64{}}
	var stats fleet.Stats
	if p.ask(func() { stats, s.Members = p.member.Stats(), p.member.Views() }) {
		s.Shares = FleetShares{stats.Wants, stats.Wanted, stats.RemoteFlows, stats.Pairs}
		s.Refused = stats.Refused
		for host, n := range stats.HintsRefused {
			s.Refused["hints of "+host] = n
		}
	}
	for k := wire.Status; int(k) < wire.Kinds; k++ {
		s.Counters["sent_"+k.String()], s.Counters["received_"+k.String()] = stats.Sent[k], stats.Received[k]
	}
	for name, n := range map[string]uint64{
		"sent_bytes": stats.SentBytes, "received_bytes": stats.ReceivedBytes, "adopted": stats.Adopted, "not_unique": stats.NotUnique,
		"no_space": stats.Full, "flows_taken": stats.Shown[pairing.ShownTaken], "flows_seen_here": stats.Shown[pairing.ShownSeen],
		"flows_no_slot": stats.Shown[pairing.ShownFull], "flows_stale": stats.Shown[pairing.ShownStale], "flows_ended": stats.Shown[pairing.ShownEnded],
	} {
		s.Counters[name] = n
	}
	_, _, s.Counters["dropped_in"] = p.in.state()
	_, _, s.Counters["dropped_out"] = p.out.state()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for i, c := range p.conns {
		s.Connections = append(s.Connections, FleetConnection{p.urls[i], c.Status() == nats.CONNECTED, c.Stats().Reconnects, p.lastError(i)})
	}
	if len(p.conns) == 0 {
		s.Connections = append(s.Connections, FleetConnection{URL: p.Config.Listen, Error: p.errs[""]})
	}
	return s
}
