package health

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// active is a sender's time of sending to a receiver.
type active struct {
	sender      netip.Addr
	first, last int64
}

// incastOf is the most senders at one time.
func incastOf(all []active) (most int) {
	type edge struct {
		at     int64
		step   int
		sender netip.Addr
	}
	var edges []edge
	for _, a := range all {
		edges = append(edges, edge{a.first, 1, a.sender}, edge{a.last + 1, -1, a.sender})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	now := map[netip.Addr]int{}
	for _, e := range edges {
		if now[e.sender] += e.step; now[e.sender] == 0 {
			delete(now, e.sender)
		}
		most = max(most, len(now))
	}
	return most
}

// receiver is what is known of a host as a responder.
type receiver struct {
	rtt     Histogram
	rnr     uint64
	senders map[netip.Addr]bool
}

func (b *Builder) receives(to, from netip.Addr, h *Half) {
	r := b.slow[to]
	if r == nil {
		r = &receiver{senders: map[netip.Addr]bool{}}
		b.slow[to] = r
	}
	r.rtt.merge(&h.RTT)
	r.rnr += h.RNRNAKs
	r.senders[from] = true
}

// slowReceivers are hosts that acknowledge much later than most others of their prefix.
func (b *Builder) slowReceivers() (all []Verdict) {
	byPrefix := map[netip.Prefix][]netip.Addr{}
	const enough = 16
	for host, r := range b.slow {
		if r.rtt.Count() >= enough {
			byPrefix[prefixOf(host)] = append(byPrefix[prefixOf(host)], host)
		}
	}
	for _, hosts := range byPrefix {
		const fewest, times, least = 3, 4, 100_000
		if len(hosts) < fewest {
			continue
		}
		slices.SortFunc(hosts, func(x, y netip.Addr) int {
			return cmp.Or(cmp.Compare(b.slow[x].rtt.Quantile(0.5), b.slow[y].rtt.Quantile(0.5)), x.Compare(y))
		})
		usual := b.slow[hosts[(len(hosts)-1)/2]].rtt.Quantile(0.5)
		host := hosts[len(hosts)-1]
		if late := b.slow[host].rtt.Quantile(0.5); late > times*usual && late > usual+least {
			all = append(all, Verdict{
				Name: SlowReceiver, Subject: host.String(), Connections: len(b.slow[host].senders), Weight: b.slow[host].rtt.Count(),
				Evidence: fmt.Sprintf("half of its ACKs take longer than %s; those of most of the %d receivers in its prefix take %s", Duration(int64(late)), len(hosts), Duration(int64(usual))),
				Advice:   "look at this host: its link's speed and errors, PCIe width, memory and CPU, and whether it is the target of an incast",
			})
		}
	}
	return all
}
