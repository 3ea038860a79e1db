package control

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAway: what kept a worker from its core, and whether the watchdog blames it, for silences of the kinds that there are.
func TestAway(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		silent time.Duration
		used   usage // since the silence began
		want   away
		hangs  bool
	}{
		{"it spins", 2000 * ms, usage{ran: 2000 * ms, ready: true}, away{}, true},
		{"it spins, on a core without a tick", 2000 * ms, usage{ran: 1100 * ms, ready: true}, away{wait: 900 * ms}, true},
		{"it waits in the kernel", 2000 * ms, usage{}, away{}, true},
		{"it waits for its core, and the wait is not over", 2000 * ms, usage{ready: true}, away{wait: 2000 * ms}, false},
		{"it waited, and sleeps now", 100 * ms, usage{wait: 90 * ms, ran: ms}, away{wait: 90 * ms}, false},
		{"the hypervisor has its core, and counts that as run", 2000 * ms, usage{ran: 2000 * ms, steal: 1980 * ms, ready: true}, away{steal: 1980 * ms}, false},
		{"the hypervisor has its core, and counts that as waited for", 2000 * ms, usage{ran: 20 * ms, steal: 1980 * ms, ready: true}, away{wait: 20 * ms, steal: 1980 * ms}, false},
		{"half and half", 100 * ms, usage{ran: 60 * ms, ready: true}, away{wait: 40 * ms}, true},
		{"it is short", 60 * ms, usage{ran: 30 * ms, ready: true}, away{wait: 30 * ms}, false},
		{"the kernel doesn't say", 60 * ms, usage{}, away{}, true},
	} {
		from := usage{ran: time.Hour, wait: time.Minute, steal: time.Second}
		to := c.used
		to.ran, to.wait, to.steal = to.ran+from.ran, to.wait+from.wait, to.steal+from.steal
		got := awayBetween(c.silent, from, to)
		if got != c.want || got.blames(c.silent) != c.hangs {
			t.Errorf("%s: %+v, hangs %t (%s); want %+v, %t", c.name, got, got.blames(c.silent), got.cause(c.silent), c.want, c.hangs)
		}
	}
}

// TestUsage: the kernel's figures of a thread that runs.
func TestUsage(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if got := threadID(); got != int64(unix.Gettid()) {
		t.Errorf("the thread is %d, not %d", got, unix.Gettid())
	}
	from := usageOf(unix.Gettid(), 0)
	for deadline := time.Now().Add(time.Minute); ; {
		now := usageOf(unix.Gettid(), 0)
		if now.ready && now.ran > from.ran {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it was %+v, and is %+v", from, now)
		}
	}
	if got := usageOf(-1, 0); got != (usage{}) {
		t.Errorf("a thread that isn't there: %+v", got)
	}
	const stat = "cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1 2 3 4 5 6 7 30 9 10\ncpu1 1 2 3 4 5 6 7 50 9 10\ncpu10 1 2 3\nintr 5\n"
	for core, want := range map[int]time.Duration{0: 300 * time.Millisecond, 1: 500 * time.Millisecond, 10: 0, 2: 0} {
		if got := stolen([]byte(stat), core); got != want {
			t.Errorf("core %d: %v, want %v", core, got, want)
		}
	}
}
