package health

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestProofs: what is counted needs a proof. Each case is a sequence of packets, 1 us apart unless one says otherwise.
func TestProofs(t *testing.T) {
	type step struct {
		psn  uint32
		kind byte  // 'r' a request, 'a' an ACK, 'n' a NAK, 'q' a READ request, 'd' its response
		wait int64 // us before it
	}
	requests := func(psns ...uint32) (all []step) {
		for _, psn := range psns {
			all = append(all, step{psn: psn, kind: 'r'})
		}
		return all
	}
	join := func(parts ...[]step) (all []step) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	sequence := func(from, to uint32) (all []step) {
		for psn := from; psn < to; psn++ {
			all = append(all, step{psn: psn, kind: 'r'})
		}
		return all
	}
	again := func(times int, psn uint32) (all []step) {
		for range times {
			all = append(all, step{psn: psn, kind: 'r', wait: 10_000})
		}
		return all
	}
	reads := func(from, to uint32) (all []step) {
		for psn := from; psn < to; psn++ {
			all = append(all, step{psn, 'q', 1}, step{psn, 'd', 9})
		}
		return all
	}
	acks := func(from, to uint32) (all []step) {
		for psn := from; psn < to; psn++ {
			all = append(all, step{psn, 'a', 20})
		}
		return all
	}
	var even []uint32
	for psn := uint32(4); psn <= 84; psn += 2 {
		even = append(even, psn)
	}
	type counts struct{ copies, again, upstream, downstream, missed uint64 }
	for _, c := range []struct {
		name  string
		steps []step
		want  counts
	}{
		{"each packet is copied before the next but one", requests(1, 2, 1, 3, 2, 4, 3, 5), counts{copies: 3}},
		{"a sequence that ends with the latest is sent again", requests(1, 2, 3, 4, 2, 3, 4, 5, 6), counts{again: 3}},
		{"two may be copies", requests(1, 2, 3, 4, 3, 4, 5, 6), counts{}},
		{"a sequence that ends before the latest may not", requests(1, 2, 3, 4, 2, 3, 5, 6), counts{copies: 2}},
		{"the latest alone isn't asked for", requests(1, 2, 2, 3, 3, 4), counts{copies: 2}},
		{"an ACK comes before it is decided what a missing packet was",
			join(requests(1, 2, 4, 5), []step{{2, 'a', 20}, {3, 'n', 0}, {3, 'r', 5}, {3, 'a', 20}, {5, 'a', 0}}, requests(6)), counts{again: 1, upstream: 1}},
		{"nobody answers any more", join(requests(1, 2), []step{{2, 'a', 20}}, requests(3), again(4, 3)), counts{again: 4}},
		{"the answer comes after a time-out", join(requests(1), []step{{1, 'a', 20}}, requests(2), []step{{2, 'a', 20}}, requests(3), []step{{3, 'a', 20}},
			requests(4), again(1, 4), []step{{4, 'a', 20}}, requests(5)), counts{again: 1, downstream: 1}},
		{"the first ones are sent again alone", join(requests(1), []step{{3, 'a', 20}}, requests(4, 9), []step{{9, 'a', 20}}, requests(90, 91), []step{{91, 'a', 20}}), counts{}},
		{"copies of what was sent again from before the first one", join(requests(10, 11), []step{{8, 'r', 20}}, requests(8, 9, 9, 10, 11, 12)), counts{copies: 2, again: 4}},
		{"a READ that is asked for again is answered again", []step{{1, 'q', 0}, {2, 'q', 0}, {3, 'q', 0}, {1, 'd', 9}, {3, 'd', 0}, {2, 'q', 0}, {3, 'q', 0}, {2, 'd', 0}, {3, 'd', 0}},
			counts{again: 4, upstream: 1}},
		{"packets in sequence passed before the gap", join(requests(1, 2), []step{{2, 'a', 20}}, requests(3, 6), []step{{6, 'a', 20}}, requests(7)), counts{missed: 2}},
		{"more gaps than are kept, some behind the ACK", join(requests(1, 2), acks(2, 3), requests(even...), acks(40, 41)), counts{missed: 14}},
		{"a NAK of what was never sent", join(requests(1, 2), acks(1, 3), []step{{5000, 'n', 1}}, requests(3), acks(3, 4), []step{{4, 'r', 200_000}}, acks(4, 5)), counts{}},
		{"the last of many isn't acknowledged", join(requests(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), acks(1, 12), again(1, 12), acks(12, 13), requests(13)),
			counts{again: 1, downstream: 1}},
		{"what was sent again is asked for", join(sequence(1, 61), []step{{2, 'n', 100}}, sequence(2, 61), []step{{4, 'n', 100}}, sequence(4, 61), acks(60, 61)), counts{again: 116, downstream: 2}},
		{"a READ that did not pass is asked for", []step{{1, 'q', 0}, {3, 'r', 0}, {2, 'n', 20}, {2, 'q', 5}, {3, 'r', 0}}, counts{again: 2, upstream: 1}},
		{"late behind many that were sent again", join(sequence(1, 2), sequence(3, 61), []step{{2, 'n', 100}}, sequence(2, 50), requests(2), sequence(50, 62)), counts{again: 59}},
		{"a READ again, of a requester that may be far away", join(reads(1, 7), []step{{6, 'q', 10_000}, {6, 'd', 9}}, reads(7, 11)), counts{again: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var conn Connection
			now := int64(1e9)
			for _, s := range c.steps {
				now += max(s.wait, 1) * 1000
				p := Packet{Time: now, PSN: s.psn, Len: 1100, Data: 1024, Opcode: packet.RCWriteOnly, AckReq: true}
				from := 0
				switch s.kind {
				case 'q':
					p.Opcode, p.Data, p.Message = packet.RCReadRequest, 0, 1024
				case 'd':
					p.Opcode, from = packet.RCReadRespOnly, 1
				case 'a', 'n':
					p, from = Packet{Time: now, PSN: s.psn, Len: 66, Opcode: packet.RCAcknowledge, HasAETH: true}, 1
				}
				if s.kind == 'n' {
					p.Syndrome = 3 << 5
				}
				conn.Observe(from, &p)
			}
			conn.snapshot(now)
			h := &conn.Half[0]
			if got := (counts{h.copies, h.AgainRequests.Packets + h.AgainResponses.Packets, h.LostUpstream, h.LostDownstream, h.NotCaptured}); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
