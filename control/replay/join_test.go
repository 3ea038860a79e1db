package replay

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// joinCase is traffic of some connections of two hosts, of which nothing but PSNs and times tells what belongs together.
type joinCase struct {
	name     string
	n        int
	psn      func(n int) uint32
	messages int
	scope    packet.Scope // of the responses
	loses    int          // the connection of which a packet is lost; -1: none
	strange  bool         // the responses are to other requests
	from     byte         // the last octet of the address that the responses come from; 0: the one that was asked
	bundle   bool         // requests of half of them, and responses of the others
	missed   int          // first requests of the last connection that are not in the capture
	pairs    int
	by       string
}

func zero(int) uint32 { return 0 }

var joinCases = []joinCase{
	{name: "one, other VLAN", n: 1, psn: func(int) uint32 { return 0x345678 }, messages: 20, scope: packet.ScopeInVLAN(0, packet.MakeTag(0x8100, 101), 0), loses: -1, pairs: 1, by: byFit},
	{name: "one, few packets", n: 1, psn: zero, messages: 3, loses: -1, pairs: 1, by: byOnlyOne},
	{name: "eight with PSN 0", n: 8, psn: zero, messages: 20, loses: -1, pairs: 8, by: byFit},
	{name: "eight with PSN 0, one loses", n: 8, psn: zero, messages: 20, loses: 5, pairs: 8, by: byFit},
	{name: "PSNs wrap", n: 3, psn: func(n int) uint32 { return 0xfffff0 + uint32(n)*3 }, messages: 20, loses: -1, pairs: 3, by: byFit},
	{name: "one, from another address", n: 1, psn: zero, messages: 20, from: 7, loses: -1, pairs: 1, by: byFit},
	{name: "one, from another address, few packets", n: 1, psn: zero, messages: 3, from: 7, loses: -1},
	{name: "two alike, from another address", n: 2, psn: zero, messages: 20, from: 7, loses: -1},
	{name: "others' responses from another address", n: 1, psn: zero, messages: 20, from: 7, loses: -1, strange: true},
	{name: "others' responses", n: 2, psn: zero, messages: 20, loses: -1, strange: true},
	{name: "two, the second's requests come late", n: 2, psn: zero, messages: 20, loses: -1, missed: 57, pairs: 2, by: byFit},
	{name: "one port of a bundle", n: 4, psn: func(n int) uint32 { return 1000 * uint32(n) }, messages: 20, loses: -1, bundle: true},
	{name: "several with few packets", n: 3, psn: zero, messages: 3, loses: -1},
}

func (c *joinCase) run() []joined {
	const step, trip, size = 3_000, 250_000, 4
	type event struct {
		key connectionKey
		health.Packet
	}
	a, b := packet.AddrFrom4([]byte{10, 1, 0, 1}), packet.AddrFrom4([]byte{10, 2, 0, 1})
	var all []event
	for n := range c.n {
		there, back := connectionKey{src: a, dst: b, qp: 0x900 + uint32(n)}, connectionKey{src: b, dst: a, qp: 0x500 + uint32(n), scope: c.scope}
		if c.from != 0 {
			back.src = packet.AddrFrom4([]byte{10, 2, 0, c.from})
		}
		now, again := int64(1e6)+int64(n)*step, false
		for i := 0; i < c.messages*size; i++ {
			psn := (c.psn(n) + uint32(i)) & packet.PSNMask
			last := i%size == size-1
			if (n < c.n-1 || i >= c.missed) && (!c.bundle || n < c.n/2) {
				all = append(all, event{there, health.Packet{Time: now, PSN: psn, Opcode: packet.RCSendOnly, AckReq: last}})
			}
			answer := health.Packet{Time: now + trip, PSN: psn, Opcode: packet.RCAcknowledge, HasAETH: true, Syndrome: 31}
			if c.strange {
				answer.PSN = (psn + 0x400000) & packet.PSNMask
			}
			switch lost := n == c.loses && i == 17; {
			case lost && !again:
				again = true
				answer.Syndrome = 0x60
				all = append(all, event{back, answer})
				now += trip + step
				i--
			case last && (!c.bundle || n >= c.n/2):
				all = append(all, event{back, answer})
			}
			now += int64(c.n) * step
		}
	}
	slices.SortStableFunc(all, func(x, y event) int { return int(x.Time - y.Time) })
	j := newJoiner()
	for i := range all {
		d := j.flows[all[i].key]
		if d == nil {
			d = j.begin(all[i].key)
		}
		j.follow(d, &all[i].Packet)
	}
	return j.pairs()
}

// TestJoinByFit: the directions of connections are found, and directions that have nothing to do with one another aren't joined.
func TestJoinByFit(t *testing.T) {
	for i := range joinCases {
		c := &joinCases[i]
		t.Run(c.name, func(t *testing.T) {
			pairs := c.run()
			if len(pairs) != c.pairs {
				t.Errorf("%d pairs, want %d: %+v", len(pairs), c.pairs, pairs)
			}
			for _, p := range pairs {
				if p.requester.qp-0x900 != p.responder.qp-0x500 || p.by != c.by {
					t.Errorf("QP %#x is paired with %#x by %s, want by %s", p.requester.qp, p.responder.qp, p.by, c.by)
				}
			}
		})
	}
}

// TestJoinWithoutContradiction: two VLANs' responses to the same QP can't both be moved to where the requests are.
func TestJoinWithoutContradiction(t *testing.T) {
	a, b := packet.AddrFrom4([]byte{10, 1, 0, 1}), packet.AddrFrom4([]byte{10, 2, 0, 1})
	j := newJoiner()
	for n := range uint32(2) {
		there := j.begin(connectionKey{src: a, dst: b, qp: 0x900 + n})
		back := j.begin(connectionKey{src: b, dst: a, qp: 0x500, scope: packet.ScopeInVLAN(0, packet.MakeTag(0x8100, uint16(101+n)), 0)})
		for i := range uint32(40) {
			psn := (n+1)*100_000 + i
			j.follow(there, &health.Packet{Time: int64(i) * 1000, PSN: psn, Opcode: packet.RCSendOnly, AckReq: true})
			j.follow(back, &health.Packet{Time: int64(i)*1000 + 500, PSN: psn, Opcode: packet.RCAcknowledge, HasAETH: true, Syndrome: 31})
		}
	}
	h := &judge{joiner: j, moved: map[connectionKey]seenAs{}, paired: map[connectionKey]string{}}
	known := &agreed{source: map[connectionKey]uint32{}}
	h.join(known)
	if _, err := pairing.NewQPMap(known.pairs, seed); err != nil || len(known.pairs) != 1 || len(h.moved) != 1 {
		t.Errorf("%d pairs, %d directions moved (%v), want 1 and 1", len(known.pairs), len(h.moved), err)
	}
}

// TestJoinBound: directions beyond the bound are counted as left out.
func TestJoinBound(t *testing.T) {
	j := newJoiner()
	for n := range uint32(joinedFlows - 1) {
		j.flows[connectionKey{qp: n}] = nil
	}
	for n := range uint32(11) {
		j.begin(connectionKey{src: packet.Addr{Lo: 1}, qp: n})
	}
	if len(j.flows) != joinedFlows || j.left != 10 {
		t.Errorf("%d directions are kept and %d left out, want %d and 10", len(j.flows), j.left, joinedFlows)
	}
}

// TestJoinLateBound: a direction is compared with a bounded number of requesters that begin after its first responses.
func TestJoinLateBound(t *testing.T) {
	a, b := packet.AddrFrom4([]byte{10, 1, 0, 1}), packet.AddrFrom4([]byte{10, 2, 0, 1})
	j := newJoiner()
	request := func(n uint32, psn uint32) {
		j.follow(j.begin(connectionKey{src: a, dst: b, qp: 0x900 + n}), &health.Packet{PSN: psn, Opcode: packet.RCSendOnly, AckReq: true})
	}
	request(0, 7)
	back := j.begin(connectionKey{src: b, dst: a, qp: 0x500})
	answer := health.Packet{PSN: 7, Opcode: packet.RCAcknowledge, HasAETH: true, Syndrome: 31}
	for n := range uint32(2 * later) {
		j.follow(back, &answer)
		request(n+1, 0x800000) // of another connection
	}
	if len(back.fits) != 1 || back.late != later {
		t.Errorf("%d requesters fit and %d late ones were compared, want 1 and %d", len(back.fits), back.late, later)
	}
}
