package health

import (
	"net/netip"
	"slices"
)

// Verdict is one thing that is wrong, where, how that shows, and what to change.
type Verdict struct {
	Name        string `json:"verdict" doc:"Its name."`
	Title       string `json:"title" doc:"The same in plain words."`
	Meaning     string `json:"meaning" doc:"What that means, for people who don't know RDMA."`
	Subject     string `json:"subject" doc:"The hosts, from the requester to the responder, or the one host."`
	Evidence    string `json:"evidence" doc:"How it shows."`
	Advice      string `json:"advice" doc:"What to change."`
	Connections int    `json:"connections" doc:"How many connections show it; the evidence is of the worst one."`
	Weight      uint64 `json:"weight" doc:"How much it matters: for most verdicts the packets concerned. Verdicts are sorted by it."`
	// Pairs are those that the verdict is about, if they are several: the worst ones first.
	Pairs  []About `json:"pairs,omitempty" doc:"The pairs of hosts that it is about, if they are several: the worst ones first, up to 64."`
	Others int     `json:"other_pairs,omitempty" doc:"How many more there are."`
	// Commands are what to type, with a comment that says where.
	Commands []string `json:"commands,omitempty" doc:"What to type to change it or to look closer, with where."`

	of       []int // numbers of the connections
	from, to netip.Addr
	timeout  int        // of ShortTimeOut: the local ACK timeout that suffices
	lossy    netip.Addr // of a loss: the host on whose side it is
	class    class      // and what was lost
	notECT   bool       // what is sent there can't be marked CE
}

// judge returns the verdicts about one end's requests.
func (c *Connection) judge(i int) (all []Verdict) {
	h := &c.Half[i]
	explained := false
	_, differ := h.mtus.differ()
	for _, name := range Names {
		k := kinds[name]
		if k.rule == nil || differ && !k.anyMTU {
			continue
		}
		if v, ok := k.rule(c, i); ok {
			v.Name, explained = name, explained || k.explains
			all = append(all, v)
		}
	}
	if v, ok := unexplained(c, i); ok && !explained {
		all = append(all, v)
	}
	for n := range all {
		if all[n].Subject == "" {
			all[n].Subject, all[n].from, all[n].to = c.subject(i), c.End[i].Addr.Netip(), c.End[i^1].Addr.Netip()
		}
	}
	// What follows from these needs no verdict of its own.
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(v Verdict) bool { return v.Name == name })
	}
	return slices.DeleteFunc(all, func(v Verdict) bool {
		switch v.Name {
		case LossUpstream, LossDownstream, NoAnswer:
			return has(BlackHole) || v.Name == LossDownstream && (has(NoAnswer) && h.LostDownstream <= uint64(h.repeat.tries)+1 || has(Asymmetric) || has(ShortTimeOut) && h.rare(h.LostDownstream))
		case AckLoss:
			return has(ShortTimeOut) && 2*h.AcksLost < h.Episodes[Spurious]
		case Asymmetric:
			return has(NoAnswer)
		}
		return false
	})
}

// notCaptured is how many packets of a connection were acknowledged, and never seen here: so many may have passed that seem to be lost or late.
func (c *Connection) notCaptured() uint64 { return c.Half[0].NotCaptured + c.Half[1].NotCaptured }

// perhapsMissed is how many of the episodes of an end that prove a loss may be of packets that the capture missed.
func (c *Connection) perhapsMissed(h *Half) uint64 {
	missed := c.notCaptured()
	if !h.incomplete() {
		return min(missed, 1)
	}
	const times = 4 // as many as there should be, as it misses several in a row
	return min(missed, 1+times*missed*(h.Episodes[NAKSequence]+h.Episodes[Implied])/max(h.Requests.Packets+h.Responses.Packets, 1))
}

// rare reports whether so few losses may be time-outs that were not known to be spurious.
func (c *Counts) rare(lost uint64) bool { return c.NAKs[0] == 0 && 7*lost < c.Episodes[Spurious] }

// lateAfterAll is how many packets came that had been sent again, and weren't copied by what copies others: they may be those that seemed to be lost.
func (c *Counts) lateAfterAll() uint64 {
	if c.twins() {
		return 0
	}
	return c.Duplicates - min(c.copies, c.Duplicates)
}

func (c *Connection) subject(i int) string { return Subject(c.End[i].Addr, c.End[i^1].Addr, c.Scope) }
