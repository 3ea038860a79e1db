package pairing

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
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
}

// Pairing is what the workers of one gateway share: the groups and the slots of their flows, the CM records, and the hints of host agents.
type Pairing struct {
	secret   [secrets]uint64
	egress   []uint16
	aging    int64
	learners []*Learner
	hints    atomic.Pointer[QPMap]

	groups []group  // 0 is never used
	heads  []uint32 // groups by hash, linked by group.next
	pages  []page   // 0 is never used

	allocation tryLock // protects the next fields, heads, and the use of groups and pages
	freePage   uint32
	freeGroup  uint32
	usedPages  uint32
	usedGroups uint32
	full       int64  // there was no empty group: no search until then, ns
	hand       uint32 // where the next search for an empty group begins

	cm cmRecords

	connections qpFacts // flows with a slot, by their destination QP
	datagrams   qpFacts // UD flows, by both QPs
}

const (
	lineSize     = 64
	flowsAGroup  = 10 // flows for each group, on average
	flowsAPage   = 4  // flows for each slotsAPage slots
	flowsACMSet  = 64 // flows for each set of CM records, and of facts of UD
	maxLearners  = 256
	maxFlows     = 1 << 28
	cacheLinePad = 4 * lineSize // bytes that aligning four arrays may need
)

func (c *Config) sizes() (groups, pages, sets int) {
	return c.Flows/flowsAGroup + 64, c.Flows/flowsAPage + 128, c.Flows/flowsACMSet + 64
}

// Size is the number of bytes that New needs.
func Size(flows int) int {
	groups, pages, sets := (&Config{Flows: flows}).sizes()
	return lineSize + (groups+1)*int(unsafe.Sizeof(group{})+4) + (pages+1)*int(unsafe.Sizeof(page{})) +
		sets*int(unsafe.Sizeof(cmSet{})+2*unsafe.Sizeof(claimSet{})+unsafe.Sizeof(factSet{})) +
		pages*int(unsafe.Sizeof(factSet{})) + cacheLinePad
}

// New makes an empty Pairing in mem, which must be zero. It uses the first Size(c.Flows) bytes for as long as the Pairing is used. It returns an
// error if c.Flows is not 1 to 2^28, if mem is too small, or if a value of c.Peers is not the index of another port.
func New(mem []byte, c Config) (*Pairing, error) {
	if c.Flows < 1 || c.Flows > maxFlows {
		return nil, fmt.Errorf("pairing: space for %d flows: expected 1 to %d", c.Flows, maxFlows)
	}
	need := Size(c.Flows)
	if len(mem) < need {
		return nil, fmt.Errorf("pairing: %d bytes of memory for %d flows: expected at least %d", len(mem), c.Flows, need)
	}
	p := &Pairing{secret: secretsFrom(^c.Seed), aging: c.Aging}
	for i, egress := range c.Egress {
		if egress < 0 || egress >= len(c.Egress) || egress == i {
			return nil, fmt.Errorf("pairing: port %d has egress port %d: expected another of the %d ports", i, egress, len(c.Egress))
		}
		p.egress = append(p.egress, uint16(egress))
	}
	groups, pages, sets := c.sizes()
	mem = mem[int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%lineSize):]
	// What RoCEv2 data uses comes first: with huge pages, all that is near becomes resident.
	p.groups, mem = carve[group](mem, groups+1)
	p.heads, mem = carve[uint32](mem, groups+1)
	p.connections, mem = carve[factSet](mem, pages) // almost two facts for each slot
	p.pages, mem = carve[page](mem, pages+1)
	p.cm.sets, mem = carve[cmSet](mem, sets)
	p.cm.claims, mem = carve[claimSet](mem, 2*sets) // a connection has two claims
	p.datagrams, _ = carve[factSet](mem, sets)
	return p, nil
}

// carve takes n values of type T from the front of mem. The rest begins on a cache line.
func carve[T any](mem []byte, n int) ([]T, []byte) {
	var t T
	size := (n*int(unsafe.Sizeof(t)) + lineSize - 1) &^ (lineSize - 1)
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[0])), n), mem[size:]
}

// SetHints replaces the map of host agents' hints; nil is an empty map. Any goroutine may call it. The workers apply a new map to existing flows
// with their next Sweeps, and to flows that begin after the call at once.
func (p *Pairing) SetHints(m *QPMap) { p.hints.Store(m) }

// tryLock protects data that workers share. A worker never waits for a lock that another worker holds, but continues without it. The evidence
// is lost, or a later packet of the flow brings it again.
type tryLock struct{ held atomic.Uint32 }

func (l *tryLock) try() bool { return l.held.CompareAndSwap(0, 1) }
func (l *tryLock) release()  { l.held.Store(0) }

// trySoon tries up to 1000 times. It is for messages that come only once. No worker holds a lock for longer than some microseconds.
func (l *tryLock) trySoon() bool {
	const tries = 1000
	for range tries {
		if l.try() {
			return true
		}
	}
	return false
}

// flowRef names a flow of any worker: the learner's number, the low 28 bits of the flow's generation, and the flow's index (28 bits). It never
// names another flow, as long as an index serves fewer than 2^28 flows. 0 is no flow.
type flowRef uint64

const refBits = 28

func (l *Learner) refOf(x flowtable.Index, s flowtable.State) flowRef {
	return l.refTo(flowtable.Ref{Index: x, Generation: s.Generation()})
}

func (l *Learner) refTo(r flowtable.Ref) flowRef {
	return flowRef(l.number<<(2*refBits) | uint64(r.Generation&(1<<refBits-1))<<refBits | uint64(r.Index))
}

// flowOf returns the table, index and state of a flow; ok is false if the flow has ended.
func (p *Pairing) flowOf(r flowRef) (t *flowtable.Table, x flowtable.Index, s flowtable.State, ok bool) {
	if r == 0 {
		return nil, 0, 0, false
	}
	t, x = p.learners[r>>(2*refBits)].table, flowtable.Index(r&(1<<refBits-1))
	s = t.State(x)
	return t, x, s, s.Live() && s.Generation()&(1<<refBits-1) == uint32(r>>refBits)&(1<<refBits-1)
}

// answerOf returns the flow's answer.
func (p *Pairing) answerOf(r flowRef) (Answer, bool) {
	_, _, s, ok := p.flowOf(r)
	return Answer(s.Answer()), ok
}

// update replaces a flow's answer by the result of change, and reports whether the answer has changed. The flow may be another worker's,
// and that worker may change the answer at the same time. Then update calls change again, with the new answer.
func (p *Pairing) update(r flowRef, change func(Answer) Answer) bool {
	for {
		t, x, s, ok := p.flowOf(r)
		if !ok {
			return false
		}
		now := change(Answer(s.Answer()))
		if now == Answer(s.Answer()) {
			return false
		}
		if t.SetAnswer(x, s, flowtable.Answer(now)) {
			return true
		}
	}
}

// groupKey has what the two flows of a connection have in common: the hosts, the one of side 0 first, and the scope at the lower one of the
// two gateway ports, which determines the other one.
type groupKey struct {
	hosts [2]packet.Addr
	scope packet.Scope
}

// groupOf returns the key of a flow's group, and the flow's side: 0 for flows with the lower ingress port of the two.
func (p *Pairing) groupOf(k *flowtable.Key) (g groupKey, side int) {
	egress := k.Port
	if int(k.Port) < len(p.egress) {
		egress = p.egress[k.Port]
	}
	if k.Port <= egress {
		return groupKey{[2]packet.Addr{k.Src, k.Dst}, k.Scope()}, 0
	}
	return groupKey{[2]packet.Addr{k.Dst, k.Src}, k.Scope().At(int(egress))}, 1
}
