package flowtable

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Pairing is what the tables of one gateway share to learn source QPs from what passes by: for every pair of hosts, the flows of
// both directions as places in a group, with the few numbers that tell which flow answers which. The packets of a connection's two
// directions may be seen by different workers; each writes what its own packets say, reads what the others have written, and
// waits for nobody. What two workers must not do at once (giving out places, RDMA-CM's records) is claimed, and who finds it
// claimed does without: that piece of evidence is lost, or tried again with the flow's next packet.
//
// Its memory is the caller's and of fixed size. Flows for which it has no place are never paired, only counted.
type Pairing struct {
	secret [secrets]uint64
	peers  []uint16
	aging  int64
	tables []*Table
	hints  atomic.Pointer[QPMap]

	pages  []page // 0 is never used
	groups []group
	heads  []uint32 // groups by hash, linked by group.next
	cm     []cmSet
	known  []knownSet

	claimed    atomic.Uint32 // guards what follows, heads, links, cm and known
	freePage   uint32
	freeGroup  uint32
	usedPages  uint32
	usedGroups uint32
	full       int64  // until when no empty group is looked for, since there was none
	hand       uint32 // where the next search for an empty group begins
}

// PairingConfig is what NewPairing needs to know.
type PairingConfig struct {
	// Flows is for how many flows of all tables together there is room to be paired at a time.
	Flows int
	// Peers tells for each port which one its frames leave by; the reverse of a flow comes in there.
	Peers []int
	// Aging is how long, in nanoseconds, RDMA-CM's word is kept about a connection without packets; 0 or less: for ever.
	Aging int64
	// Seed keys the hashes.
	Seed uint64
}

const (
	flowsAGroup = 8  // flows for which there is a group, on average; a side of a group has 8 places at least
	flowsAPage  = 4  // flows for which there are placesAPage places
	flowsASet   = 16 // flows for which there is a set of RDMA-CM records
	maxTables   = 256
)

func (c *PairingConfig) sizes() (groups, pages, sets int) {
	return c.Flows/flowsAGroup + 64, c.Flows/flowsAPage + 128, c.Flows/flowsASet + 64
}

// PairingSize is the number of octets NewPairing needs.
func PairingSize(flows int) int {
	groups, pages, sets := (&PairingConfig{Flows: flows}).sizes()
	return lineSize + (groups+1)*int(unsafe.Sizeof(group{})+4) + (pages+1)*int(unsafe.Sizeof(page{})) +
		sets*int(unsafe.Sizeof(cmSet{})+unsafe.Sizeof(knownSet{})) + 4*lineSize
}

// NewPairing makes an empty Pairing in mem, which must be zero and of which it keeps the first PairingSize(c.Flows) octets. Tables join it by
// Config.Pairing, before any of them is used.
func NewPairing(mem []byte, c PairingConfig) (*Pairing, error) {
	if c.Flows < 1 || c.Flows > maxCapacity {
		return nil, fmt.Errorf("flowtable: pairing of %d flows: expected 1 to %d", c.Flows, maxCapacity)
	}
	need := PairingSize(c.Flows)
	if len(mem) < need {
		return nil, fmt.Errorf("flowtable: %d octets of memory to pair %d flows: expected at least %d", len(mem), c.Flows, need)
	}
	p := &Pairing{secret: secretsFrom(^c.Seed), aging: c.Aging}
	for i, peer := range c.Peers {
		if peer < 0 || peer >= len(c.Peers) || peer == i {
			return nil, fmt.Errorf("flowtable: pairing: port %d has peer %d: expected another of the %d ports", i, peer, len(c.Peers))
		}
		p.peers = append(p.peers, uint16(peer))
	}
	groups, pages, sets := c.sizes()
	mem = mem[int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%lineSize):]
	p.pages, mem = carve[page](mem, pages+1)
	p.groups, mem = carve[group](mem, groups+1)
	p.cm, mem = carve[cmSet](mem, sets)
	p.known, mem = carve[knownSet](mem, sets)
	p.heads, _ = carve[uint32](mem, groups+1)
	return p, nil
}

// carve takes n of T from the front of mem, and leaves the rest on a cache line.
func carve[T any](mem []byte, n int) ([]T, []byte) {
	var t T
	size := (n*int(unsafe.Sizeof(t)) + lineSize - 1) &^ (lineSize - 1)
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[0])), n), mem[size:]
}

func (p *Pairing) claim() bool { return p.claimed.CompareAndSwap(0, 1) }
func (p *Pairing) release()    { p.claimed.Store(0) }

// claimTries bounds the attempts for what is seldom and must not be lost; a claim lasts a microsecond at most.
const claimTries = 1000

func (p *Pairing) claimSoon() bool {
	for range claimTries {
		if p.claim() {
			return true
		}
	}
	return false
}

func (p *Pairing) join(t *Table) error {
	if len(p.tables) == maxTables {
		return fmt.Errorf("flowtable: pairing of more than %d tables", maxTables)
	}
	t.number = uint64(len(p.tables))
	p.tables = append(p.tables, t)
	return nil
}

// SetHints replaces what host agents have said of QP pairs; nil for nothing. Any goroutine may call it; tables take it up with
// their next Sweeps, as with SetStatic.
func (p *Pairing) SetHints(m *QPMap) { p.hints.Store(m) }

// owner says whose flow is at a place: the table, the entry, and the low 28 bits of the entry's generation. 0 is nobody.
type owner uint64

const ownerBits = 28

func (t *Table) ownerOf(x Index) owner {
	g := state(t.entries[x].state.Load()).generation()
	return owner(t.number<<(2*ownerBits) | uint64(g&(1<<ownerBits-1))<<ownerBits | uint64(x))
}

// entryOf is the owner's entry with its state, or nil if the flow has ended since.
func (p *Pairing) entryOf(o owner) (*entry, state) {
	if o == 0 {
		return nil, 0
	}
	e := &p.tables[o>>(2*ownerBits)].entries[o&(1<<ownerBits-1)]
	s := state(e.state.Load())
	if !s.live() || s.generation()&(1<<ownerBits-1) != uint32(o>>ownerBits)&(1<<ownerBits-1) {
		return nil, 0
	}
	return e, s
}

// settled tells whether nothing that is learned may change the flow's source QP.
func (s state) settled() bool {
	return s.qpState() == Confirmed && s.evidence() <= EvidenceDETH || s.ending() != Open
}

// assert gives a flow a source QP, unless it has one from better evidence. It tells whether the flow has that QP now, and whether it
// is this that made it so.
func (p *Pairing) assert(o owner, qp uint32, s QPState, why Evidence) (has, changed bool) {
	for {
		e, was := p.entryOf(o)
		if e == nil {
			return false, false
		}
		if was.ending() != Open || was.qpState() == Confirmed && (was.evidence() < why || s != Confirmed) {
			return was.usable() && was.qp() == qp, false
		}
		if e.change(was, qpWord(qp, s, why)) {
			return true, true
		}
	}
}

// confirm gives a flow a source QP for good, and counts it if that was not known before. It tells whether the flow has that QP now.
func (t *Table) confirm(o owner, qp uint32, why Evidence) bool {
	has, changed := t.pairing.assert(o, qp, Confirmed, why)
	if changed {
		t.confirmed[why]++
	}
	return has
}

// reverseKey says which group a flow belongs to, and which side of it: 0 for flows that come in by the lower port.
func (p *Pairing) groupOf(k *Key) (g groupKey, side int) {
	peer := k.Port
	if int(k.Port) < len(p.peers) {
		peer = p.peers[k.Port]
	}
	vlans := uint64(k.OuterVID)<<32 | uint64(k.InnerVID)<<48
	if k.Port <= peer {
		return groupKey{[2]packet.Addr{k.Src, k.Dst}, uint64(k.Port) | uint64(peer)<<16 | vlans}, 0
	}
	return groupKey{[2]packet.Addr{k.Dst, k.Src}, uint64(peer) | uint64(k.Port)<<16 | vlans}, 1
}
