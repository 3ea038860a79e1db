package replay_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestHealthOfCopies: a capture at both sides of a router has each packet twice, with another TTL or hop limit and other MAC addresses. Copies aren't
// retransmissions however late they come, also where the sender doesn't number its packets; and what was sent again is still counted, once.
func TestHealthOfCopies(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		for _, lag := range []int64{2 * usec, 300 * usec, 5 * msec} {
			for _, loss := range []bool{false, true} {
				t.Run(fmt.Sprintf("IPv6 %v, %v, loss %v", ipv6, lag, loss), func(t *testing.T) {
					job := lossy{op: endpoint.Write, bytes: 16384, messages: 60, timeout: 40 * msec, ipv6: ipv6, delay: [2]int64{20 * usec, 60 * usec}}
					if loss {
						job.rule = loses(100, 0, true)
					}
					truth, path := job.run(t, 1)
					once := frames(t, readFile(t, path))
					for i := range once {
						if !ipv6 {
							once[i].octets[packet.EthernetLen+4], once[i].octets[packet.EthernetLen+5] = 0, 0
						}
					}
					all := slices.Clone(once)
					for _, f := range once {
						f.octets, f.at = slices.Clone(f.octets), f.at+lag
						hops := packet.EthernetLen + 8
						if ipv6 {
							hops = packet.EthernetLen + 7
						}
						f.octets[hops]--
						f.octets[5] ^= 0x40
						f.octets[11] ^= 0x40
						all = append(all, f)
					}
					slices.SortStableFunc(all, func(x, y frame) int { return int(x.at - y.at) })
					want, again := uint64(len(once)), uint64(0)
					for _, n := range truth.Causes() {
						again += n
					}
					r := healthOf(t, rewritten(t, all))
					s := &r.Summary
					if s.Duplicates < want*95/100 || s.Duplicates > want || s.Retransmitted.Packets*100 < again*95 || s.Retransmitted.Packets*100 > again*105 {
						t.Errorf("%d copies and %d sent again, want %d and %d", s.Duplicates, s.Retransmitted.Packets, want, again)
					}
					if !slices.ContainsFunc(r.Verdicts, func(v health.Verdict) bool { return v.Name == health.Duplication }) {
						t.Errorf("verdicts %+v, want %s", r.Verdicts, health.Duplication)
					}
				})
			}
		}
	}
}
