package dataplane_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/lossless"
)

// pauseRig obeys flow control at both ports, whose links have 1 Gbps: 1000 quanta are 512 us.
func pauseRig(t testkit.T, workers int, action lossless.Action) *testkit.Rig {
	p := notifying(byAnything...)
	p.Ports[wan].KMin, p.Ports[wan].KMax = 1<<40, 1<<41
	return testkit.New(t, testkit.Setup{Workers: workers, Rate: 1e9, Policy: p, Change: func(c *dataplane.Config) {
		classes(c)
		for i := range c.Ports {
			c.Ports[i].FlowControl = flowControl(1e9)
			c.Ports[i].FlowControl.Watchdog.Action = action
		}
	}})
}

const (
	pauseQuanta = 1000
	pauseTime   = 512_000 // ns
)

// pfcFor is a PFC frame that pauses, or lets go on, the priorities of a set.
func pfcFor(enabled uint8, quanta uint16) []byte {
	f := packet.PFC{Enabled: enabled}
	for i := range f.Time {
		f.Time[i] = quanta
	}
	b := make([]byte, packet.PFCLen)
	f.Put(b)
	return macControl(b...)
}

func pauseFor(quanta uint16) []byte {
	return macControl(0, packet.MACControlPause, byte(quanta>>8), byte(quanta))
}

// TestPauseObeyed: which frames leave the WAN port after a frame came in there, and when the others do.
func TestPauseObeyed(t *testing.T) {
	const both = 1<<losslessPriority | 1<<otherPriority
	unicast := pfcFor(both, pauseQuanta)
	unicast[0] = 2
	tagged := append(append(macControl()[:12], 0x81, 0, 0, 1), pfcFor(both, pauseQuanta)[12:]...)
	for _, c := range []struct {
		name            string
		frame           []byte
		other, lossless bool // leave at once
	}{
		{"nothing", ethernet(0x88cc), true, true},
		{"the lossless priority", pfcFor(1<<losslessPriority, pauseQuanta), true, false},
		{"the other priority", pfcFor(1<<otherPriority, pauseQuanta), false, true},
		{"both", pfcFor(both, pauseQuanta), false, false},
		{"priorities of no class", pfcFor(^uint8(both), pauseQuanta), true, true},
		{"none enabled", pfcFor(0, pauseQuanta), true, true},
		{"no quanta", pfcFor(both, 0), true, true},
		{"PAUSE", pauseFor(pauseQuanta), false, false},
		{"PAUSE of no quanta", pauseFor(0), true, true},
		{"PFC cut short", pfcFor(both, pauseQuanta)[:packet.EthernetLen+packet.PFCLen-1], true, true},
		{"PAUSE cut short", pauseFor(pauseQuanta)[:packet.EthernetLen+packet.PauseLen-1], true, true},
		{"opcode cut short", pauseFor(pauseQuanta)[:packet.EthernetLen+1], true, true},
		{"unknown opcode", macControl(1, 2, 0, 0xff, 0xff, 0xff), true, true},
		{"for another address", unicast, true, true},
		{"tagged", tagged, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for workers := 1; workers <= 2; workers++ {
				r := pauseRig(t, workers, lossless.Drop)
				r.Inject(t, wan, c.frame)
				r.Settle()
				for i := range 4 {
					r.InjectAt(t, i%workers, fabric, roce(0))
					r.InjectAt(t, i%workers, fabric, roce(losslessDSCP))
				}
				left := func() (other, ll int) {
					for _, f := range takeAll(r, wan) {
						if f[15]>>2 == losslessDSCP {
							ll++
						} else {
							other++
						}
					}
					return other, ll
				}
				for range 40 {
					r.Advance(pauseTime / 40)
					if r.Now-testkit.Epoch < pauseTime {
						r.Settle()
					}
				}
				if other, ll := left(); (other == 4) != c.other || (ll == 4) != c.lossless || other%4+ll%4 != 0 {
					t.Errorf("%d workers: %d and %d frames left, expected all 4: %t, %t", workers, other, ll, c.other, c.lossless)
				}
				r.Drain()
				left()
				if n := r.Plane.Port(wan).Count[counters.TxPackets]; n != 8 {
					t.Errorf("%d workers: %d frames left in the end, expected 8", workers, n)
				}
				r.Close(t)
			}
		})
	}
}

// TestPauseEnds: the frames go on at the end of the pause to the nanosecond, at once when the pause is taken back, and at the line's rate: the time of
// the pause is not made up for.
func TestPauseEnds(t *testing.T) {
	r := pauseRig(t, 1, lossless.Drop)
	r.Inject(t, wan, pfcFor(1<<losslessPriority, pauseQuanta))
	r.Settle()
	for range 100 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	r.Settle()
	if due, any := r.Plane.Worker(0).NextDue(); !any || due != r.Now+pauseTime {
		t.Errorf("the worker is due at %d, %t; expected at %d", due, any, r.Now+pauseTime)
	}
	r.Advance(pauseTime - 1)
	r.Settle()
	if n := len(r.Take(wan)); n != 0 {
		t.Errorf("%d frames left before the end", n)
	}
	r.Advance(1)
	r.Settle()
	if n := len(r.Take(wan)); n != 1 {
		t.Errorf("%d frames left at the end of the pause, expected one", n)
	}
	r.Inject(t, wan, pfcFor(1<<losslessPriority, 0xffff))
	r.Settle()
	r.Advance(pauseTime)
	r.Settle()
	if n := len(r.Take(wan)); n != 0 {
		t.Errorf("%d frames left in the second pause", n)
	}
	r.Inject(t, wan, pfcFor(1<<losslessPriority, 0))
	r.Settle()
	if n := len(r.Take(wan)); n != 1 {
		t.Errorf("%d frames left when the pause was taken back, expected one", n)
	}
	r.Drain()
	r.Close(t)
}

// TestNotificationsArePaused with the class of their DSCP, and by PAUSE.
func TestNotificationsArePaused(t *testing.T) {
	for _, c := range []struct {
		name  string
		dscp  uint8
		frame []byte
		sent  bool
	}{
		{"their class", losslessDSCP, pfcFor(1<<losslessPriority, pauseQuanta), false},
		{"another class", 0, pfcFor(1<<losslessPriority, pauseQuanta), true},
		{"all", 0, pauseFor(pauseQuanta), false},
	} {
		p := notifying(byAnything...)
		p.Build.DSCP = c.dscp
		r := testkit.New(t, testkit.Setup{Rate: 8e6, Policy: p, Static: knownQPs(t), Change: func(d *dataplane.Config) {
			classes(d)
			d.Ports[fabric].FlowControl = flowControl(1e9)
		}})
		r.Inject(t, fabric, c.frame)
		for range 10 {
			r.Inject(t, fabric, data(true, 0).Frame())
		}
		r.Settle()
		if n := len(r.Take(fabric)); (n > 0) != c.sent {
			t.Errorf("%s paused: %d notifications left, expected some: %t", c.name, n, c.sent)
		}
		r.Drain()
		if r.Count(fabric, counters.SentFirst) == 0 {
			t.Errorf("%s paused: no notification left in the end", c.name)
		}
		r.Close(t)
	}
}

// TestWatchdog: what becomes of the frames of a class that is paused for ever, and when.
func TestWatchdog(t *testing.T) {
	for _, c := range []struct {
		action             lossless.Action
		forwarded, dropped uint64 // of 5 frames before and 5 after the detection
	}{
		{lossless.Drop, 0, 10},
		{lossless.Forward, 10, 0},
		{lossless.Alert, 0, 0},
	} {
		for workers := 1; workers <= 2; workers++ {
			r := pauseRig(t, workers, c.action)
			send := func() {
				for i := range 5 {
					r.InjectAt(t, i%workers, fabric, roce(losslessDSCP))
				}
			}
			send()
			for range 210 {
				r.Inject(t, wan, pfcFor(1<<losslessPriority, 0xffff))
				r.Settle()
				r.Advance(ms)
			}
			s := r.Plane.Port(wan)
			if s.FlowControl.Detected[losslessClass] != 1 || s.FlowControl.Detected[otherClass] != 0 || s.FlowControl.Restored[losslessClass] != 0 {
				t.Errorf("action %d: %+v, expected one storm of the lossless class", c.action, s.FlowControl)
			}
			send()
			for range 20 {
				r.Advance(ms / 10)
				r.Settle()
			}
			s = r.Plane.Port(wan)
			if s.Count[counters.TxPackets] != c.forwarded || s.Count[counters.DroppedPFCWatchdog] != c.dropped {
				t.Errorf("action %d: %d frames forwarded, %d dropped, expected %d and %d", c.action, s.Count[counters.TxPackets],
					s.Count[counters.DroppedPFCWatchdog], c.forwarded, c.dropped)
			}
			r.Drain() // the pause ends, and the time without one is over
			before := r.Plane.Port(wan).Count[counters.TxPackets]
			if s := r.Plane.Port(wan); s.FlowControl.Restored[losslessClass] != 1 {
				t.Errorf("action %d: restored %d times, expected once", c.action, s.FlowControl.Restored[losslessClass])
			}
			send()
			r.Drain()
			if n := r.Plane.Port(wan).Count[counters.TxPackets] - before; n != 5 {
				t.Errorf("action %d: %d frames forwarded after the storm, expected 5", c.action, n)
			}
			r.Inject(t, wan, pfcFor(1<<losslessPriority, 0xffff))
			r.Settle()
			send()
			r.Advance(ms)
			r.Settle()
			if n := r.Plane.Port(wan).Count[counters.TxPackets] - before; n != 5 {
				t.Errorf("action %d: %d frames forwarded in the next pause, expected none", c.action, n-5)
			}
			r.Drain()
			r.Close(t)
		}
	}
}

// TestNotificationsInAStorm: where the watchdog acts, notifications go on, even if it drops the class that they belong to.
func TestNotificationsInAStorm(t *testing.T) {
	for _, c := range []struct {
		action lossless.Action
		sent   bool
	}{{lossless.Drop, true}, {lossless.Forward, true}, {lossless.Alert, false}} {
		p := notifying(byAnything...)
		p.Build.DSCP = losslessDSCP
		r := testkit.New(t, testkit.Setup{Rate: 8e6, Policy: p, Static: knownQPs(t), Change: func(d *dataplane.Config) {
			classes(d)
			d.Ports[fabric].FlowControl = flowControl(1e9)
			d.Ports[fabric].FlowControl.Watchdog.Action = c.action
		}})
		for range 210 {
			r.Inject(t, fabric, pfcFor(1<<losslessPriority, 0xffff))
			r.Settle()
			r.Advance(ms)
		}
		for range 10 {
			r.Inject(t, fabric, data(true, 0).Frame())
		}
		r.Settle()
		if n := len(r.Take(fabric)); (n > 0) != c.sent {
			t.Errorf("action %d: %d notifications left, expected some: %t", c.action, n, c.sent)
		}
		r.Drain()
		r.Close(t)
	}
}

// TestAnyMACControl: whatever comes as MAC control, and whenever, every frame is accounted for, and all that wait leave in the end.
func TestAnyMACControl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 2).Draw(t, "workers")
		r := losslessRig(t, workers, func(s *testkit.Setup) {
			change := s.Change
			s.Change = func(c *dataplane.Config) {
				change(c)
				c.Ports[wan].FlowControl = flowControl(1e9)
				c.Ports[wan].FlowControl.Watchdog.Action = rapid.SampledFrom([]lossless.Action{lossless.Drop, lossless.Forward, lossless.Alert}).Draw(t, "action")
			}
		})
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			port, worker := rapid.IntRange(0, 1).Draw(t, "port"), rapid.IntRange(0, workers-1).Draw(t, "worker")
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				r.InjectAt(t, worker, port, macControl(rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "body")...))
			case 1:
				r.InjectAt(t, worker, port, pfcFor(rapid.Byte().Draw(t, "enabled"), rapid.Uint16().Draw(t, "quanta")))
			case 2:
				for range rapid.IntRange(1, 20).Draw(t, "frames") {
					r.InjectAt(t, worker, port, roce(rapid.SampledFrom([]uint8{0, losslessDSCP}).Draw(t, "DSCP")))
				}
			case 3:
				r.Advance(rapid.Int64Range(0, 300*ms).Draw(t, "time"))
			}
			r.Plane.Worker(worker).Step()
		}
		r.Drain()
		if s := r.Plane.Port(wan); s.Frames != [account.MaxClasses]int64{} {
			t.Fatalf("%v frames wait in the end", s.Frames)
		}
		r.Close(t)
	})
}

// TestFlowControlAllocatesNothing: a step that sends, obeys and watches allocates nothing and is one exchange.
func TestFlowControlAllocatesNothing(t *testing.T) {
	r := losslessRig(t, 1, func(s *testkit.Setup) {
		change := s.Change
		s.Forget = true
		s.Change = func(c *dataplane.Config) {
			change(c)
			c.Ports[wan].FlowControl = flowControl(1e6)
		}
	})
	frames := [][]byte{roce(losslessDSCP), roce(losslessDSCP), roce(losslessDSCP), roce(losslessDSCP), pfcFor(1<<losslessPriority, 300), pauseFor(200)}
	n := 0
	round := func() {
		f := frames[n%len(frames)]
		port := fabric
		if f[12] == 0x88 {
			port = wan
		}
		r.Inject(t, port, f)
		r.Advance(5 * ms)
		r.Plane.Worker(0).Step()
		n++
	}
	for range 500 {
		round()
	}
	if n := testing.AllocsPerRun(2000, round); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	f, w := r.Plane.Port(fabric).FlowControl, r.Plane.Port(wan)
	if f.PFCSent[losslessPriority] == 0 || w.FlowControl.PFCReceived[losslessPriority] == 0 || w.FlowControl.Detected[losslessClass] == 0 ||
		w.Count[counters.DroppedPFCWatchdog] == 0 {
		t.Errorf("%+v, %+v: not what was to be tested", f, w.FlowControl)
	}
	r.Drain()
	r.Close(t)
}
