package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestPolicySwapSender: what is sent after a new policy came is from its addresses and of its DSCP, congestion being as it was.
func TestPolicySwapSender(t *testing.T) {
	small := data(false, 0)
	small.Size = 100 // less than the kilobyte by which a metric changes
	p := notifying(byAnything...)
	p.Ports[wan].Disclose = false
	s := newScene(t, p, nil)
	s.fill(6, data(false, 0))
	s.arrive(small.Frame())
	q := *p
	q.Build.IPv4, q.Build.DSCP = address("192.0.2.77"), 5
	if err := s.Plane.SetPolicy(&q); err != nil {
		t.Fatal(err)
	}
	s.arrive(small.Frame())
	notes := s.finish()
	for i, n := range notes {
		kind, parsed := kindOf(n)
		want := &p.Build
		if i == len(notes)-1 {
			want = &q.Build
		}
		if kind != packet.ExtendedCNP || parsed.Src != want.IPv4 || parsed.DSCP != want.DSCP || !packet.VerifyICRC(n.Octets, &parsed) {
			t.Errorf("notification %d: %v from %v, DSCP %d", i, kind, parsed.Src.Netip(), parsed.DSCP)
		}
	}
	if len(notes) != 4 {
		t.Errorf("%d notifications, expected 4", len(notes))
	}
}

// TestPolicySwap: a worker goes by a new policy from its next burst on.
func TestPolicySwap(t *testing.T) {
	s := newScene(t, notifying(byAnything...), nil)
	s.fill(6, data(true, 0))
	quiet := notifying()
	quiet.QPMap = knownQPs(t)
	quiet.Ports[wan].Thresholds = congestion.Thresholds{KMin: 1e6, KMax: 2e6}
	if s.Plane.SetPolicy(testkit.DefaultPolicy(1)) == nil {
		t.Error("a policy for one port was taken for two")
	}
	if err := s.Plane.SetPolicy(quiet); err != nil {
		t.Fatal(err)
	}
	s.fill(3, data(true, 0))
	next := notifying(grant("fd00:18::/32", packet.LongHaulCNPICMPv6))
	next.QPMap = knownQPs(t)
	if err := s.Plane.SetPolicy(next); err != nil {
		t.Fatal(err)
	}
	s.fill(1, data(true, 0))
	if n := s.Count(wan, counters.ECNMarked); n != 3 {
		t.Errorf("%d marked, expected 3", n)
	}
	notes := s.finish()
	var kinds []packet.Notification
	for _, n := range notes {
		k, _ := kindOf(n)
		kinds = append(kinds, k)
	}
	if len(kinds) != 3 || kinds[0] != packet.FastCNP || kinds[1] != packet.FastCNP || kinds[2] != packet.LongHaulCNPICMPv6 {
		t.Errorf("notified by %v", kinds)
	}
}

// TestPolicySwapResume: a sender that was asked to slow down gets a Resume only if the present policy lets it have that format, and not once its
// connection has ended.
func TestPolicySwapResume(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *scene, p *dataplane.Policy)
		notes  int
		why    string
	}{
		{"unchanged", func(*scene, *dataplane.Policy) {}, 2, ""},
		{"disabled", func(_ *scene, p *dataplane.Policy) { p.Who.Enabled[packet.LongHaulCNP] = false }, 1, "not-enabled"},
		{"no longer an endpoint", func(_ *scene, p *dataplane.Policy) { p.Who.Endpoints = notifying().Who.Endpoints }, 1, "no-endpoint"},
		{"another format granted", func(_ *scene, p *dataplane.Policy) {
			p.Who.Endpoints = notifying(grant("198.18.0.0/16", packet.StandardCNP)).Who.Endpoints
		}, 1, "nothing-accepted"},
		{"behind a proxy", func(_ *scene, p *dataplane.Policy) { p.Proxies = behind(t, "198.18.0.0/16", proxy4) }, 1, "action-not-expressible"},
		{"connection released", func(s *scene, _ *dataplane.Policy) { s.Plane.Worker(0).CloseRecords() }, 1, "source-qp-unknown"},
	} {
		p := notifying(grant("198.18.0.0/16", packet.LongHaulCNP))
		p.QPMap = knownQPs(t)
		p.Ports[wan].PerFlow, p.Ports[wan].Resumes, p.Ports[wan].ResumePercent = 60_000_000, true, 50
		s := newScene(t, p, nil)
		s.fill(6, data(false, 0))
		q, who := *p, *p.Who
		q.Who = &who
		c.change(s, &q)
		if err := s.Plane.SetPolicy(&q); err != nil {
			t.Fatal(err)
		}
		s.Drain()
		if n := s.suppressed(fabric)[c.why]; c.why != "" && n != 1 {
			t.Errorf("%s: suppressed %v, expected 1 for %s", c.name, s.suppressed(fabric), c.why)
		}
		if notes := s.finish(); len(notes) != c.notes {
			t.Errorf("%s: %d notifications, expected %d", c.name, len(notes), c.notes)
		}
	}
}
