package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestTwinsAreListedForProxies: workers list their flows only once the policy lets in notifications that may come without tags: to the gateway as a
// proxy, or, past it, to another one. After a few steps such a notification finds its flow.
func TestTwinsAreListedForProxies(t *testing.T) {
	const flows = 500
	for name, late := range map[string]*dataplane.Policy{"the gateway is a proxy": proxyFor(packet.StandardCNP), "enforces": enforcing()} {
		p := testkit.DefaultPolicy(2)
		s := newScene(t, p, func(s *testkit.Setup) {
			s.Workers, s.Buffers, s.Rate = 2, 4096, 10e9
			s.Static = nil
			s.Change = func(c *dataplane.Config) { c.Ports[wan].Paced = 50e6 }
		})
		f := data(false, 0)
		for worker := range 2 {
			for n := range uint32(flows) {
				f.DestQP = 100 + n
				s.InjectAt(t, worker, fabric, f.Frame())
				s.Settle()
			}
		}
		s.Drain()
		listed := func() (n int) {
			for worker := range 2 {
				if s.Plane.Worker(worker).TwinsListed() {
					n++
				}
			}
			return n
		}
		if n := listed(); n != 0 {
			t.Errorf("%s: %d workers list their flows, and nothing asks for any", name, n)
		}
		if err := s.Plane.SetPolicy(late); err != nil {
			t.Fatal(err)
		}
		f.DestQP = 100 + 7
		note := asking(t, f.Frame(), own4, 5)
		if late.Proxy == nil {
			var q packet.Parsed
			frame := f.Frame()
			packet.Parse(frame, uint32(len(frame)), &q)
			target, _ := cnpgen.TargetOf(frame, &q)
			note = make([]byte, cnpgen.MaxLen)
			note = note[:cnpgen.ProxyNotification(note, &target, &far, frame, &q, address("198.18.250.250"), 1)]
		}
		ambiguous := func() uint64 {
			return refused(s.Rig, wan)["ambiguous"] + (&enforceScene{scene: s}).enforceCounts()["ambiguous"]
		}
		s.arriveAt(wan, note)
		if ambiguous() != 1 {
			t.Errorf("%s: a notification counts before all flows are listed", name)
		}
		for range flows / 64 {
			s.Plane.Worker(0).Step()
			s.Plane.Worker(1).Step()
		}
		if n := listed(); n != 2 {
			t.Errorf("%s: %d workers list their flows", name, n)
		}
		s.arriveAt(wan, note)
		if n := ambiguous(); n != 1 {
			t.Errorf("%s: %d ambiguous notifications", name, n)
		}
		s.Drain()
		s.Close(t)
	}
}
