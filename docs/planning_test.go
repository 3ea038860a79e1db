package docs

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/stepper"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

var measurePlanning = flag.String("table", "", "measure the rows of planning.md's table that match this, and write them anew; all (.) take a quarter of an hour on an idle core")

const planningHead = "| Connections | Between | Flow tables, reserved | Resident | Paired | First packets, ns | Later packets, ns |\n|---|---|---|---|---|---|---|\n"

// tableOf returns a page, and where the rows of the table with a head begin and end.
func tableOf(t *testing.T, page, head string) (text string, begin, end int) {
	t.Helper()
	text = readPage(t, page)
	if begin = strings.Index(text, head); begin < 0 {
		t.Fatalf("%s has no table with the head %q", page, head)
	}
	begin += len(head)
	return text, begin, begin + strings.Index(text[begin:], "\n\n") + 1
}

// TestPlanningTable: the table of planning.md says how much memory is reserved for flows, and that all are paired, between two hosts most. With -table rows are measured anew.
func TestPlanningTable(t *testing.T) {
	const page = "planning.md"
	text, begin, end := tableOf(t, page, planningHead)
	if *measurePlanning != "" {
		at := begin
		for _, r := range planningRows() {
			head, kept := fmt.Sprintf("| %s | %s |", grouped(int64(r.connections)), planningMixes[r.mix].name), 0
			if strings.HasPrefix(text[at:], head) {
				kept = strings.Index(text[at:], "\n") + 1
			}
			if kept == 0 || regexp.MustCompile(*measurePlanning).MatchString(head) {
				row := newPlanned(t, r.connections, r.mix).row(t)
				text, kept = text[:at]+row+text[at+kept:], len(row)
				if err := os.WriteFile(page, []byte(text), 0o644); err != nil { // also if a later row fails
					t.Fatal(err)
				}
			}
			at += kept
		}
		return
	}
	rows := strings.Split(strings.TrimSpace(text[begin:end]), "\n")
	want := planningRows()
	if len(rows) != len(want) {
		t.Fatalf("%d rows, expected %d", len(rows), len(want))
	}
	for i, row := range rows {
		n := want[i].connections
		if cells := strings.Split(row, " | "); len(cells) != 7 || cells[2] != mebibytes(flowTables(2*n)) || cells[4] != "all" && (want[i].mix != 0 || number(cells[4]) < n*9/10) {
			t.Errorf("%s: %q: expected %s, all paired, between two hosts nine of ten; go test ./docs -run Planning -table . measures it", page, row, mebibytes(flowTables(2*n)))
		}
	}
	for mix, rounds := range []int{5 * firstRounds, firstRounds} {
		p := newPlanned(t, want[0].connections, mix)
		if p.exchange(t, rounds); p.paired() != want[0].connections {
			t.Errorf("%s: %d of %d connections are paired after %d rounds", planningMixes[mix].name, p.paired(), want[0].connections, rounds)
		}
	}
}

// number reads a number with commas, 0 if it is none.
func number(text string) int {
	n, _ := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	return n
}

// plannedRow is what a row is of.
type plannedRow struct{ connections, mix int }

// planningRows are those of the table: of a million connections, those of one pair of hosts, and of most.
func planningRows() (all []plannedRow) {
	for _, n := range [...]int{1000, 10_000, 100_000} {
		for m := range planningMixes {
			all = append(all, plannedRow{n, m})
		}
	}
	return append(all, plannedRow{1_000_000, 0}, plannedRow{1_000_000, len(planningMixes) - 1})
}

const firstRounds, laterRounds = 8, 2 // packets of each flow

// planningMixes are ways in which connections are spread over pairs of hosts.
var planningMixes = []struct {
	name string
	of   func(i uint32) (a, b uint32)
}{
	{"two hosts", func(uint32) (a, b uint32) { return 0, 0 }},
	{"128 x 128 hosts", func(i uint32) (a, b uint32) { return i % 128, i / 128 % 128 }},
	{"4,096 hosts and 64 servers", func(i uint32) (a, b uint32) { return i % 4096, i / 4096 % 64 }},
	{"another pair of hosts each", func(i uint32) (a, b uint32) { return i, i }},
}

// planned is a worker in memory, by the default configuration, and connections.
type planned struct {
	connections, mix int
	memory           assemble.Memory
	plane            *dataplane.Dataplane
	backend          *inmem.Backend
	time             *stepper.Stepper
	frames           [2][]byte // a request and an acknowledgement
	before           int64     // resident bytes before the first packet
	spent, packets   int64     // CPU time in steps, ns
	psn              uint32
}

const plannedBurst = 32

// flowTables are the bytes that a worker reserves for flows, and for as many that are paired.
func flowTables(flows int) int {
	return flowtable.Size(flows) + pairing.LearnerSize(flows, flows) + account.Size(flows) + pairing.Size(flows)
}

func mebibytes(n int) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

func newPlanned(t *testing.T, connections, mix int) *planned {
	p := &planned{connections: connections, mix: mix}
	c, err := config.Parse("planning.yaml", fmt.Appendf(nil, `gateway: {name: planning}
ports:
  - {name: fabric, device: d0, role: fabric, peer: wan, rate: 400Gbps}
  - {name: wan, device: d1, role: wan, peer: fabric, rate: 400Gbps}
flows: {capacity: %d, paired: %[1]d}`, 2*connections))
	if err != nil {
		t.Fatal(err)
	}
	buffers := make([]byte, 2048*4096)
	if p.backend, err = inmem.New(inmem.Config{Ports: 2, Burst: plannedBurst, BufferSize: 2048, Memory: buffers}); err != nil {
		t.Fatal(err)
	}
	clear(buffers)
	if p.plane, err = assemble.Dataplane(c, assemble.Options{Backends: []burst.Backend{p.backend}, Memory: &p.memory, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	p.time = stepper.New(p.plane, []*inmem.Backend{p.backend}, 1e9)
	p.frames = plannedFrames()
	t.Cleanup(func() {
		p.time.Drain()
		p.plane.Worker(0).Close()
		if err := p.memory.Release(); err != nil {
			t.Error(err)
		}
	})
	debug.FreeOSMemory()
	p.before = resident(t)
	return p
}

// plannedFrames are a request and an acknowledgement.
func plannedFrames() (frames [2][]byte) {
	for i, op := range [...]packet.Opcode{packet.RCSendOnly, packet.RCAcknowledge} {
		frames[i] = testkit.RoCE{Src: "fd00:1::", Dst: "fd00:2::", Opcode: op, Flags: uint8(1-i) << 7, Size: 256}.Frame()
	}
	return frames
}

// exchange makes each connection send a request, which its receiver acknowledges, a number of times, each time in another order.
func (p *planned) exchange(t *testing.T, times int) {
	for range times {
		p.packets += 2 * int64(p.connections)
		order := rand.Perm(p.connections)
		for at := 0; at < len(order); at += plannedBurst / 4 {
			for from := range p.frames {
				for _, i := range order[at:min(at+plannedBurst/4, len(order))] {
					p.inject(t, uint32(i), from)
				}
			}
			p.step()
			p.time.RunUntil(p.time.Now() + 1000)
		}
		p.psn++
	}
}

// inject makes a packet of a connection arrive.
func (p *planned) inject(t *testing.T, i uint32, from int) {
	if !p.give(i, from) {
		t.Fatal("no buffer is free")
	}
}

// give makes a packet of a connection arrive, if a buffer is free.
func (p *planned) give(i uint32, from int) bool {
	const src, dst, port, qp, psn = 14 + 8 + 12, 14 + 24 + 12, 14 + 40, 14 + 48 + 5, 14 + 48 + 9
	b := p.frames[from]
	var hosts, qps [2]uint32
	hosts[0], hosts[1] = planningMixes[p.mix].of(i)
	qps[0], qps[1] = 100+i, 100+i*2654435761>>9
	binary.BigEndian.PutUint32(b[src:], hosts[from])
	binary.BigEndian.PutUint32(b[dst:], hosts[1-from])
	b[src-9], b[dst-9] = uint8(1+from), uint8(2-from)
	binary.BigEndian.PutUint16(b[port:], packet.SourcePort(qps[0], qps[1]))
	put24(b[qp:], qps[1-from])
	put24(b[psn:], i*40503+p.psn)
	return p.backend.Inject(from, b, uint32(len(b)))
}

// step steps until all frames have been received, and counts the time.
func (p *planned) step() {
	w, began := p.plane.Worker(0), cpuTime()
	for p.backend.Waiting() > 0 {
		w.Step()
	}
	p.spent += cpuTime() - began
}

// cpuTime is the thread's CPU time, ns.
func cpuTime() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

// paired is the number of connections whose two source QPs are known.
func (p *planned) paired() (n int) {
	for r := range p.plane.Worker(0).Records() {
		if r.View.Usable() {
			n++
		}
	}
	return n / 2
}

// row measures a row of the table.
func (p *planned) row(t *testing.T) string {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.exchange(t, firstRounds)
	first := p.spent / p.packets
	p.spent, p.packets = 0, 0
	p.exchange(t, laterRounds)
	paired := "all"
	if n := p.paired(); n < p.connections {
		paired = grouped(int64(n))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %d |\n", grouped(int64(p.connections)), planningMixes[p.mix].name,
		mebibytes(flowTables(2*p.connections)), mebibytes(int(resident(t)-p.before)), paired, first, p.spent/p.packets)
}

// resident is the process's resident memory, bytes.
func resident(t *testing.T) int64 {
	var size, pages int64
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func put24(b []byte, v uint32) { b[0], b[1], b[2] = uint8(v>>16), uint8(v>>8), uint8(v) }
