package pairing

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/pairing/store"
	"pgregory.net/rapid"
)

// site is a gateway with two workers, one for each direction, and connections between drawn hosts.
type site struct {
	pairing     *Pairing
	workers     [2]*worker
	connections []connection
	inUse       map[hostQP]bool
	now, gap    int64 // ns; gap is between two packets
	frame       [64]byte
	refs        [1]flowtable.Ref
	keys        [1]flowtable.Key
}

// hostQP is a QP number of a host at one end: no other connection of that host has it.
type hostQP struct {
	end  int
	host uint64
	qp   uint32
}

// connection has its ends' hosts, QPs and next PSNs.
type connection struct {
	host [2]packet.Addr
	qp   [2]uint32
	psn  uint32
	port uint16
}

func newSite(t testing.TB, paired, capacity int) *site {
	t.Helper()
	p, err := New(make([]byte, Size(paired)), Config{Flows: paired, Egress: []int{1, 0}, Aging: 60e9, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{pairing: p, inUse: map[hostQP]bool{}, now: synthEpoch, gap: 100}
	for i := range s.workers {
		s.workers[i] = newWorker(t, p, capacity, uint64(i))
	}
	return s
}

// connect adds a connection between two hosts. Its UDP source port is that of most RNICs.
func (s *site) connect(a, b uint64, r *rand.Rand) {
	c := connection{host: [2]packet.Addr{{Hi: 1, Lo: a}, {Hi: 2, Lo: b}}, psn: r.Uint32()}
	for i := range c.qp {
		of := hostQP{end: i, host: c.host[i].Lo}
		for of.qp == 0 || s.inUse[of] {
			of.qp = 2 + r.Uint32N(packet.MaxQP-3)
		}
		s.inUse[of], c.qp[i] = true, of.qp
	}
	c.port = packet.SourcePort(c.qp[0], c.qp[1])
	s.connections = append(s.connections, c)
}

// send sends a packet from one end of a connection.
func (s *site) send(c *connection, from int, op packet.Opcode) {
	s.now += s.gap
	k := flowtable.Key{Src: c.host[from], Dst: c.host[1-from], DestQP: c.qp[1-from], Port: uint16(from)}
	w := s.workers[from]
	w.StartBurst()
	s.keys[0] = k
	w.lookup(s.keys[:], s.now, s.refs[:])
	if x := s.refs[0].Index; x != flowtable.None {
		p := packet.Parsed{Kind: packet.RoCEv2, Opcode: op, DestQP: k.DestQP, PSN: c.psn & packet.PSNMask, SrcPort: c.port, Len: 64}
		w.observe(x, &s.keys[0], &p, s.frame[:], s.now)
	}
}

// exchange makes each connection send a request, which its receiver acknowledges, a number of times.
func (s *site) exchange(times int) {
	s.frame[8] = 0x80 // AckReq
	for range times {
		for i := range s.connections {
			c := &s.connections[i]
			s.send(c, 0, packet.RCSendOnly)
			s.send(c, 1, packet.RCAcknowledge)
			c.psn++
		}
	}
}

// known is the number of connections whose sender's QP is known; it fails the test for one that is wrong.
func (s *site) known(t *testing.T) (n int) {
	t.Helper()
	for i := range s.connections {
		c := &s.connections[i]
		k := flowtable.Key{Src: c.host[0], Dst: c.host[1], DestQP: c.qp[1]}
		a, ok := s.workers[0].find(&k)
		if !ok || !a.Usable() {
			continue
		}
		if n++; a.SourceQP() != c.qp[0] {
			t.Errorf("connection %d comes from QP %d: %v", i, c.qp[0], a)
		}
	}
	return n
}

// scan makes a host send one request to each of n addresses, from which nothing returns.
func (s *site) scan(host uint64, n int, r *rand.Rand) {
	for range n {
		c := connection{host: [2]packet.Addr{{Hi: 1, Lo: host}, {Hi: 3, Lo: r.Uint64()}}, qp: [2]uint32{5, 2 + r.Uint32N(1000)}, port: 50000}
		s.send(&c, 0, packet.RCSendOnly)
	}
}

// mixes are ways in which connections are spread over pairs of hosts.
var mixes = map[string]func(n int, r *rand.Rand) (a, b uint64){
	"each its own pair": func(n int, _ *rand.Rand) (a, b uint64) { return uint64(n), uint64(n) },
	"one server":        func(n int, _ *rand.Rand) (a, b uint64) { return 1, uint64(n) },
	"128 x 128":         func(n int, _ *rand.Rand) (a, b uint64) { return uint64(n % 128), uint64(n / 128 % 128) },
	"two each":          func(n int, _ *rand.Rand) (a, b uint64) { return uint64(n / 2), uint64(n / 2) },
	"17 each":           func(n int, _ *rand.Rand) (a, b uint64) { return uint64(n / 17), uint64(n / 17) },
	"two hosts":         func(int, *rand.Rand) (a, b uint64) { return 1, 1 },
	"zipf": func(_ int, r *rand.Rand) (a, b uint64) {
		z := rand.NewZipf(r, 1.2, 8, 4095)
		return z.Uint64(), z.Uint64()
	},
}

// possible is how many connections can be paired: of those between two hosts with one UDP source port, as many as a branch has slots.
func (s *site) possible() (n int) {
	type port struct {
		host [2]packet.Addr
		port uint16
	}
	of := map[port]int{}
	for _, c := range s.connections {
		at := port{c.host, c.port}
		if of[at]++; of[at] <= store.SlotsABranch {
			n++
		}
	}
	return n
}

// TestAnyMixOfHosts: as many connections are paired as the memory is for, however they are spread over pairs of hosts.
func TestAnyMixOfHosts(t *testing.T) {
	extreme := map[string]int{"each its own pair": 1, "two hosts": 1} // the longer mode has a million connections of these
	for name, mix := range mixes {
		for _, n := range []int{2000, 10_000, 100_000, 1_000_000}[effort.Short+effort.Race : 2+(1+extreme[name])*effort.Long] {
			t.Run(fmt.Sprint(name, "/", n), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(n)))
				s := newSite(t, 2*n, n)
				for i := range n {
					a, b := mix(i, r)
					s.connect(a, b, r)
				}
				s.exchange(12)
				if got, possible := s.known(t), s.possible(); got < possible-n/200 {
					t.Errorf("%d of %d connections are paired, %d can be; %d flows found no slot", got, n, possible, s.pairing.learners[0].counts.NoSlot+s.pairing.learners[1].counts.NoSlot)
				}
			})
		}
	}
}

// TestScanner: a host that sends to many addresses, from which nothing returns, or many hosts that do, keep none of the others from being paired,
// before, while and after these begin. No flow that has a peer flow loses it.
func TestScanner(t *testing.T) {
	const paired, honest = 4096, 1000
	for name, host := range map[string]func(r *rand.Rand) uint64{
		"one host":       func(*rand.Rand) uint64 { return 7 },
		"40 hosts":       func(r *rand.Rand) uint64 { return 7 + r.Uint64N(40) },
		"forged sources": func(r *rand.Rand) uint64 { return r.Uint64() },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(2, 2))
			s := newSite(t, paired, 1<<16)
			s.gap = 100e3
			for i := range honest {
				for range 5 {
					s.scan(host(r), 4, r)
				}
				s.connect(uint64(1000+i%100), uint64(i), r)
				all := s.connections
				s.connections = all[i:]
				s.exchange(40)
				s.connections = all
				if i%50 == 49 {
					s.exchange(1)
					if got := s.known(t); got != i+1 {
						t.Fatalf("%d of %d connections are paired, %d flows were displaced", got, i+1, s.pairing.learners[0].counts.Displaced)
					}
				}
			}
		})
	}
}

// TestPairedFlowsStay: whatever else flows do, a connection that is paired and sends stays so.
func TestPairedFlowsStay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		s := newSite(t, rapid.IntRange(64, 600).Draw(rt, "flows"), 1<<14)
		most := 0
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			n := rapid.IntRange(1, 200).Draw(rt, "n")
			switch rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				hosts := rapid.Uint64Range(1, 300).Draw(rt, "hosts")
				for range n {
					s.connect(r.Uint64N(hosts), r.Uint64N(hosts), r)
				}
			case 1:
				s.scan(7+r.Uint64N(3), n, r)
			default:
				for range n {
					s.scan(r.Uint64(), 1, r)
				}
			}
			s.exchange(6)
			known := s.known(t)
			if known < most {
				rt.Fatalf("%d connections are paired, %d were", known, most)
			}
			most = known
		}
	})
}

// TestEqualSources: of more flows without a peer flow than there are slots, whose sources have as many each, few are displaced: that would help none of
// the sources, and cost every packet a search.
func TestEqualSources(t *testing.T) {
	const slots, hosts = 4096, 512
	r := rand.New(rand.NewPCG(3, 3))
	s := newSite(t, slots, 1<<16)
	s.gap = 100
	displaced := func() uint64 { return s.pairing.learners[0].counts.Displaced }
	for range 4 * slots {
		s.scan(r.Uint64N(hosts), 1, r)
	}
	before, packets := displaced(), 4*slots
	for range packets {
		s.scan(r.Uint64N(hosts), 1, r)
	}
	if n := displaced() - before; n > uint64(packets/20) {
		t.Errorf("of %d packets, %d displaced another source's flow", packets, n)
	}
}
