package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

// work is one kind of packets whose cost in instructions is counted.
type work struct {
	name   string
	v6     bool
	change func(*dataplane.Policy)
	every  int64 // ns between two bursts
}

const countedFlows = 1024

// works are the counted kinds: forwarding, both responses, the law when it notifies and when all flows are below its rate, mixed traffic, and the
// in-memory backend itself, which is subtracted from those after it.
var works = []work{
	{"backend", false, nil, often},
	{"forward-ipv4", false, func(*dataplane.Policy) {}, often},
	{"forward-ipv4-go", false, func(*dataplane.Policy) {}, often},
	{"forward-ipv6", true, func(*dataplane.Policy) {}, often},
	{"forward-cnps", false, func(*dataplane.Policy) {}, often}, // the flows' packets one way, their receivers' CNPs the other way
	{"mark", false, markAll, often},
	{"mark-ipv6", true, markAll, often},
	{"notify-long-haul-cnp", false, func(p *dataplane.Policy) { p.Ports[1].Thresholds = congestion.Thresholds{} }, often},
	{"notify-fast-cnp", true, func(p *dataplane.Policy) { p.Ports[1].Thresholds = congestion.Thresholds{} }, often},
	{"law-below", false, func(p *dataplane.Policy) { p.Ports[1].Law = congestion.NewLaw(400e9, 1, 0) }, often},
	{"notify-by-law", false, func(p *dataplane.Policy) { p.Ports[1].Law = congestion.NewLaw(100e3, 1, 0) }, seldom},
	// Connections are followed: not at all, at a rate above the one at which a worker reads all packets, outside of its windows; and below it, where it reads all.
	{"follow-none", false, func(*dataplane.Policy) {}, often},
	{"follow-outside", false, func(*dataplane.Policy) {}, often},
	{"follow-all", false, func(*dataplane.Policy) {}, 1_000_000},
	{"backend-mixed", false, nil, often},
	{"forward-mixed", false, func(*dataplane.Policy) {}, often},
	{"forward-mixed-go", false, func(*dataplane.Policy) {}, often},
}

// settings are GODEBUG's for a work: with -go it is done as on a processor without AVX2, by the twins in Go that run on other architectures, too.
func (w *work) settings() string {
	if strings.HasSuffix(w.name, "-go") {
		return ",cpu.avx2=off,cpu.avx=off"
	}
	return ""
}

// Times between two bursts, ns: seldom is so long that each packet is one to notify about, though no sender reacts.
const (
	often  = 10_000
	seldom = congestion.BrakeSpacing / (countedFlows / countedBurst) * 5 / 4
)

func markAll(p *dataplane.Policy) {
	p.Ports[1].Thresholds, p.Ports[1].Interval = congestion.Thresholds{KMax: 1 << 60}, 100_000
}

// count is the program that runs under callgrind: a number of bursts of each kind of work on an in-memory backend.
func count(args []string) error {
	f := flag.NewFlagSet("count", flag.ExitOnError)
	names := f.String("work", "forward-ipv4", "what to do, one after another")
	bursts := f.Int("bursts", 100, "how often")
	uncounted := f.Int("uncounted", 0, "how many of these aren't counted, at first")
	_ = f.Parse(args) // ExitOnError
	debug.SetGCPercent(-1)
	for name := range strings.SplitSeq(*names, ",") {
		i := slices.IndexFunc(works, func(w work) bool { return w.name == name })
		if i < 0 {
			return fmt.Errorf("no work is called %q", name)
		}
		begin()
		if err := works[i].do(*uncounted, *bursts); err != nil {
			return err
		}
	}
	return nil
}

// begin tells callgrind that what it counts from here on is of another work.
//
//go:noinline
func begin() {}

// complaints makes the test kit's failures errors.
type complaints struct{ err error }

func (c *complaints) Helper() {}
func (c *complaints) Errorf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}
func (c *complaints) Fatalf(format string, args ...any) { panic(fmt.Errorf(format, args...)) }

const countedBurst = 64

func (w *work) do(uncounted, bursts int) error {
	c := &complaints{}
	p, static, err := w.policy()
	if err != nil {
		return err
	}
	r := testkit.New(c, testkit.Setup{Policy: p, Static: static, Burst: w.burst(), Rate: 400e9, Forget: true, Flows: 4096, Buffers: 1024, BufferSize: 4096, Change: w.config})
	frames, err := w.frames()
	if err != nil {
		return err
	}
	did := counted{}
	for n := range bursts {
		if n == warmBursts {
			did.Allocations, did.Exchanges = allocations(), r.Backends[0].Exchanges()
		}
		from := frames[n%len(frames)]
		for i := range w.burst() {
			at := n/len(frames)*w.burst() + i
			frame := from[at%len(from)]
			if w.psns() { // PSNs in a row
				binary.BigEndian.PutUint16(frame[psnAt:], uint16(at/len(from)))
			}
			r.Inject(c, n%len(frames), frame)
		}
		r.Advance(w.every)
		if n < uncounted {
			w.once(r)
		} else {
			w.step(r)
		}
	}
	did.Steps = uint64(bursts - warmBursts)
	did.Allocations, did.Exchanges = allocations()-did.Allocations, r.Backends[0].Exchanges()-did.Exchanges
	did.Forwarded, did.Marked = r.Count(0, counters.TxPackets)+r.Count(1, counters.TxPackets), r.Count(1, counters.ECNMarked)
	for f := range packet.SentNotifications {
		did.Notified += r.Count(0, counters.SentFirst+counters.Counter(f))
	}
	if c.err != nil {
		return c.err
	}
	return json.NewEncoder(os.Stdout).Encode(did)
}

const psnAt = packet.EthernetLen + 20 + 8 + 10 // of an IPv4 packet's PSN the two low bytes

// psns reports whether the PSNs of a flow are in a row. Otherwise each flow's packets are all the same.
func (w *work) psns() bool { return strings.HasPrefix(w.name, "follow") }

// burst is the number of packets in a burst: a worker doesn't follow connections if all bursts are full.
func (w *work) burst() int {
	if w.psns() {
		return countedBurst / 2
	}
	return countedBurst
}

func (w *work) config(c *dataplane.Config) {
	if w.psns() && w.name != "follow-none" {
		c.Followed = countedFlows
	}
}

// frames are those that a port receives over and over, or two ports in turn.
func (w *work) frames() (by [][][]byte, err error) {
	if strings.Contains(w.name, "-mixed") {
		m, err := newMix()
		return m.frames[:], err
	}
	t := traffic{flows: countedFlows, v6: w.v6, payload: smallest}
	by = append(by, t.frames())
	if w.name == "forward-cnps" {
		t.cnps = true
		by = append(by, t.frames())
	}
	return by, nil
}

func (t traffic) frames() (all [][]byte) {
	for _, flow := range t.order() {
		frame := t.frame()
		t.put(frame, int(flow))
		all = append(all, frame)
	}
	return all
}

// counted has the program's own counts, besides callgrind's instructions: of the steps after the first warmBursts, and of all in the last
// line.
type counted struct {
	Steps, Allocations, Exchanges uint64
	Forwarded, Marked, Notified   uint64
}

// warmBursts is the number of bursts until every flow is known and every list has its final size.
const warmBursts = 4 * countedFlows / countedBurst

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// step is what callgrind counts.
//
//go:noinline
func (w *work) step(r *testkit.Rig) { w.once(r) }

// once is a worker's step, or its replacement when only the backend is counted.
func (w *work) once(r *testkit.Rig) {
	if w.change != nil {
		r.Plane.Worker(0).Step()
		return
	}
	r.Backends[0].Exchange()
	ports := r.Backends[0].Batch().Ports
	for i := range ports {
		ports[i].Tx = append(ports[i].Tx[:0], ports[1-i].Rx...)
	}
}

// policy allows every kind of notification without limits, and the thresholds of the work.
func (w *work) policy() (*dataplane.Policy, *pairing.QPMap, error) {
	p := testkit.DefaultPolicy(2)
	p.Who = &congestion.Policy{
		Enabled: [packet.SentNotifications]bool{packet.FastCNP: true, packet.LongHaulCNP: true}, HasIPv4: true, HasIPv6: true,
		Endpoints: prefix.New([]prefix.Entry[congestion.Preference]{
			{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Value: congestion.Prefer(packet.LongHaulCNP)},
			{Prefix: netip.MustParsePrefix("fd00:a::/32"), Value: congestion.Prefer(packet.FastCNP)},
		}),
	}
	p.Build = cnpgen.Gateway{
		IPv4: packet.AddrFrom(netip.MustParseAddr("192.0.2.1")), IPv6: packet.AddrFrom(netip.MustParseAddr("2001:db8::1")),
		HasIPv4: true, HasIPv6: true, DSCP: 48, Code: packet.DefaultCodePoints, ICRCExtensionHeaders: true,
	}
	for i := range p.Ports { // every packet causes the same notification
		p.Ports[i].Ladder = []congestion.Rung{{Action: congestion.RateReduce, Percent: 30}}
	}
	if w.name == "notify-by-law" {
		p.Who.Enabled[packet.StandardCNP] = true
		p.Who.Endpoints = prefix.New([]prefix.Entry[congestion.Preference]{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Value: congestion.Prefer(packet.StandardCNP)}})
	}
	if w.change != nil {
		w.change(p)
	}
	var pairs []pairing.QPPair
	for i := range countedFlows {
		k := traffic{}.key(i)
		pairs = append(pairs, pairing.QPPair{Source: k.Src, Destination: k.Dst, SourceQP: 2 + uint32(i), DestinationQP: k.DestQP})
	}
	static, err := pairing.NewQPMap(pairs, 1)
	return p, static, err
}
