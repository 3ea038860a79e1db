//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/dpdk/dpdktest"
	"pgregory.net/rapid"
)

// eal is the one EAL of this test process. What needs one of its own runs in a child: the same binary with childEnv set.
var eal *EAL

const childEnv = "CNPGATE_DPDK_TEST_CHILD"

// children are what a child process does instead of the tests; each reports by its return value.
var children = map[string]func() error{}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		child, ok := children[name]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such child:", name)
			os.Exit(3)
		}
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	var err error
	if eal, err = Start(EALConfig{Memory: 512 * mebi, MainCore: -1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := eal.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runChild runs a child and returns what it printed to stderr, and its exit status.
func runChild(t testing.TB, name string) (string, int) {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stderr.String(), cmd.ProcessState.ExitCode()
}

// oneWorker is a configuration with one unpinned worker and small queues.
func oneWorker(devices ...string) Config {
	cfg := Config{MainCore: -1, Cores: []int{-1}, Frames: 1024}
	for i, d := range devices {
		cfg.Ports = append(cfg.Ports, PortConfig{Name: fmt.Sprintf("port%d", i), Device: d})
	}
	return cfg
}

// open opens devices for one test, which closes them.
func open(t testing.TB, cfg Config) *Devices {
	t.Helper()
	d, err := eal.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// openDrawn opens devices for one draw of a property, which calls closed at its end.
func openDrawn(t *rapid.T, cfg Config) (d *Devices, closed func()) {
	d, err := eal.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d, func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// ringPort makes a ring port for one test, which closes it after the devices.
func ringPort(t testing.TB, name string, workers, size int) *dpdktest.Ring {
	t.Helper()
	r, err := dpdktest.NewRing(eal.Do, name, workers, size, 2048)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// forward is the smallest worker: what came in by one port of a pair waits to leave by the other, what was sent is forgotten.
func forward(b *burst.Batch) {
	for i := range b.Ports {
		p := &b.Ports[i]
		p.Tx = p.Tx[:copy(p.Tx, p.Tx[p.Sent:])]
		p.Sent = 0
	}
	for i := range b.Ports {
		out := &b.Ports[i^1]
		for _, f := range b.Ports[i].Rx {
			if len(out.Tx) == cap(out.Tx) {
				b.Free = append(b.Free, f.Buf)
				continue
			}
			out.Tx = append(out.Tx, f)
		}
	}
}

// dropAll frees what a worker still holds: what it was to send and what it received.
func dropAll(b *Backend) {
	batch := b.Batch()
	for i := range batch.Ports {
		p := &batch.Ports[i]
		for _, f := range p.Tx[p.Sent:] {
			batch.Free = append(batch.Free, f.Buf)
		}
		for _, f := range p.Rx {
			batch.Free = append(batch.Free, f.Buf)
		}
		p.Tx, p.Sent = p.Tx[:0], 0
	}
	batch.Drain = true
	b.Exchange()
}

// linkUp is whether the port says that it has a link.
func linkUp(p *Port) bool {
	up, err := p.LinkUp()
	return err == nil && up
}
