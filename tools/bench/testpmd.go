package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// testpmd drives a dpdk-testpmd with two ports and one forwarding core through its standard input. Between runs it is stopped, so that its
// counts and the CPU time of its forwarding thread are exact.
type testpmd struct {
	*process
	threads []string // /proc/PID/task/TID of the forwarding ones
}

// testpmdMode is one forwarding mode of a testpmd; several share the program.
type testpmdMode struct {
	*testpmd
	mode  string
	drops bool // it may drop frames
}

func startTestpmd(b *bench, l *layout) (*testpmd, error) {
	args := append(l.environment(), "stdbuf", "-oL", "dpdk-testpmd")
	args = append(append(args, b.eal(l.testpmdMemory())...), fmt.Sprintf("--lcores=0@%d,1@%d", b.mainCore, b.core))
	for _, d := range l.devices {
		args = append(args, "--vdev", d)
	}
	args = append(args, "--", "-i", "--nb-cores=1", "--no-flush-rx", "--mbcache=256", fmt.Sprintf("--max-pkt-len=%d", cmp.Or(l.longest, 9000)),
		fmt.Sprintf("--burst=%d", b.burst), fmt.Sprintf("--total-num-mbufs=%d", l.mbufs()), fmt.Sprintf("--mbuf-size=%d", l.room+headroom))
	p, err := start("dpdk-testpmd", args...)
	if err != nil {
		return nil, err
	}
	t := &testpmd{process: p}
	if err := t.waitUntilUp(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// eal returns EAL's arguments for a C program that needs this many MiB of memory.
func (b *bench) eal(memory int) []string {
	args := []string{"--no-pci", "--no-telemetry", "--log-level=*:warning", "--iova-mode=va", fmt.Sprintf("--file-prefix=cnpgate-bench-%d", os.Getpid())}
	if b.hugepages {
		return append(args, "--in-memory")
	}
	return append(args, "--no-huge", "--no-shconf", "-m", strconv.Itoa(memory))
}

// headroom is RTE_PKTMBUF_HEADROOM.
const headroom = 128

// waitUntilUp waits for the first answer, and finds the forwarding threads.
func (t *testpmd) waitUntilUp() error {
	if _, err := t.command("show fwd stats all", "Accumulated forward statistics", startup); err != nil {
		return err
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", t.cmd.Process.Pid))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if name, err := os.ReadFile(filepath.Join(task, "comm")); err == nil && strings.HasPrefix(string(name), "rte-worker") {
			t.threads = append(t.threads, task)
		}
	}
	if len(t.threads) == 0 {
		return fmt.Errorf("dpdk-testpmd: none of its threads is called rte-worker-1: this version can't be measured")
	}
	return nil
}

// command sends a line and reads until a line holds the mark; it returns that line and those before it.
func (t *testpmd) command(line, mark string, limit time.Duration) ([]string, error) {
	if _, err := fmt.Fprintln(t.in, line); err != nil {
		return nil, t.failed(err)
	}
	var said []string
	for end := time.Now().Add(limit); ; {
		text, err := t.line(time.Until(end))
		if err != nil {
			return nil, fmt.Errorf("%w; after %q it printed %q", err, line, said[max(0, len(said)-5):])
		}
		said = append(said, text)
		if strings.Contains(text, mark) {
			return said, nil
		}
	}
}

// cpu is the CPU time of the forwarding threads, ns. It is exact while they are stopped.
func (t *testpmd) cpu() (int64, error) {
	total := int64(0)
	for _, task := range t.threads {
		ns, err := taskCPU(task)
		if err != nil {
			return 0, err
		}
		total += ns
	}
	return total, nil
}

func (m testpmdMode) run(d time.Duration) (*sample, error) {
	if _, err := m.command("set fwd "+m.mode, "Set "+m.mode+" packet forwarding mode", patience); err != nil {
		return nil, err
	}
	before, err := m.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, err := fmt.Fprintln(m.in, "start"); err != nil {
		return nil, m.failed(err)
	}
	if err := awaitCPU(d, func() (int64, error) {
		now, err := m.cpu()
		return now - before, err
	}); err != nil {
		return nil, err
	}
	said, err := m.command("stop", "Accumulated forward statistics", patience)
	if err != nil {
		return nil, err
	}
	s := &sample{Wall: time.Since(began).Nanoseconds()}
	rest, err := m.command("", "TX-packets", patience)
	if err != nil {
		return nil, err
	}
	after, err := m.cpu()
	if err != nil {
		return nil, err
	}
	s.CPU = after - before
	if m.drops {
		return s, nil
	}
	return s, s.readStatistics(said, rest)
}

// readStatistics reads from testpmd's output at "stop" the number of forwarded frames, and whether the run is valid.
func (s *sample) readStatistics(ports, sum []string) error {
	for _, line := range ports {
		for _, name := range []string{"Bad-ipcsum:", "Bad-l4csum:"} {
			if n, ok := number(line, name); ok && n != 0 {
				return fmt.Errorf("dpdk-testpmd: %d frames had %s", n, name)
			}
		}
	}
	for _, line := range sum {
		tx, ok := number(line, "TX-packets:")
		if !ok {
			continue
		}
		if dropped, _ := number(line, "TX-dropped:"); dropped != 0 || tx == 0 {
			return fmt.Errorf("dpdk-testpmd: %d frames forwarded, %d dropped", tx, dropped)
		}
		s.Ops = tx
		return nil
	}
	return fmt.Errorf("dpdk-testpmd: its statistics are %q, expected TX-packets", sum)
}

// number returns the whole number after a name in a line.
func number(line, name string) (uint64, bool) {
	_, rest, ok := strings.Cut(line, name)
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(fields[0], 10, 64)
	return n, err == nil
}

func number10(n int) string { return strconv.Itoa(n) }
