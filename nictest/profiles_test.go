package nictest_test

import (
	"math"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/nictest"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

var (
	senderAddr = packet.AddrFrom(netip.MustParseAddr("fd00::2"))
	peerAddr   = packet.AddrFrom(netip.MustParseAddr("fd00::1"))
	addresses  = nictest.Addresses{
		Gateway4: packet.AddrFrom(netip.MustParseAddr("192.0.2.1")), Gateway6: packet.AddrFrom(netip.MustParseAddr("2001:db8::1")), Priority: 3,
	}
)

// nicOf is the software endpoint with the reaction point of a NIC's file.
func nicOf(t *testing.T, nic string) endpoint.ReactionConfig {
	t.Helper()
	const text = `{name: nic, length: 1ms, topology: {dumbbell: {senders: 1, spans: [{rate: 10Gbps, delay: 1us}]}}, hosts: {nic: NIC}, traffic: [{incast: {from: 0, to: 1}}]}`
	s, err := scenario.Parse("nic.yaml", []byte(strings.Replace(text, "NIC", nic, 1)), nil, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Config(scenario.LongHaulCNP)
	if err != nil {
		t.Fatal(err)
	}
	h := c.Host
	h.Reaction.LineRate = 10e9
	c.EachHost(0, &h)
	return h.Reaction
}

func measure(t *testing.T, plan []nictest.Trial, r endpoint.ReactionConfig) *nictest.Result {
	t.Helper()
	result, err := nictest.Simulate(nictest.Config{Plan: plan, Addresses: addresses},
		nictest.Simulation{Sender: endpoint.Config{Addr: senderAddr, LineRate: 10e9, MTU: 4096, Reaction: r}, Peer: peerAddr, Delay: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestProfiles: a measured profile, simulated again, gives the same rates over time.
func TestProfiles(t *testing.T) {
	for _, nic := range scenario.NICs() {
		t.Run(nic, func(t *testing.T) {
			r := nicOf(t, nic)
			a := measure(t, nictest.Plan(false, true, false), r)
			for i := range a.Trials {
				x := &a.Trials[i]
				t.Logf("%-30s %5d %v first %6d us depth %.3f recovered %d us rate %.0f", x.Name, x.Sent, x.Response.Reduced, x.Response.First/1000, x.Response.Depth, x.Response.Recovered/1000, x.Response.Before/1e6)
			}
			t.Logf("true %+v", r.DCQCN)
			t.Logf("fit %.4f %+v", a.FitError, a.Profile)
			again := r
			again.DCQCN, again.ReactionDelay, again.ReactionDelayMax = a.Profile.DCQCN, a.Profile.Delay, a.Profile.DelayMax
			b := measure(t, nictest.Plan(false, true, false), again)
			for i := range a.Trials {
				x, y := &a.Trials[i], &b.Trials[i]
				n := min(len(x.Points), len(y.Points))
				sum, width := 0.0, 0.0
				for j := range n {
					p, q := x.Points[j], y.Points[j]
					sum += math.Abs(p.Rate-q.Rate) * float64(p.Width)
					width += float64(p.Width) * x.Response.Before
				}
				t.Logf("%s differs by %.4f", x.Name, sum/width)
				if sum/width > 0.05 {
					t.Errorf("%s: %f", x.Name, sum/width)
				}
			}
		})
	}
}
