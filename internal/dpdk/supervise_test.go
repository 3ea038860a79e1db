//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/sandbox"
)

func init() {
	children["enforced"] = func() error { return supervised(false) }
	children["audited"] = func() error { return supervised(true) }
	children["cost"] = callCost
}

// supervised starts the EAL, confines the process, and makes a call that the filter doesn't allow, on a thread that exists and on one of DPDK's kind.
func supervised(audit bool) error {
	eal, err := Start(EALConfig{Memory: 64 * mebi, MainCore: -1})
	if err != nil {
		return err
	}
	// Before: a thread that is in a call when the filter comes.
	makes, made := make(chan bool), make(chan error)
	go func() {
		for range makes {
			made <- errors.Join(RegisterThread(0), unix.PtraceAttach(0)) // ESRCH if it goes on
			UnregisterThread()
		}
	}()
	filter, err := sandbox.Supervised(sandbox.Runtime, sandbox.Files, sandbox.Serve, sandbox.Connect, sandbox.Devices)
	if err != nil {
		return err
	}
	calls := make(chan int, 16)
	if err := Supervise(filter, audit, func(call int) { calls <- call }); err != nil {
		return err
	}
	statuses, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range statuses {
		status, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		if err != nil || !strings.Contains(string(status), "Seccomp:\t2") || !strings.Contains(string(status), "NoNewPrivs:\t1") {
			return fmt.Errorf("thread %s is not confined (%w): %s", task.Name(), err, status)
		}
	}
	fmt.Fprintln(os.Stderr, "threads:", len(statuses))
	if err := Supervise(filter, audit, nil); err == nil {
		return errors.New("a second supervisor was accepted")
	}
	makes <- true
	refused := errors.Is(<-made, unix.EPERM)
	var name []string
	for range 2 {
		name = append(name, sandbox.Name(<-calls))
	}
	fmt.Fprintln(os.Stderr, "refused:", refused, name)
	return eal.Close()
}

// TestSupervise: all threads are under the filter, also DPDK's. A call that it doesn't allow is reported with its name; it fails, or goes on in an audit.
func TestSupervise(t *testing.T) {
	for child, want := range map[string]string{"enforced": "refused: true [seccomp ptrace]", "audited": "refused: false [seccomp ptrace]"} {
		out, status := runChild(t, child)
		var threads int
		lines := strings.Split(out, "\n")
		if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "threads:") }); i >= 0 {
			_, _ = fmt.Sscanf(lines[i], "threads: %d", &threads)
		}
		if status != 0 || !strings.Contains(out, want) || threads < 5 {
			t.Errorf("%s: status %d, %d threads, want %s and 5 threads or more:\n%s", child, status, threads, want, out)
		}
	}
}

// callCost prints what an allowed system call costs before and after the filter: the least of many times, which other work on the machine doesn't raise.
func callCost() error {
	runtime.LockOSThread()
	least := func() time.Duration {
		least := time.Hour
		for range 2000 {
			begin := time.Now()
			for range 1000 {
				_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
			}
			least = min(least, time.Since(begin))
		}
		return least / 1000
	}
	before := least()
	filter, err := sandbox.Supervised(sandbox.Runtime, sandbox.Files, sandbox.Serve, sandbox.Connect, sandbox.Devices)
	if err != nil {
		return err
	}
	if err := Supervise(filter, false, func(int) {}); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, before.Nanoseconds(), least().Nanoseconds())
	return nil
}

// BenchmarkSupervisedCall: a system call without and with the filter. A worker makes two for a burst with net_af_packet, and none with other devices.
func BenchmarkSupervisedCall(b *testing.B) {
	var without, with float64
	for b.Loop() {
		out, status := runChild(b, "cost")
		if n, err := fmt.Sscan(out, &without, &with); n != 2 || status != 0 {
			b.Fatalf("status %d, %v: %s", status, err, out)
		}
	}
	b.ReportMetric(without, "ns-without")
	b.ReportMetric(with, "ns-with")
}
