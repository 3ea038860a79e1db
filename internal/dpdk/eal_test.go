//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEALArgs(t *testing.T) {
	for _, c := range []struct {
		name        string
		cfg         EALConfig
		has, hasNot []string
		fault       string
	}{
		{name: "laptop", cfg: EALConfig{MainCore: 0, Memory: 100*mebi + 1},
			has:    []string{"--no-huge", "--no-shconf", "-m", "101", "--no-pci", "--iova-mode=va", "--lcores=0@0"},
			hasNot: []string{"--in-memory"}},
		{name: "bare metal", cfg: EALConfig{MainCore: 0, Hugepages: true, PCI: true},
			has: []string{"-a", "0000:00:00.0"}, hasNot: []string{"--no-huge", "-m", "--no-pci", "--iova-mode=va", "--in-memory"}},
		{name: "hugepages in files", cfg: EALConfig{MainCore: 0, Hugepages: true}, has: []string{"--huge-unlink=always", "--no-pci"}},
		{name: "in memory", cfg: EALConfig{MainCore: 0, Hugepages: true, InMemory: true, PCI: true}, has: []string{"--in-memory"}},
		{name: "in memory without hugepages", cfg: EALConfig{MainCore: 0, InMemory: true}, has: []string{"--no-huge"},
			hasNot: []string{"--in-memory"}},
		{name: "operator's words", cfg: EALConfig{MainCore: 0, Args: []string{"--iova-mode=pa"}}, has: []string{"--iova-mode=pa"}, hasNot: []string{"--iova-mode=va"}},
		{name: "version", cfg: EALConfig{MainCore: 0, Args: []string{"--version"}}, fault: "--version is not for a service"},
		{name: "missing core", cfg: EALConfig{MainCore: 5000}, fault: "core 5000 is not there"},
		{name: "missing worker's core", cfg: EALConfig{MainCore: -1, Cores: []int{-1, 900}}, fault: "core 900 is not there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, err := ealArgs(c.cfg)
			says(t, err, c.fault)
			for _, a := range c.has {
				if !slices.Contains(args, a) {
					t.Errorf("%q lacks %s", args, a)
				}
			}
			for _, a := range c.hasNot {
				if slices.Contains(args, a) {
					t.Errorf("%q has %s", args, a)
				}
			}
		})
	}
}

// The EAL's thread leaves the workers' cores alone where there are others.
func TestMainLcore(t *testing.T) {
	allowed, err := allowedCores()
	if err != nil {
		t.Fatal(err)
	}
	all := "0@(" + coreList(&allowed) + ")"
	if got, err := mainLcore(EALConfig{MainCore: -1, Cores: []int{-1}}); got != all || err != nil {
		t.Errorf("%s, %v; expected %s", got, err, all)
	}
	var every []int
	for c := range len(allowed) * 64 {
		if allowed.IsSet(c) {
			every = append(every, c)
		}
	}
	if got, err := mainLcore(EALConfig{MainCore: -1, Cores: every}); got != all || err != nil {
		t.Errorf("workers everywhere: %s, %v; expected %s", got, err, all)
	}
	if len(every) > 1 {
		rest := allowed
		rest.Clear(every[0])
		if got, err := mainLcore(EALConfig{MainCore: -1, Cores: every[:1]}); got != "0@("+coreList(&rest)+")" || err != nil {
			t.Errorf("a worker on core %d: %s, %v", every[0], got, err)
		}
	}
	var set unix.CPUSet
	for _, c := range []int{0, 1, 2, 5, 8, 9, 1023} {
		set.Set(c)
	}
	if got := coreList(&set); got != "0-2,5,8-9,1023" {
		t.Errorf("cores print as %s", got)
	}
}

// A worker's thread is pinned while it is one, and no other thread with it.
func TestRegisterThread(t *testing.T) {
	allowed, err := allowedCores()
	if err != nil {
		t.Fatal(err)
	}
	core := 0
	for !allowed.IsSet(core) {
		core++
	}
	done := make(chan error)
	go func() {
		done <- func() error {
			if err := RegisterThread(core); err != nil {
				return err
			}
			var now unix.CPUSet
			if err := unix.SchedGetaffinity(0, &now); err != nil || now.Count() != 1 || !now.IsSet(core) {
				return fmt.Errorf("pinned to core %d, but the thread has %s (%v)", core, coreList(&now), err)
			}
			UnregisterThread()
			if err := unix.SchedGetaffinity(0, &now); err != nil || now != allowed {
				return fmt.Errorf("after unregistering the thread has %s (%v)", coreList(&now), err)
			}
			return nil
		}()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	says(t, RegisterThread(700), "core 700 is not there")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(0, &now); err != nil || now != allowed {
		t.Errorf("another thread has %s (%v), the process %s", coreList(&now), err, coreList(&allowed))
	}
}

func TestStartTwice(t *testing.T) {
	_, err := Start(EALConfig{Memory: mebi, MainCore: -1})
	says(t, err, "can't be started twice")
}

func init() {
	// The whole life: open by itself, move a burst, stop twice; afterwards nothing works but nothing breaks either.
	children["life"] = func() error {
		d, err := Open(oneWorker("net_null0", "net_null1"))
		if err != nil {
			return err
		}
		b := d.Backend(0)
		for range 10 {
			b.Exchange()
			forward(b.Batch())
		}
		dropAll(b)
		if err := errors.Join(d.Stop(), d.Close(), d.Close()); err != nil {
			return err
		}
		if linkUp(d.Port(0)) {
			return errors.New("a closed port has a link")
		}
		if _, err := d.Port(0).Stats(); err == nil {
			return errors.New("a closed port has statistics")
		}
		if _, err := Open(oneWorker("net_null0")); err == nil || !strings.Contains(err.Error(), "can't be started twice") {
			return fmt.Errorf("opening again after the end: %v", err)
		}
		return nil
	}
	children["leak"] = func() error {
		d, err := Open(oneWorker("net_null0"))
		if err != nil {
			return err
		}
		d.Backend(0).Exchange()
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), "64 frames were never freed") {
			return fmt.Errorf("closing with a burst in hand: %v", err)
		}
		return nil
	}
	children["bad argument"] = func() error {
		cfg := EALConfig{Memory: 64 * mebi, MainCore: 1 << 20}
		if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), "core 1048576") {
			return fmt.Errorf("a core that is not there: %v", err)
		}
		cfg.MainCore, cfg.Args = -1, []string{"--no-such-argument"}
		_, err := Start(cfg)
		if _, again := Start(cfg); again == nil || !strings.Contains(again.Error(), "can't be started twice") {
			return fmt.Errorf("after a failure: %v", again)
		}
		return err
	}
	children["bad device"] = func() error {
		_, err := Open(oneWorker("net_null0", "net_pcap0,rx_pcap=/nonexistent.pcap"))
		return err
	}
	children["no memory"] = func() error {
		cfg := oneWorker("net_null0")
		cfg.Frames = 1 << 30
		_, err := Open(cfg)
		return err
	}
	children["no hugepages"] = func() error {
		cfg := oneWorker("net_null0")
		cfg.Hugepages, cfg.InMemory, cfg.Frames = true, true, 1<<30
		_, err := Open(cfg)
		return err
	}
	// Memory is worked out before the EAL starts: it must do for several ports, workers and many frames.
	children["sized"] = func() error {
		cfg := oneWorker("net_ring0", "net_ring1", "net_null2", "net_null3")
		cfg.Cores = []int{-1, -1, -1, -1}
		cfg.Frames = 150000
		d, err := Open(cfg)
		if err != nil {
			return err
		}
		return d.Close()
	}
	children["sized jumbo"] = func() error {
		cfg := oneWorker("net_null0", "net_null1")
		cfg.Frames, cfg.Ports[0].MTU = 10000, 9000
		d, err := Open(cfg)
		if err != nil {
			return err
		}
		if bytes := d.Pool().Room(); bytes < 9022 {
			return fmt.Errorf("a frame of MTU 9000 has a buffer of %d bytes", bytes)
		}
		return d.Close()
	}
	// With PCI the EAL looks at the bus but takes nothing; a device that is not there fails as it does without.
	children["pci"] = func() error {
		e, err := Start(EALConfig{Memory: 64 * mebi, MainCore: -1, PCI: true})
		if err != nil {
			return err
		}
		return e.Close()
	}
}

// Lives that end, or fail, in a process of their own; the last line is the error the operator reads.
func TestChildren(t *testing.T) {
	for _, c := range []struct {
		child, last string
		status      int
	}{
		{"life", "", 0},
		{"leak", "", 0},
		{"sized", "", 0},
		{"sized jumbo", "", 0},
		{"pci", "", 0},
		{"bad argument", "the EAL did not start: invalid argument: EAL: Invalid 'command line' arguments.; its arguments were", 1},
		{"bad device", "port port1 (device \"net_pcap0,rx_pcap=/nonexistent.pcap\"): the device can't be opened", 1},
		{"no memory", "MiB of memory are needed, ", 1},
		{"no hugepages", "MiB of hugepages are needed", 1},
	} {
		t.Run(c.child, func(t *testing.T) {
			stderr, status := runChild(t, c.child)
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			if last := lines[len(lines)-1]; status != c.status || !strings.Contains(last, c.last) {
				t.Errorf("exit status %d, expected %d; it said:\n%s", status, c.status, stderr)
			}
		})
	}
}
