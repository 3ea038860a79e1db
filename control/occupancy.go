package control

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// usage is what the kernel knows of a thread and its core, since they began.
type usage struct {
	ran   time.Duration // on the core
	wait  time.Duration // ready to run while another thread had the core, without the present wait
	steal time.Duration // in which the hypervisor ran something else on the core
	ready bool          // it runs, or could
}

// threadID is the ID of the calling thread; 0 where the kernel has no such file.
func threadID() (id int64) {
	if path, err := os.Readlink("/proc/thread-self"); err == nil {
		id, _ = strconv.ParseInt(filepath.Base(path), 10, 64)
	}
	return id
}

// usageOf reads the usage of a thread of this process that is bound to a core; the zero usage if the kernel doesn't tell.
func usageOf(thread, core int) (u usage) {
	task := fmt.Sprintf("/proc/self/task/%d/", thread)
	schedstat, err := os.ReadFile(task + "schedstat") // needs CONFIG_SCHED_INFO, which all distributions have
	if err != nil {
		return usage{}
	}
	if _, err := fmt.Sscan(string(schedstat), (*int64)(&u.ran), (*int64)(&u.wait)); err != nil {
		return usage{}
	}
	if stat, err := os.ReadFile(task + "stat"); err == nil {
		_, after, _ := bytes.Cut(stat, []byte(") ")) // the thread's name is in parentheses, and no name of a worker's has one
		u.ready = bytes.HasPrefix(after, []byte("R"))
	}
	if stat, err := os.ReadFile("/proc/stat"); err == nil {
		u.steal = stolen(stat, core)
	}
	return u
}

// stolen is the time that a hypervisor has stolen from a core, by /proc/stat (proc_stat(5)).
func stolen(stat []byte, core int) time.Duration {
	const tick, column = 10 * time.Millisecond, 8 // USER_HZ is 100 wherever Go runs; the name is column 0
	for line := range bytes.Lines(stat) {
		f := bytes.Fields(line)
		if len(f) > column && string(f[0]) == "cpu"+strconv.Itoa(core) {
			n, _ := strconv.ParseInt(string(f[column]), 10, 64) // 0 where it isn't a number
			return time.Duration(n) * tick
		}
	}
	return 0
}

// away is the time in which a worker that doesn't step was kept from its core.
type away struct{ wait, steal time.Duration }

// awayBetween is the part of a silence that the worker was not to blame for. The kernel adds a wait to the thread's only when it ends, so the present wait follows from
// what the thread ran; some kernels count stolen time as run, others as waited for.
func awayBetween(silent time.Duration, from, to usage) away {
	a := away{wait: to.wait - from.wait, steal: min(to.steal-from.steal, silent)}
	if to.ready {
		a.wait = max(a.wait, silent-(to.ran-from.ran))
	}
	a.wait = max(min(a.wait, silent-a.steal), 0)
	return a
}

// blames reports whether a worker that was silent so long is to blame itself.
func (a away) blames(silent time.Duration) bool {
	return silent-a.wait-a.steal >= max(stallAfter, silent/2)
}

// cause says why a worker doesn't step.
func (a away) cause(silent time.Duration) string {
	switch {
	case a.blames(silent):
		return "it hangs: it had its core, or waits for the kernel or a debugger"
	case a.steal > a.wait:
		return fmt.Sprintf("the hypervisor ran something else on its core for %v", a.steal.Round(time.Millisecond))
	}
	return fmt.Sprintf("another thread had its core for %v", a.wait.Round(time.Millisecond))
}
