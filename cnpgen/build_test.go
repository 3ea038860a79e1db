package cnpgen

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestBuild: the table has a builder of each kind, for a data packet and where it can for a Resume, and what it builds is of that kind.
func TestBuild(t *testing.T) {
	for kind := range packet.Notification(packet.SentNotifications) {
		frame, p := flow6.carrying(16).frame()
		target, _ := TargetOf(frame, &p)
		r := Request{LongHaul: severe, Target: &target, Port: 2, RTT: 1_000_000, To: proxy6, Frame: frame, Packet: &p}
		out := make([]byte, MaxLen)
		check := func(what string) {
			n := Build(out, kind, &testGateway, &r)
			var q packet.Parsed
			packet.Parse(out[:n], uint32(n), &q)
			if got := packet.Classify(out[:n], &q, &packet.DefaultCodePoints); n == 0 || got != kind.Received() || r.Trace != CarriesNoTrace {
				t.Errorf("%v, %s: %d octets of %v, trace %d", kind, what, n, got, r.Trace)
			}
		}
		check("with a packet")
		r.Frame, r.Packet, r.Action = nil, nil, Resume
		if kind.Expresses(Resume) {
			check("Resume")
		} else if n := Build(out, kind, &testGateway, &r); kind == packet.ProxyNotification && n != 0 {
			t.Error("a notification to a proxy without a packet")
		}
	}
}

// TestPauseOfRate: a sender that can only be paused is paused for that part of RTT_est by which its rate is to be reduced, at least 1 us.
func TestPauseOfRate(t *testing.T) {
	for _, c := range []struct {
		action    Action
		parameter uint16
		rtt       int64
		want      uint16
	}{{Pause, 77, 0, 77}, {RateReduce, 30, 1_000_000, 300}, {RateReduce, 30, 0, 1}, {RateReduce, 1, -5, 1}, {RateReduce, 100, 1e9, 0xffff}} {
		r := Request{LongHaul: LongHaul{Action: c.action, Parameter: c.parameter}, RTT: c.rtt}
		if got := r.pause(); got != c.want {
			t.Errorf("%+v: %d us", c, got)
		}
	}
}
