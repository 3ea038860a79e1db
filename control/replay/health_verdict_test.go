package replay_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/lossypath"
)

// TestVerdicts: each cause gives its verdict, and a healthy path none.
func TestVerdicts(t *testing.T) {
	bigLost := func(_ *rand.Rand, from int, behind bool, _ int, p *packet.Parsed) lossypath.Fate {
		return lossypath.Fate{Lost: from == 0 && behind && p.Len > 1000}
	}
	twice := func(r *rand.Rand, from int, behind bool, _ int, _ *packet.Parsed) lossypath.Fate {
		return lossypath.Fate{Twice: from == 0 && !behind && r.IntN(30) == 0}
	}
	short := [2]int64{20 * usec, 100 * usec}
	for _, l := range []lossy{
		{name: "", op: endpoint.Write, bytes: 65536, messages: 40, window: 65536, timeout: 20 * msec, delay: short},
		{name: "", op: endpoint.Read, bytes: 65536, messages: 20, timeout: 20 * msec, delay: short, ipv6: true},
		{name: "", op: endpoint.Send, bytes: 1000, messages: 400, timeout: 20 * msec, delay: short, both: true},
		{name: "", op: endpoint.Write, bytes: 1 << 20, messages: 4, timeout: 200 * msec, delay: [2]int64{usec, 15 * msec}},
		{name: health.BlackHole, op: endpoint.Write, bytes: 2148, messages: 1, timeout: 4 * msec, delay: short, rule: bigLost},
		{name: health.LossDownstream, op: endpoint.Write, bytes: 65536, messages: 40, timeout: 20 * msec, delay: short, rule: loses(200, 0, true)},
		{name: health.LossUpstream, op: endpoint.Write, bytes: 65536, messages: 40, timeout: 20 * msec, delay: short, rule: loses(200, 0, false)},
		{name: health.AckLoss, op: endpoint.Send, bytes: 512, messages: 200, window: 1024, timeout: 10 * msec, delay: short, rule: loses(20, 1, true)},
		{name: health.Duplication, op: endpoint.Write, bytes: 65536, messages: 40, window: 32768, timeout: 20 * msec, delay: short, rule: twice},
		{name: "", op: endpoint.Write, bytes: 65536, messages: 80, window: 131072, timeout: 200 * msec, delay: [2]int64{usec, 15 * msec}}, // for 1 s
		{name: health.WindowLimit, op: endpoint.Write, bytes: 65536, messages: 90, window: 16384, timeout: 200 * msec, delay: [2]int64{usec, 15 * msec}},
		{name: health.ShortTimeOut, op: endpoint.Send, bytes: 4096, messages: 100, window: 16384, timeout: 4 * msec, delay: [2]int64{0, 15 * msec}},
		{name: health.Asymmetric, op: endpoint.Write, bytes: 65536, messages: 40, window: 32768, timeout: 20 * msec, delay: short, hidden: 2},
	} {
		t.Run(l.name, func(t *testing.T) {
			_, path := l.run(t, 2)
			r := healthOf(t, path)
			switch {
			case l.name == "" && len(r.Verdicts) > 0:
				t.Errorf("a healthy path has verdicts %+v", r.Verdicts)
			case l.name != "" && !slices.ContainsFunc(r.Verdicts, func(v health.Verdict) bool { return v.Name == l.name }):
				t.Errorf("got %+v, want %s", r.Verdicts, l.name)
			}
		})
	}
}
