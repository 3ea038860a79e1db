package nictest_test

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/nictest"
)

const ownQP = 17 // of the sender

// noisy measures a sender of 200 Mbit/s that pauses for 0.3 ms of each millisecond by itself, and for so long after a notification that stops it.
func noisy(t *testing.T, stops func(p *packet.Parsed) bool) *nictest.Report {
	t.Helper()
	const us, pause, size, gap = 1000, 300_000, 1000, 42_000 // ns, bytes
	plan := slices.DeleteFunc(nictest.Plan(true, true, false), func(x nictest.Trial) bool { return x.Group != nictest.FormOf && x.Group != nictest.Flood })
	s, err := nictest.NewSession(0, nictest.Config{Plan: plan, Addresses: addresses}, nictest.Sender{Addr: senderAddr, Peer: peerAddr, QP: ownQP})
	if err != nil {
		t.Fatal(err)
	}
	var p packet.Parsed
	out, told, next := make([]byte, 512), int64(-pause), int64(0)
	for now := int64(0); !s.Done(); now += 5 * us {
		if now > 600_000_000*us {
			t.Fatalf("still in %q after ten minutes", s.Current())
		}
		if n := s.Next(now, out); n > 0 {
			if packet.Parse(out[:n], uint32(n), &p); stops(&p) {
				told = now
			}
		}
		if now >= next && now%(1000*us) >= pause && now-told >= pause {
			s.Data(now, size)
			next = now + gap
		}
	}
	return nictest.NewReport(s.Result(), nictest.Identity{}, "fd00::2", "test")
}

// TestNoisySender: a sender whose rate varies by itself is tried with longer bursts, so that it is seen to obey. One that sends less while it receives
// many packets, whatever they say, obeys nothing.
func TestNoisySender(t *testing.T) {
	for name, c := range map[string]struct {
		stops         func(p *packet.Parsed) bool
		verdict, form string
	}{
		"obeys":   {func(p *packet.Parsed) bool { return p.DestQP == ownQP }, nictest.ObeysCNPs, nictest.Obeyed},
		"ignores": {func(*packet.Parsed) bool { return false }, nictest.IgnoresCNPs, nictest.Ignored},
		"busy":    {func(*packet.Parsed) bool { return true }, nictest.IgnoresCNPs, nictest.Ignored},
	} {
		if r := noisy(t, c.stops); r.Verdict != c.verdict || r.Forms[0].Form != "standard-cnp" || r.Forms[0].Verdict != c.form {
			t.Errorf("%s: %s, %+v", name, r.Verdict, r.Forms)
		}
	}
}

// TestUnsteadySender: of a sender whose rate varies too much to show an effect, nothing is said, and nothing suggested.
func TestUnsteadySender(t *testing.T) {
	trials := []nictest.TrialResult{{Trial: nictest.Trial{Form: "standard-cnp", Group: nictest.FormOf}, Sent: 50}}
	r := nictest.NewReport(&nictest.Result{Unsteady: true, Trials: trials}, nictest.Identity{}, "fd00::2", "test")
	if r.Verdict != nictest.Unknown || r.Forms[0].Verdict != nictest.Unknown || len(r.Suggest.Formats) > 0 {
		t.Errorf("%s, %+v, suggests %+v", r.Verdict, r.Forms, r.Suggest)
	}
}
