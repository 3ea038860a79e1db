package nictest_test

import (
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/nictest"
)

// TestSilence: a test whose sender is silent ends in bounded time, with words that say what to check.
func TestSilence(t *testing.T) {
	const second = 1_000_000_000
	p, err := nictest.NewPeer(nictest.Config{Plan: nictest.Plan(true, true, false), Addresses: addresses}, peerAddr, packet.MAC{2, 0, 0, 0, 0, 1}, 5*second)
	if err != nil {
		t.Fatal(err)
	}
	for now := int64(0); now < 6*second; now += second / 10 {
		if p.Look(now); p.Done() && now <= 5*second {
			t.Fatalf("it ends after %d ns: %v", now, p.Err())
		}
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "nothing came for fd00::1 in 5 s") {
		t.Errorf("%v", err)
	}
}

// TestNeighbors: the peer answers ARP and Neighbor Solicitations for its address, and for no other.
func TestNeighbors(t *testing.T) {
	own, host := packet.MAC{2, 0, 0, 0, 0, 1}, packet.MAC{2, 0, 0, 0, 0, 9}
	for _, asked := range []packet.Addr{addresses.Gateway4, packet.AddrFrom4([]byte{192, 0, 2, 77})} {
		p, err := nictest.NewPeer(nictest.Config{}, addresses.Gateway4, own, 1e9)
		if err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, 60)
		copy(frame, "\xff\xff\xff\xff\xff\xff")
		copy(frame[6:], host[:])
		frame[12], frame[13] = 8, 6
		(&packet.ARP{Operation: packet.ARPRequest, SenderMAC: host, SenderIP: packet.AddrFrom4([]byte{192, 0, 2, 9}), TargetIP: asked}).Put(frame[14:])
		p.Received(1, nil, frame, len(frame))
		out := make([]byte, 128)
		_, any := p.Due()
		n := p.Next(1, out)
		if asked != addresses.Gateway4 {
			if any || n != 0 {
				t.Errorf("it answers for another address")
			}
			continue
		}
		if a, ok := packet.DecodeARP(out[14:n]); !any || !ok || a.Operation != packet.ARPReply || a.SenderMAC != own || a.SenderIP != asked || packet.MAC(out[:6]) != host {
			t.Errorf("%v, %d octets: %+v", any, n, a)
		}
	}
}

// TestDeaf: a NIC that obeys nothing ignores every form, and its profile says so.
func TestDeaf(t *testing.T) {
	r := nicOf(t, "deaf.yaml", gigabit.line, text("name: deaf\nsource: a test\nobeys: []\n"))
	report := nictest.NewReport(measure(t, nictest.Plan(true, true, false), r, gigabit), nictest.Identity{}, "fd00::2", "test")
	if report.Verdict != nictest.IgnoresCNPs || len(report.Suggest.Formats) != 0 || !strings.Contains(report.File, "obeys: []") {
		t.Errorf("%s, suggests %+v\n%s", report.Verdict, report.Suggest, report.File)
	}
	for _, f := range report.Forms {
		if want := map[bool]string{true: nictest.Obeyed, false: nictest.Ignored}[f.Form == "pfc"]; f.Verdict != want {
			t.Errorf("%s: %s, want %s", f.Form, f.Verdict, want)
		}
	}
	nicOf(t, "measured.yaml", gigabit.line, text(report.File))
}

// TestIdentity: what tools print about a NIC, and its counters.
func TestIdentity(t *testing.T) {
	var d nictest.Identity
	if err := d.Paste("driver: mlx5_core\nversion: 6.1.0\nfirmware-version: 22.36.1010 (MT_0000000359)\nbus-info: 0000:3b:00.0\n"); err != nil || d.Name != "mlx5_core" || d.Facts["bus-info"] != "0000:3b:00.0" {
		t.Errorf("%v: %+v", err, d)
	}
	if err := d.Paste("nothing"); err == nil {
		t.Error("text without facts is accepted")
	}
	before, err := nictest.ParseCounts("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/rp_cnp_handled:17\nrp_cnp_ignored 3\n")
	if err != nil || before["rp_cnp_handled"] != 17 || before["rp_cnp_ignored"] != 3 {
		t.Errorf("%v: %v", err, before)
	}
	if _, err := nictest.ParseCounts("no counters 7"); err == nil {
		t.Error("text without counters is accepted")
	}
	r := nictest.Report{Verdict: nictest.ObeysCNPs, Result: nictest.Result{Trials: []nictest.TrialResult{{Sent: 100}}}}
	if r.Compare(before, nictest.Counts{"rp_cnp_handled": 107, "rp_cnp_ignored": 8}); r.Counters.Sent != 100 || r.Counters.Increased["rp_cnp_handled"] != 90 ||
		!strings.Contains(strings.Join(r.Counters.Says, ";"), "100 CNPs sent, 90 handled, 5 ignored, 5 not counted") {
		t.Errorf("%+v", r.Counters)
	}
}
