//go:build linux

package ontime

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Cores is what a process group, and what its processes have started in groups of their own, had of the machine while they were watched.
type Cores struct {
	group      int
	raised     bool // whether their priority is raised
	stop, done chan struct{}
	begin      time.Time
	took       time.Duration
	waited     map[int]time.Duration // of each thread, by its ID: how long it was runnable and had no core
	before     map[int]time.Duration // the same, before the watch began
	ran        map[int]time.Duration // of each thread: how long it had one
	worst      time.Duration         // the longest wait of a thread, or of what looks, between two looks while there was other work
	used       map[int]time.Duration // CPU time of each process, up to the last look
	earlier    time.Duration         // CPU time of all, before the watch began
	counted    map[int]counted       // of each process that ran at the last look
	ours       time.Duration         // CPU time of all
	idle       time.Duration         // of all cores, before
	idled      time.Duration         // of all cores, meanwhile
	last       sight
	delay      time.Duration // of the next look
}

// sight is what a look saw.
type sight struct {
	at    time.Time
	idle  time.Duration // of all cores, since the machine started
	ran   time.Duration // of the group's threads, in all
	ended time.Duration // CPU time of the children that the group's processes have waited for: some come and go between two looks
}

// counted is what was counted of a process: the CPU time of its threads, and of the children that it has waited for.
type counted struct{ ran, ended time.Duration }

const (
	each = 100 * time.Millisecond // between two looks
	// A thread that waits longer than late between two looks was kept off its core, if other work took some CPU time then.
	late = each / 25 // 4 ms: a queue that is filled at 300 Mbit/s has 150 KB more by then
	some = each / 5
	// Other work explains figures that miss a limit if it kept a thread off its core for this part of the time, or so long at a time.
	much = 0.1
	long = each / 4
)

// Watch begins to watch a process group and its descendants, until End.
func Watch(group int) *Cores { return watchGroup(group, false) }

// End ends the watch.
func (c *Cores) End() { c.end(0) }

// watchGroup begins to watch a process group and its descendants, and to raise their priority if wanted.
func watchGroup(group int, raised bool) *Cores {
	c := &Cores{group: group, raised: raised, stop: make(chan struct{}), done: make(chan struct{}), begin: time.Now(), waited: map[int]time.Duration{}, ran: map[int]time.Duration{},
		used: map[int]time.Duration{}, counted: map[int]counted{}, idle: idleTime()}
	c.last = sight{at: c.begin, idle: c.idle}
	c.look()
	c.before, c.earlier = maps.Clone(c.waited), c.seen()
	go func() {
		defer close(c.done)
		tick := time.NewTicker(each)
		defer tick.Stop()
		for {
			next, last := time.Now().Add(each), false
			select {
			case <-c.stop:
				last = true
			case <-tick.C:
			}
			c.delay = time.Since(next) // at the end, what looks may have waited for its core, too
			if c.look(); last {
				return
			}
		}
	}()
	return c
}

// end ends the watch, when the group has ended. ours is the CPU time of its processes that were waited for; a browser's are not.
func (c *Cores) end(ours time.Duration) {
	close(c.stop)
	<-c.done
	c.took, c.idled, c.ours = time.Since(c.begin), idleTime()-c.idle, max(ours, c.seen()-c.earlier)
}

// seen is the CPU time of all processes, up to the last look.
func (c *Cores) seen() (all time.Duration) {
	for _, used := range c.used {
		all += used
	}
	return all
}

// look reads the CPU time of each process, and how long each thread has run and waited for a core: the figures of schedstat, in nanoseconds. It
// raises the priority again, if wanted, as a browser lowers its threads'.
func (c *Cores) look() {
	now, longest := sight{at: time.Now(), idle: idleTime(), ran: c.last.ran}, c.delay
	running := processes()
	var ended time.Duration
	for pid, p := range running {
		if !running.below(pid, c.group) {
			continue
		}
		if c.raised {
			raise(p.group)
		}
		c.used[pid] = p.used
		ended += p.ended - c.counted[pid].ended
		c.counted[pid] = counted{c.counted[pid].ran, p.ended}
		for _, thread := range numbersIn(fmt.Sprintf("/proc/%d/task", pid)) {
			fields := strings.Fields(readProc(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, thread)))
			if len(fields) < 2 {
				continue
			}
			ran, waited := nanoseconds(fields[0]), nanoseconds(fields[1])
			longest = max(longest, waited-c.waited[thread])
			c.counted[pid] = counted{c.counted[pid].ran + ran - c.ran[thread], p.ended}
			now.ran += ran - c.ran[thread]
			c.waited[thread], c.ran[thread] = waited, ran
		}
	}
	for pid, had := range c.counted {
		if _, runs := running[pid]; !runs {
			ended -= had.ran + had.ended // counted before
			delete(c.counted, pid)
		}
	}
	now.ended = c.last.ended + max(0, ended)
	if now.others(c.last) > some {
		c.worst = max(c.worst, longest)
	}
	c.last = now
}

// others is the CPU time that other work had since an earlier look. What is neither idle nor the group's is theirs, also what the hypervisor took.
func (s sight) others(earlier sight) time.Duration {
	return time.Duration(runtime.NumCPU())*s.at.Sub(earlier.at) - (s.idle - earlier.idle) - (s.ran - earlier.ran) - (s.ended - earlier.ended)
}

// others is the part of the machine that other work had, between 0 and 1.
func (c *Cores) others() float64 {
	total := time.Duration(runtime.NumCPU()) * c.took
	return max(0, 1-float64(c.idled+c.ours)/float64(max(total, 1)))
}

// Busy reports whether other work kept the group's threads off their cores.
func (c *Cores) Busy() bool { return c.worst > late }

// explains reports whether a thread was kept off its core for much of the time, or for long.
func (c *Cores) explains() bool { return float64(c.longest()) > much*float64(c.took) || c.worst > long }

// longest is what the thread that waited most has waited.
func (c *Cores) longest() (waited time.Duration) {
	for thread, w := range c.waited {
		waited = max(waited, w-c.before[thread])
	}
	return waited
}

func (c *Cores) String() string {
	return fmt.Sprintf("In %v other work had %.0f %% of the machine; a thread of the test waited for a core for %v in all, %v at a time.\n",
		c.took.Round(time.Millisecond), 100*c.others(), c.longest().Round(time.Millisecond), c.worst.Round(time.Millisecond))
}

func nanoseconds(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n)
}

const tick = 10 * time.Millisecond // of /proc/stat and /proc/PID/stat: USER_HZ is 100 wherever Linux runs Go

// idleTime is the time that the machine's cores were idle since it started.
func idleTime() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	var user, nice, system, idle, wait time.Duration
	_, _ = fmt.Sscanf(string(text), "cpu %d %d %d %d %d", &user, &nice, &system, &idle, &wait)
	return (idle + wait) * tick
}
