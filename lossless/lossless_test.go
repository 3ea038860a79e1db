package lossless

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestHeadroom: the figures of docs/lossless.md, and others, calculated by hand.
func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		name   string
		link   Link
		want   uint64
		frames int
	}{
		// (3000 + 2018 + 100,000) ns x 12.5 bytes + 3 x 9046 + 84
		{"100 Gbps, 300 m", Link{Speed: 100e9, Cable: 300, Frame: 9022, Response: Response(100e9), Reaction: 100_000}, 1_339_947, 15952},
		// and 100,000 ns x 1.25 bytes, what leaves unseen
		{"two workers, WAN of 10 Gbps", Link{Speed: 100e9, Cable: 300, Frame: 9022, Response: Response(100e9), Reaction: 100_000, Shared: 10e9}, 1_464_947, 17440},
		// (10 + 15,000,000 + 10,000,000) ns / 16 + 3 x 1546 + 84
		{"500 Mbps, 1 m, slow host", Link{Speed: 500e6, Cable: 1, Frame: 1522, Response: 15_000_000, Reaction: 10_000_000}, 1_567_223, 18658},
		{"10 Tbps, 100 km, a second", Link{Speed: 10e12, Cable: 100_000, Frame: 16_022, Response: 1e9, Reaction: 1e9}, 2_501_250_048_222, 29_776_786_289},
	} {
		if got := c.link.Headroom(); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
		if got := c.link.Frames(); got != c.frames {
			t.Errorf("%s: %d frames, want %d", c.name, got, c.frames)
		}
	}
}

// TestResponse: IEEE 802.3 31B.3.7 at the speeds that it names, in ns.
func TestResponse(t *testing.T) {
	for speed, want := range map[uint64]int64{1e9: 30_721, 10e9: 3073, 25e9: 1639, 40e9: 1511, 100e9: 2018, 400e9: 1159, math.MaxUint64: 1} {
		if got := Response(speed); got != want {
			t.Errorf("%d bit/s: %d ns, want %d", speed, got, want)
		}
	}
}

func TestPauseTime(t *testing.T) {
	for _, c := range []struct {
		quanta uint16
		speed  uint64
		want   int64
	}{{0, 1e9, 0}, {1, 1e9, 512}, {1, 100e9, 5}, {MaxQuanta, 100e9, 335_539}, {MaxQuanta, 100_000, 335_539_200_000}} {
		if got := PauseTime(c.quanta, c.speed); got != c.want {
			t.Errorf("%d quanta at %d bit/s: %d ns, want %d", c.quanta, c.speed, got, c.want)
		}
	}
}

var thresholds = Thresholds{XOff: 1000, XOn: 400, XOffFrames: 10, XOnFrames: 4, Refresh: 50, Limit: 180}

// TestXoff: depths over time, and the signal of each.
func TestXoff(t *testing.T) {
	type look struct {
		now    int64
		bytes  uint64
		frames int
		want   Signal
	}
	for name, looks := range map[string][]look{
		"never above XOff":           {{0, 0, 0, Silent}, {1, 1000, 10, Silent}, {2, 400, 4, Silent}},
		"by bytes":                   {{0, 1001, 1, Stop}, {1, 401, 1, Silent}, {2, 400, 1, GoOn}, {3, 1000, 1, Silent}, {4, 1001, 1, Stop}},
		"by frames":                  {{0, 1, 11, Stop}, {1, 1, 5, Silent}, {2, 1, 4, GoOn}, {3, 1, 10, Silent}},
		"XOn is both":                {{0, 1001, 11, Stop}, {1, 400, 5, Silent}, {2, 401, 4, Silent}, {3, 400, 4, GoOn}},
		"refreshed":                  {{0, 1001, 1, Stop}, {49, 1001, 1, Silent}, {50, 900, 1, Again}, {51, 900, 1, Silent}, {101, 900, 1, Again}, {102, 0, 0, GoOn}},
		"XOn ahead of a refresh":     {{0, 1001, 1, Stop}, {60, 0, 0, GoOn}},
		"expires":                    {{0, 1001, 1, Stop}, {179, 900, 1, Again}, {180, 900, 1, Expired}, {181, 2000, 1, Silent}, {182, 400, 1, Silent}, {183, 1001, 1, Stop}},
		"the limit counts from XOff": {{0, 0, 0, Silent}, {1000, 1001, 1, Stop}, {1179, 1001, 1, Again}, {1180, 1001, 1, Expired}},
	} {
		x := Xoff{}
		for _, l := range looks {
			if got := x.Update(&thresholds, l.now, l.bytes, l.frames); got != l.want {
				t.Errorf("%s: at %d: %d, want %d", name, l.now, got, l.want)
			}
		}
	}
}

// TestXoffProperties: if Update is called when Due says, each pause is renewed in time, and none lasts longer than the limit.
func TestXoffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, now, since, last := Xoff{}, int64(0), int64(0), int64(0)
		for range 100 {
			step := rapid.Int64Range(0, 40).Draw(t, "step")
			if due, any := x.Due(&thresholds); any {
				step = min(step, max(due-now, 0))
			}
			now += step
			signal := x.Update(&thresholds, now, rapid.Uint64Range(0, 1500).Draw(t, "bytes"), rapid.IntRange(0, 12).Draw(t, "frames"))
			switch signal {
			case Stop:
				since = now
			case GoOn, Expired:
				if x.Stopped() {
					t.Fatal("stopped after it may go on")
				}
			}
			if signal != Silent {
				last = now
			}
			if x.Stopped() && (now-last >= thresholds.Refresh || now-since >= thresholds.Limit) {
				t.Fatalf("at %d stopped since %d, last said at %d", now, since, last)
			}
		}
	})
}

// TestWatch: a pause that comes and goes is no storm.
func TestWatch(t *testing.T) {
	d := Watchdog{Detection: 100}
	type look struct {
		now    int64
		paused bool
		want   Event
	}
	for name, looks := range map[string][]look{
		"no pause":          {{0, false, NoEvent}, {1000, false, NoEvent}},
		"short pauses":      {{0, true, NoEvent}, {99, true, NoEvent}, {100, false, NoEvent}, {101, true, NoEvent}, {200, true, NoEvent}},
		"detected once":     {{10, true, NoEvent}, {109, true, NoEvent}, {110, true, Detected}, {111, true, NoEvent}, {1000, true, NoEvent}},
		"restored once":     {{0, true, NoEvent}, {100, true, Detected}, {101, false, NoEvent}, {200, false, NoEvent}, {201, false, Restored}, {400, false, NoEvent}},
		"paused meanwhile":  {{0, true, NoEvent}, {100, true, Detected}, {101, false, NoEvent}, {190, true, NoEvent}, {195, false, NoEvent}, {294, false, NoEvent}, {295, false, Restored}},
		"a storm once more": {{0, true, NoEvent}, {100, true, Detected}, {110, false, NoEvent}, {210, false, Restored}, {211, true, NoEvent}, {311, true, Detected}},
	} {
		w := Watch{}
		for _, l := range looks {
			if due, any := w.Due(&d); any && l.want != NoEvent && due > l.now {
				t.Errorf("%s: due at %d only", name, due)
			}
			if got := w.Update(&d, l.now, l.paused); got != l.want {
				t.Errorf("%s: at %d: %d, want %d", name, l.now, got, l.want)
			}
			if _, any := w.Due(&d); any != (l.paused != w.stormed) {
				t.Errorf("%s: at %d: %v that an event is due", name, l.now, any)
			}
		}
	}
}
