package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/telemetry"
)

// wire is a device whose cables are plugged and pulled by the test.
type wire struct {
	cable, admin []bool
	blind        []bool // doesn't report its link
	refuse       []error
	calls        []string
	// rise is how long a link takes to come up once its cable is in and it isn't taken down; both ends of it start again then.
	rise  []time.Duration
	begun []time.Time // when it began to come up; zero: it may not
	now   time.Time
}

func newWire(ports int) *wire {
	w := &wire{cable: make([]bool, ports), admin: make([]bool, ports), blind: make([]bool, ports), refuse: make([]error, ports),
		rise: make([]time.Duration, ports), begun: make([]time.Time, ports)}
	for i := range ports {
		w.cable[i], w.admin[i] = true, true
	}
	return w
}

func (w *wire) Backend(int) burst.Backend { return nil }
func (w *wire) Enter(int) (func(), error) { return func() {}, nil }

func (w *wire) Counters(int) (telemetry.Values, error)    { return telemetry.Values{}, nil }
func (w *wire) Watch(context.Context, func(Notice)) error { return nil }

func (w *wire) LinkUp(port int) (up bool, err error) {
	if w.blind[port] {
		return false, errors.New("can't tell")
	}
	return w.up(port), nil
}

// up moves a link on to the present time.
func (w *wire) up(port int) bool {
	if !w.cable[port] || !w.admin[port] {
		w.begun[port] = time.Time{}
		return false
	}
	if w.begun[port].IsZero() {
		w.begun[port] = w.now
	}
	return w.now.Sub(w.begun[port]) >= w.rise[port]
}

func (*wire) Describe(int) report.Device { return report.Device{} }

func (w *wire) SetLink(port int, up bool) error {
	w.calls = append(w.calls, fmt.Sprintf("%d %v", port, up))
	if w.refuse[port] != nil {
		return w.refuse[port]
	}
	w.admin[port] = up
	return nil
}

// watched is links over such a device, and the time.
type watched struct {
	*wire
	config *config.Config
	links  *links
	now    time.Time
	log    *bytes.Buffer
}

func newWatched(pairs int) *watched {
	c := &config.Config{}
	for i := range 2 * pairs {
		c.Ports = append(c.Ports, config.Port{Name: fmt.Sprint("port", i), PortConfig: dataplane.PortConfig{Peer: i ^ 1}})
	}
	w := &watched{wire: newWire(2 * pairs), config: c, now: time.Unix(1000, 0), log: &bytes.Buffer{}}
	w.links = newLinks(c, w.wire, zerolog.New(w.log))
	return w
}

// after looks repeatedly until this time has passed, and returns the devices' link settings in it.
func (w *watched) after(d time.Duration) string {
	w.calls = nil
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(min(sampleStep, end.Sub(w.now)))
		w.wire.now = w.now
		for i := range w.cable {
			w.up(i)
		}
		w.links.look(w.now)
	}
	return strings.Join(w.calls, ", ")
}

func (w *watched) want(t *testing.T, what string, d time.Duration, calls string) {
	t.Helper()
	if got := w.after(d); got != calls {
		t.Errorf("%s: the calls to the devices are %q, expected %q", what, got, calls)
	}
}

// confirmed is long enough for a change to be seen and passed on.
const confirmed = confirmTime + 2*sampleStep

func TestLinkDownPassesOn(t *testing.T) {
	w := newWatched(2)
	w.want(t, "all up", time.Second, "")
	w.cable[2] = false
	w.want(t, "port 2 goes down", time.Second, "3 false")
	w.cable[3] = false
	w.want(t, "the cable of the port that is held down", time.Second, "")
	w.cable[3] = true
	w.cable[2] = true
	w.want(t, "port 2 comes back", time.Second, "3 true")
	w.want(t, "and stays", 10*time.Second, "")
	w.cable[1] = false
	w.want(t, "the other pair, the other way", time.Second, "0 false")
	w.cable[1] = true
	w.want(t, "and back", time.Second, "0 true")
}

// TestSlowLinksComeUp: links that take from no time to a minute, both of a pair differently, come up after the start without being switched,
// and after a cable was pulled, each within its own time and the peer's.
func TestSlowLinksComeUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWatched(1)
		rise := rapid.Int64Range(0, int64(60*time.Second))
		for i := range w.rise {
			w.rise[i] = time.Duration(rise.Draw(t, "rise"))
		}
		patience := w.rise[0] + w.rise[1] + time.Second
		if calls := w.after(patience); calls != "" || !w.up(0) || !w.up(1) {
			t.Fatalf("links of %v: up %v %v after the start; the calls to the devices are %q", w.rise, w.up(0), w.up(1), calls)
		}
		for range 3 {
			port := rapid.IntRange(0, 1).Draw(t, "port")
			w.cable[port] = false
			w.after(time.Duration(rapid.Int64Range(int64(confirmed), int64(30*time.Second)).Draw(t, "pulled")))
			if w.admin[1-port] {
				t.Fatal("the peer of a port without a cable is up")
			}
			w.cable[port] = true
			if w.after(patience); !w.up(0) || !w.up(1) {
				t.Fatalf("links of %v: up %v %v after a cable was plugged", w.rise, w.up(0), w.up(1))
			}
		}
	})
}

// TestLinkFlaps: a link that fails again and again takes its peer down each time that the peer is up, and doesn't disturb it while it comes
// up; afterwards both are up.
func TestLinkFlaps(t *testing.T) {
	for _, rise := range []time.Duration{0, 3100 * time.Millisecond, 20 * time.Second, 60 * time.Second} {
		w := newWatched(1)
		w.rise[1] = rise
		w.after(rise + time.Second)
		for range 100 {
			w.cable[0] = false
			w.after(500 * time.Millisecond)
			w.cable[0] = true
			w.after(1500 * time.Millisecond)
		}
		if n := strings.Count(w.log.String(), `"message":"The link was set to the state of the peer's link."`); n < 2 || rise == 0 && n != 200 {
			t.Errorf("a link that takes %v: the peer was switched %d times in 100 flaps", rise, n)
		}
		if w.after(rise + time.Second); !w.up(0) || !w.up(1) {
			t.Errorf("a link that takes %v: up %v %v after the flaps", rise, w.up(0), w.up(1))
		}
	}
}

// TestShortGlitch: the peer does not follow a change that ends before it is confirmed.
func TestShortGlitch(t *testing.T) {
	w := newWatched(1)
	w.after(time.Second)
	for range 20 {
		w.cable[0] = false
		w.want(t, "a glitch", confirmTime, "")
		w.cable[0] = true
		w.want(t, "and back", time.Second, "")
	}
}

// TestLinkNeverUp: a port that never had a link takes nothing down; one whose link doesn't come back does, after riseTime.
func TestLinkNeverUp(t *testing.T) {
	w := newWatched(1)
	w.cable[1] = false
	w.want(t, "port 1 was never up", time.Hour, "")
	w.cable[1] = true
	w.want(t, "it comes up", time.Second, "")
	w.cable[0] = false
	w.want(t, "port 0 fails", time.Second, "1 false")
	w.cable[0], w.cable[1] = true, false
	w.want(t, "port 0 is back, the peer's cable was pulled meanwhile", riseTime, "1 true")
	w.want(t, "the peer doesn't come", 2*time.Second, "0 false")
	w.cable[1] = true
	w.want(t, "until it comes", confirmed, "0 true")
}

// TestLinksNeverHoldEachOther: whatever becomes of the cables, and of the device's willingness, at most one port of a pair is held
// down, and once all cables are plugged all links come up.
func TestLinksNeverHoldEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWatched(2)
		port := rapid.IntRange(0, 3)
		t.Repeat(map[string]func(*rapid.T){
			"pull": func(t *rapid.T) { w.cable[port.Draw(t, "port")] = false },
			"plug": func(t *rapid.T) { w.cable[port.Draw(t, "port")] = true },
			"refuse": func(t *rapid.T) {
				w.refuse[port.Draw(t, "port")] = rapid.SampledFrom([]error{nil, errors.New("busy")}).Draw(t, "error")
			},
			"blind": func(t *rapid.T) { w.blind[port.Draw(t, "port")] = rapid.Bool().Draw(t, "blind") },
			"time":  func(t *rapid.T) { w.after(time.Duration(rapid.Int64Range(1, int64(5*time.Second)).Draw(t, "ns"))) },
			"": func(t *rapid.T) {
				for i := range w.admin {
					if !w.admin[i] && !w.admin[i^1] {
						t.Fatalf("ports %d and %d are both held down", i, i^1)
					}
					if w.admin[i] == (w.links.ports[i].phase == held) {
						t.Fatalf("port %d: down %v, phase %v", i, !w.admin[i], w.links.ports[i].phase)
					}
				}
			},
		})
		for i := range w.cable {
			w.cable[i], w.blind[i], w.refuse[i] = true, false, nil
		}
		w.after(riseTime + 2*time.Second)
		for i := range w.admin {
			if !w.admin[i] {
				t.Fatalf("port %d is held down although all is plugged", i)
			}
		}
	})
}

func TestLinkUnsupported(t *testing.T) {
	w := newWatched(1)
	w.after(time.Second)
	w.refuse[1] = fmt.Errorf("port 1: %w", errors.ErrUnsupported)
	w.cable[0] = false
	w.want(t, "down", time.Second, "1 false")
	w.cable[0] = true
	w.want(t, "up", time.Second, "")
	w.cable[0] = false
	w.want(t, "down again", time.Second, "")
	if n := strings.Count(w.log.String(), "can't take its link down"); n != 1 {
		t.Errorf("%d warnings, expected 1:\n%s", n, w.log)
	}
	w.cable[1], w.cable[0] = false, true
	w.want(t, "the other way it works", time.Second, "0 false")
}

// TestLinkRefusedIsTriedAgain: at each look, but the log has it once.
func TestLinkRefusedIsTriedAgain(t *testing.T) {
	w := newWatched(1)
	w.after(time.Second)
	w.refuse[1] = errors.New("firmware")
	w.cable[0] = false
	w.want(t, "down", confirmTime+3*sampleStep, "1 false, 1 false, 1 false")
	if n := strings.Count(w.log.String(), "firmware"); n != 1 {
		t.Errorf("logged %d times, expected once:\n%s", n, w.log)
	}
	w.refuse[1] = nil
	w.want(t, "then it works", time.Second, "1 false")
	w.cable[0] = true
	w.refuse[1] = errors.New("firmware")
	w.want(t, "and again on the way up", confirmTime+2*sampleStep, "1 true, 1 true")
	if n := strings.Count(w.log.String(), "firmware"); n != 2 {
		t.Errorf("logged %d times, expected twice:\n%s", n, w.log)
	}
	w.cable[0] = false
	w.after(confirmed)
	w.refuse[1] = nil
	w.want(t, "down before it ever came up", time.Second, "")
}

// TestLinkBlind: a port that doesn't report its link changes nothing.
func TestLinkBlind(t *testing.T) {
	w := newWatched(1)
	w.after(time.Second)
	w.blind[0] = true
	w.cable[0] = false
	w.want(t, "down unseen", time.Second, "")
	w.blind[0] = false
	w.want(t, "seen", confirmed, "1 false")
	w.blind[0], w.cable[0] = true, true
	w.want(t, "up unseen", time.Second, "")
}

// TestLinksReleased: what is held down is let up at the end.
func TestLinksReleased(t *testing.T) {
	w := newWatched(3)
	w.after(time.Second)
	w.cable[0], w.cable[3] = false, false
	w.after(time.Second)
	w.calls = nil
	w.refuse[1] = errors.New("firmware")
	w.links.release()
	if got := strings.Join(w.calls, ", "); got != "1 true, 2 true" || !strings.Contains(w.log.String(), "could not be let up again") {
		t.Errorf("the calls are %q, and the log is\n%s", got, w.log)
	}
	w.calls = nil
	if w.links.release(); len(w.calls) != 1 {
		t.Errorf("then the calls are %q, expected the one that was refused", w.calls)
	}
}
