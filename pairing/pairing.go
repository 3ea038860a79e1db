package pairing

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/cm"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// Config has the parameters of New.
type Config struct {
	// Flows is the number of flows, of all workers together, that can be paired at a time.
	Flows int
	// Egress gives each gateway port's egress port, where the opposite direction of a flow arrives. Each value is an index into Egress, and
	// not the port's own.
	Egress []int
	// Aging is the time in nanoseconds for which RDMA-CM's claims about a connection are kept until its data begins; 0 or less: forever.
	Aging int64
	// Seed keys the hashes.
	Seed uint64
	// Scopes are VLANs or tunnels in which the two directions of connections are, in any order, as packet.Scope.Named.
	Scopes [][2]packet.Scope
	// StatedScopes is that only these belong together: nothing is learned of others.
	StatedScopes bool
}

// Pairing is what the workers of one gateway share: the slots of their flows, the CM records, and the hints of host agents.
type Pairing struct {
	secret   [secrets]uint64
	flows    int // Config.Flows
	egress   []uint16
	learners []*Learner
	peers    int // the number of the learner of peers' flows, plus 1; 0 for none
	answers  answers
	hints    atomic.Pointer[QPMap]
	serial   uint64 // of the hints; only SetHints uses it
	store    *store.Store

	cmLock store.Lock // protects cm
	cm     *cm.Records

	scopes scopePairs

	connections qpFacts // flows with a slot, by their destination QP
	datagrams   qpFacts // UD flows, by both QPs
}

const (
	lineSize     = 64
	flowsAQPSet  = 4  // flows for each set of facts about QPs of connections: a quarter of it is used
	flowsACMSet  = 64 // flows for each set of CM records, and of facts about UD
	maxFlows     = 1 << 28
	cacheLinePad = 9 * lineSize // bytes that aligning the arrays may need
)

// Size is the number of bytes that New needs.
func Size(flows int) int {
	groups, slots, nodes, counts := store.Sizes(flows)
	qpSets, sets := factSets(flows)
	return cacheLinePad + groups*int(unsafe.Sizeof(store.Group{})+2*unsafe.Sizeof(store.Head{})) + slots*int(unsafe.Sizeof(store.Record{})) +
		nodes*int(unsafe.Sizeof(store.Node{})) + counts*4 + qpSets*int(unsafe.Sizeof(factSet{})) +
		sets*int(unsafe.Sizeof(cm.RecordSet{})+2*unsafe.Sizeof(cm.ClaimSet{})+unsafe.Sizeof(factSet{}))
}

// factSets are the numbers of sets of facts about the QPs of connections, and of sets of CM records and of facts about UD.
func factSets(flows int) (connections, others int) {
	return flows/flowsAQPSet + 64, flows/flowsACMSet + 64
}

// New makes an empty Pairing in mem, which must be zero. It uses the first Size(c.Flows) bytes for as long as the Pairing is used. It
// returns an error if c.Flows is not 1 to 2^28, if mem is too small, or if a value of c.Egress is not the index of another port.
func New(mem []byte, c Config) (*Pairing, error) {
	if c.Flows < 1 || c.Flows > maxFlows {
		return nil, fmt.Errorf("pairing: space for %d flows: expected 1 to %d", c.Flows, maxFlows)
	}
	need := Size(c.Flows)
	if len(mem) < need {
		return nil, fmt.Errorf("pairing: %d bytes of memory for %d flows: expected at least %d", len(mem), c.Flows, need)
	}
	p := &Pairing{secret: secretsFrom(^c.Seed), flows: c.Flows}
	for _, of := range c.Scopes {
		p.scopes.stated = append(p.scopes.stated, scopePair{of[0].Tenant().Named(), of[1].Tenant().Named()})
	}
	p.scopes.closed = c.StatedScopes
	for i, egress := range c.Egress {
		if egress < 0 || egress >= len(c.Egress) || egress == i {
			return nil, fmt.Errorf("pairing: port %d has egress port %d: expected another of the %d ports", i, egress, len(c.Egress))
		}
		p.egress = append(p.egress, uint16(egress))
	}
	groups, slots, nodes, counts := store.Sizes(c.Flows)
	qpSets, sets := factSets(c.Flows)
	mem = mem[int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%lineSize):]
	var m store.Memory
	// What RoCEv2 data uses comes first: with huge pages, all that is near becomes resident.
	m.Groups, mem = carve[store.Group](mem, groups)
	m.Heads, mem = carve[store.Head](mem, 2*groups)
	p.connections, mem = carve[factSet](mem, qpSets)
	m.Counts, mem = carve[atomic.Uint32](mem, counts)
	m.Slots, mem = carve[store.Record](mem, slots)
	m.Nodes, mem = carve[store.Node](mem, nodes)
	records, mem := carve[cm.RecordSet](mem, sets)
	claims, mem := carve[cm.ClaimSet](mem, 2*sets) // a connection has two claims
	p.datagrams, _ = carve[factSet](mem, sets)
	p.store, p.cm = store.New(m), cm.New(records, claims, c.Aging)
	return p, nil
}

// carve takes n values of type T from the front of mem. The rest begins on a cache line.
func carve[T any](mem []byte, n int) ([]T, []byte) {
	var t T
	size := (n*int(unsafe.Sizeof(t)) + lineSize - 1) &^ (lineSize - 1)
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[0])), n), mem[size:]
}

const secrets = 6

func secretsFrom(seed uint64) (s [secrets]uint64) {
	keyhash.Spread(s[:], seed)
	return s
}

// SetHints replaces the map of host agents' hints; nil is an empty map. One goroutine at a time may call it, with a map that no other Pairing
// has. The workers apply a new map to existing flows with their next Sweeps, and to flows that begin after the call at once.
func (p *Pairing) SetHints(m *QPMap) {
	if before := p.hints.Load(); m != nil && m != before && m.anywhere {
		p.serial++
		m.number(p.serial, before)
	}
	p.hints.Store(m)
}

// groupOf returns the key of the group of a flow's own scope, and the flow's side: 0 for flows with the lower ingress port of the two.
func (p *Pairing) groupOf(k *flowtable.Key) (g store.Key, side int) {
	g = store.Key{Hosts: [2]packet.Addr{k.Src, k.Dst}, Scope: p.scopeOf(k.Scope().Tenant())}
	if g.Scope.Port() != k.Port {
		g.Hosts[0], g.Hosts[1], side = k.Dst, k.Src, 1
	}
	return g, side
}

func (p *Pairing) hashOf(k *store.Key) uint64 { return k.Hash(&p.secret) }

// contradict ends a pair that is probably wrong. It clears what was learned about both flows, and counts a contradiction for each.
func (p *Pairing) contradict(slot *store.Slot) {
	peer, ok := slot.Unpair()
	p.contradictOne(slot)
	if ok {
		p.contradictOne(&peer)
	}
}

// maxContradictions is the maximum that counts, so that a flow can always be confirmed again.
const maxContradictions = 5

func (p *Pairing) contradictOne(slot *store.Slot) {
	slot.Contradict()
	p.answers.withdraw(slot.Ref())
	slot.Unlearn()
	e := slot.EditElimination()
	e.Contradictions = min(e.Contradictions+1, maxContradictions)
}

// Used is the number of flows and of pairs of hosts in the pairing table, and how many it has places for. Any goroutine may call it; it reads the whole table.
func (p *Pairing) Used() (flows, hosts, allFlows, allHosts int) { return p.store.Used() }
