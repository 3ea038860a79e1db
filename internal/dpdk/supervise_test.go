//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/sandbox"
)

func init() {
	children["enforced"] = func() error { return supervised(false) }
	children["audited"] = func() error { return supervised(true) }
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
