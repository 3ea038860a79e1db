package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/health/dissect"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// clocks compares the clocks of places of which one has the requests and another one the answers: an answer can't come before its request.
type clocks struct {
	hosts map[ends]*exchange
	ahead map[[2]int]int64 // ns, by the places of requests and of answers: how much later than the answers the requests are recorded, at most
	by    []int64          // ns, by place: what is added to its times; nil: nothing
}

// ends are two hosts of a tenant: the one of requests, and the one of answers.
type ends struct {
	from, to packet.Addr
	tenant   packet.Scope
}

// exchange are samples of the requests that ask for an answer, and of the answers, by PSN, from one host to another. A request's answer has its PSN.
type exchange struct {
	requests, answers map[uint32]moment
	mask              uint64 // of the hashes of the PSNs
}

type moment struct {
	place int
	at    int64
}

const (
	enoughAnswers = 8    // whose requests are found, to compare two clocks
	shortest      = 1000 // ns: a round trip
)

func newClocks() *clocks { return &clocks{hosts: map[ends]*exchange{}} }

// sample notes a packet of the first pass, from the frame b.
func (c *clocks) sample(b []byte, p *packet.Parsed, place int, now int64) {
	if c == nil {
		return
	}
	role := p.Opcode.Role()
	asks := role == packet.ReadRequest || role == packet.Request && b[p.BTH+8]&0x80 != 0
	if !asks && role != packet.Response {
		return
	}
	key := ends{p.Src, p.Dst, packet.ScopeOf(0, p).Tenant()}
	if role == packet.Response {
		key.from, key.to = p.Dst, p.Src
	}
	o := c.hosts[key]
	if o == nil {
		if len(c.hosts) == mostSampled {
			return
		}
		o = &exchange{requests: map[uint32]moment{}, answers: map[uint32]moment{}}
		c.hosts[key] = o
	}
	if splitmix.Mix(uint64(p.PSN))&o.mask != 0 {
		return
	}
	all := o.answers
	if asks {
		all = o.requests
	}
	if _, known := all[p.PSN]; !known {
		all[p.PSN] = moment{place, now}
	}
	for len(all) > samplesEach {
		o.mask = o.mask<<1 | 1
		for _, m := range [...]map[uint32]moment{o.requests, o.answers} {
			maps.DeleteFunc(m, func(psn uint32, _ moment) bool { return splitmix.Mix(uint64(psn))&o.mask != 0 })
		}
	}
}

// shifts finds what is to be added to the times of each place, so that no answer comes before its request. It reports false if none does, or only as little as
// package health can tell.
func (c *clocks) shifts(places int) bool {
	took := map[[2]int][]int64{}
	for _, o := range c.hosts {
		for psn, q := range o.requests {
			if a, ok := o.answers[psn]; ok && a.place != q.place {
				between := [2]int{q.place, a.place}
				took[between] = append(took[between], a.at-q.at)
			}
		}
	}
	c.hosts = nil
	c.ahead = map[[2]int]int64{}
	by := make([]int64, places)
	for _, between := range slices.SortedFunc(maps.Keys(took), func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		all := took[between]
		early, near := usual(all) // some PSNs are those of other connections
		if near < enoughAnswers || near*2 < len(all) || early > -clocksDiffer {
			continue
		}
		for _, t := range all {
			if t >= early-tolerance(-early) {
				c.ahead[between] = max(c.ahead[between], -t)
			}
		}
		by[between[1]] = max(by[between[1]], by[between[0]]+c.ahead[between]+shortest)
	}
	if len(c.ahead) > 0 {
		c.by = by
	}
	return c.by != nil
}

// report says which clocks differ.
func (c *clocks) report(b *health.Builder, capture *Capture) {
	if c == nil {
		return
	}
	for between, ahead := range c.ahead {
		text := fmt.Sprintf("the answers are recorded up to %v before their requests: the clock there is behind by that at least, and its times are corrected; of round trips only what exceeds the shortest is known",
			health.Duration(ahead))
		if late := capture.late(); late > 0 {
			text += fmt.Sprintf("; %d frames are too far apart to be sorted: correct the file's times (editcap -t), and merge it again", late)
		}
		b.Note(health.Note{Name: health.NoteClocks, Subject: capture.places[between[0]] + " -> " + capture.places[between[1]], Text: text})
	}
}

// mostCorrections is how often what the directions between two hosts have between them is corrected: jitter may hide a part of it.
const mostCorrections = 4

// corrects looks for answers that are recorded before their requests at one place, or packets that are sent again before what they are sent again for, as by two taps
// or queues, and reports whether there are any: then all that passes in that direction is taken to have passed as much later. So nothing comes before its reason, as if
// the directions had been captured at two places of the path; what passed isn't changed by that. A pair that is wrong may seem to be farther apart than others of its hosts.
func (h *judge) corrects() bool {
	if h.shares > 1 || h.follower.Stats().Replaced > 0 {
		return false
	}
	found := map[[2]packet.Addr]int64{}
	for n := range h.follower.Len() {
		of, leads := h.follower.Leads(n)
		for i, lead := range leads {
			key := [2]packet.Addr{of.End[i].Addr, of.End[i^1].Addr}
			if least, known := found[key]; lead > 0 && (!known || lead < least) {
				found[key] = lead
			}
		}
	}
	if len(found) == 0 {
		return false
	}
	if h.leads == nil {
		h.leads = map[[2]packet.Addr]int64{}
	}
	for key, lead := range found {
		h.leads[key] += lead + shortest
	}
	h.capture.shift = h.shift
	h.follower, h.memory, h.icrcs, h.setups, h.discards, h.pauses, h.passed = nil, nil, nil, setups{}, unreachable{}, pauses{}, traffic{}
	return true
}

// shift is what is added to the time of a frame, ns.
func (h *judge) shift(f *capturefile.Frame) (by int64) {
	if h.clocks != nil && h.clocks.by != nil {
		by = h.clocks.by[f.Place]
	}
	if len(h.leads) > 0 && f.Unread == "" {
		if p := h.sorter.Read(f.Octets, f.Length); p.Reason == dissect.None {
			by += h.leads[[2]packet.Addr{p.Parsed.Src, p.Parsed.Dst}]
		}
	}
	return by
}

// withoutLead leaves out the round trips of a connection whose directions were recorded by different clocks, and notes that.
func (h *judge) withoutLead(c *health.Connection) {
	for i := range c.End {
		from, to := c.End[i].Addr, c.End[i^1].Addr
		lead := h.leads[[2]packet.Addr{from, to}]
		if lead == 0 {
			continue
		}
		for o := range c.Half {
			c.Half[o].RTT, c.Half[o].ReadRTT, c.Half[o].Lead = health.Histogram{}, health.Histogram{}, lead
		}
		h.builder.Note(health.Note{Name: health.NoteClocks, Subject: health.Subject(to, from, c.Scope), Text: fmt.Sprintf(
			"what %v sends is recorded up to %v before what it answers or obeys: the clocks or queues of the capture differ; its times are corrected, but round trips aren't measured",
			from.Netip(), health.Duration(lead))})
	}
}
