package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
)

// machine describes the measuring machine.
type machine struct {
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	L2        string  `json:"l2_a_core"`
	L3        string  `json:"l3"`
	MemoryGiB float64 `json:"memory_gib"`
	Virtual   bool    `json:"virtual"`
	Kernel    string  `json:"kernel"`
	DPDK      string  `json:"dpdk"`
	Go        string  `json:"go"`
	Hugepages string  `json:"hugepages"`
	Burst     int     `json:"burst"`
	Runs      int     `json:"runs"`   // slices of each side, at first
	RunMS     int64   `json:"run_ms"` // core time of a slice
	Short     bool    `json:"short"`  // then the figures are inaccurate
	Load      string  `json:"load"`   // when it began: averages of 1, 5 and 15 minutes
}

func thisMachine(b *bench) machine {
	m := machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Go: runtime.Version(), Burst: b.burst, Runs: b.runs,
		RunMS: b.time.Milliseconds(), Short: b.short, Hugepages: "none (--no-huge)",
		Virtual: strings.Contains(field("/proc/cpuinfo", "flags"), "hypervisor"),
		L2:      firstLine("/sys/devices/system/cpu/cpu0/cache/index2/size"), L3: firstLine("/sys/devices/system/cpu/cpu0/cache/index3/size"),
	}
	if b.hugepages {
		m.Hugepages = "2 MiB"
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var kib float64
	if _, err := fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%g", &kib); err == nil {
		m.MemoryGiB = *number3(kib / (1 << 20))
	}
	if version, err := exec.Command("pkg-config", "--modversion", "libdpdk").Output(); err == nil {
		m.DPDK = strings.TrimSpace(string(version))
	}
	if f := strings.Fields(firstLine("/proc/loadavg")); len(f) > 3 {
		m.Load = strings.Join(f[:3], " ")
	}
	return m
}

func (m *machine) String() string {
	kind := ""
	if m.Virtual {
		kind = " (a virtual machine)"
	}
	short := ""
	if m.Short {
		short = "; a short run, whose figures mean little"
	}
	caches := "" // a virtual machine may not say them
	if m.L2 != "" && m.L3 != "" {
		caches = fmt.Sprintf(" %s of L2 a core, %s of L3,", m.L2, m.L3)
	}
	return fmt.Sprintf("%s, %d cores%s,%s %.3g GiB; Linux %s, DPDK %s, %s; hugepages: %s; bursts of %d; %d to %d slices of %d ms of each side; load %s%s",
		m.CPU, m.Cores, kind, caches, m.MemoryGiB, m.Kernel, m.DPDK, m.Go, m.Hugepages, m.Burst, m.Runs, moreSlices*m.Runs, m.RunMS, m.Load, short)
}

// field is the value of the first line "name : value" of a file.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// availableGiB is the available memory, including reserved free hugepages.
func availableGiB() float64 {
	var kib, pages, size float64
	_, _ = fmt.Sscanf(field("/proc/meminfo", "MemAvailable"), "%g", &kib)
	_, _ = fmt.Sscanf(field("/proc/meminfo", "HugePages_Free"), "%g", &pages)
	_, _ = fmt.Sscanf(field("/proc/meminfo", "Hugepagesize"), "%g", &size)
	return (kib + pages*size) / (1 << 20)
}

// memory is the program that measures the memory of flows: the increase of the process's memory after a packet of each flow has passed
// through a complete gateway, with tables, queues, pairing and limits.
func memory(args []string) error {
	if len(args) != 1 {
		return errors.New("memory: expected a number of flows")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	setup := gatewaySetup{Workers: []int{0}, Burst: countedBurst, Devices: []string{"net_null0", "net_null1"}, Room: roomOf(0), Flows: n}
	c, err := config.Parse("bench.yaml", []byte(setup.yaml("")))
	if err != nil {
		return err
	}
	buffers := make([]byte, 1024*smallRoom)
	backend, err := inmem.New(inmem.Config{Ports: 2, Burst: countedBurst, BufferSize: smallRoom, Memory: buffers})
	if err != nil {
		return err
	}
	for i := range buffers {
		buffers[i] = 1 // resident from the start
	}
	before, err := resident()
	if err != nil {
		return err
	}
	plane, err := assemble.Dataplane(c, assemble.Options{Backends: []burst.Backend{backend}, Seed: 1})
	if err != nil {
		return err
	}
	if err := learn(backend, plane.Worker(0), n); err != nil {
		return err
	}
	if known := plane.Worker(0).FlowStats().Flows; known != uint64(n) {
		return fmt.Errorf("%d of %d flows are known", known, n)
	}
	after, err := resident()
	if err != nil {
		return err
	}
	fmt.Printf("ready\n{\"extra\":{\"octets\":%d,\"process\":%d}}\n", after-before, after)
	return nil
}

// learn sends a packet of each flow through a worker.
func learn(b *inmem.Backend, w *dataplane.Worker, flows int) error {
	t := traffic{payload: smallest}
	frame := t.frame()
	for i := range flows {
		t.put(frame, i)
		if !b.Inject(0, frame, uint32(len(frame))) {
			return errors.New("no buffer for a frame")
		}
		if i%countedBurst == countedBurst-1 || i == flows-1 {
			b.SetTime(int64(i) * 1000)
			w.Step()
		}
	}
	return nil
}

// resident is the process's resident memory in bytes.
func resident() (int, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, err := strconv.Atoi(string(bytes.Fields(text)[1]))
	return pages * os.Getpagesize(), err
}
