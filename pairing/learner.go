package pairing

import (
	"fmt"
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/cm"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// Learner learns from the packets of one worker. It belongs to the worker that owns its flow table; only Stats is for any goroutine.
type Learner struct {
	flows
	pairing *Pairing
	notes   notes
	budget  int // comparisons left in this burst
	maps    maps
	ports   [2]portSet // scratch of sharing
	waiting waiting
	counts  counts
}

// LearnerSize returns the number of bytes that Join needs for a table of this capacity, where paired is the Pairing's Config.Flows.
func LearnerSize(capacity, paired int) int {
	_, slots, _, _ := store.Sizes(paired)
	return (capacity+1)*int(unsafe.Sizeof(track{})+unsafe.Sizeof(total{})+unsafe.Sizeof(int64(0))) +
		slots*int(unsafe.Sizeof(note{})) + cm.MaxWaiting*int(unsafe.Sizeof(cm.Message{})) + 5*lineSize
}

// Join makes the Learner of the worker that owns a table, in mem, which must be zero. It uses the first LearnerSize bytes for as long as
// the Learner is used. All workers join before the first packet. Join returns an error if store.MaxWorkers have joined, or if mem is too small.
func (p *Pairing) Join(t *flowtable.Table, mem []byte) (*Learner, error) {
	if len(p.learners) == store.MaxWorkers {
		return nil, fmt.Errorf("pairing: more than %d workers", store.MaxWorkers)
	}
	if need := LearnerSize(t.Capacity(), p.flows); len(mem) < need {
		return nil, fmt.Errorf("pairing: %d bytes of memory to learn about %d flows: expected at least %d", len(mem), t.Capacity(), need)
	}
	l := &Learner{pairing: p, flows: flows{table: t, number: uint64(len(p.learners))}}
	l.maps.all, l.maps.flows, l.maps.counts, l.maps.swept.hints = p, &l.flows, &l.counts, p.hints.Load()
	n := t.Capacity() + 1
	_, slots, _, _ := store.Sizes(p.flows)
	l.tracks, mem = carve[track](mem, n)
	l.notes, mem = carve[note](mem, slots) // beside what packets touch: with huge pages, all that is near becomes resident
	l.totals, mem = carve[total](mem, n)
	l.since, mem = carve[int64](mem, n)
	messages, _ := carve[cm.Message](mem, cm.MaxWaiting)
	l.waiting.Queue = cm.NewQueue(messages)
	t.Beside(unsafe.Pointer(unsafe.SliceData(l.tracks)))
	p.learners, p.answers = append(p.learners, l), append(p.answers, &t.Reader)
	return l, nil
}

// The budget bounds a worker's comparisons of flows. Each burst adds burstBudget. A worker keeps unused budget, up to maxBudget. If it
// spends more than it has, it has less for the next bursts. Without budget it only skips evidence.
const (
	burstBudget = 512
	maxBudget   = 2048
)

// StartBurst adds the budget of a burst, and reads messages of RDMA-CM that wait. The worker calls it before it passes a burst to the
// learner.
func (l *Learner) StartBurst() {
	l.budget = min(l.budget+burstBudget, maxBudget)
	l.readWaiting()
}

// spend uses some of the budget, which may become negative. It reports whether there was any budget.
func (l *Learner) spend(comparisons int) bool {
	if l.budget <= 0 {
		l.counts.skipped()
		return false
	}
	l.budget -= comparisons
	return true
}

// Begin must be called when the flow table has begun a flow (flowtable.Observer).
func (l *Learner) Begin(x flowtable.Index) {
	l.tracks[x] = track{last: inexact}
	k := l.table.Key(x)
	match := l.maps.register(x, k)
	a, scopeless := l.maps.initial(k, false)
	if scopeless {
		l.table.ListTwins() // so that other workers with a twin will find this flow
		if l.pairing.twinned(k) {
			a, _ = l.maps.initial(k, true)
		}
	}
	if a != 0 {
		l.setAnswer(x, a)
		if a.Evidence() == EvidenceDETH {
			l.beginUD(x, k)
			return
		}
		l.counts.flow(a.Evidence())
	}
	if scopeless {
		l.maps.recheckTwins(k, 0)
	}
	if match != nil {
		l.maps.noteAmbiguous(match, a)
		l.maps.recheckMatching(match)
	}
}

// End must be called when the flow table is about to end a flow (flowtable.Observer). It frees the flow's slot.
func (l *Learner) End(x flowtable.Index) {
	if l.maps.scopeless() {
		if k := l.table.Key(x); l.maps.hasScopeless(k) { // the one that remains may have no twin any more
			l.maps.recheckTwins(k, l.ref(x))
		}
	}
	if match := l.pairing.hints.Load().undirected(l.table.Key(x)); match != nil {
		l.pairing.connections.drop(l.pairing.matchHash(match), l.ref(x))
		l.maps.recheckMatching(match)
	}
	slot, ok := l.slotOf(x)
	if !ok {
		return
	}
	lease := l.notes.of(&slot).lease
	slot.PublishSent(lease, 0)
	slot.PublishAck(lease, 0)
	slot.Vacate(l.ref(x))
}

// slotOf returns the flow's slot; ok is false if it has none, or no longer has it. Until a slot is empty, it stays where it is.
func (l *Learner) slotOf(x flowtable.Index) (slot store.Slot, ok bool) {
	number := l.tracks[x].slot
	if number == 0 {
		return slot, false
	}
	slot = l.pairing.store.At(number)
	return slot, slot.Ref() == l.ref(x)
}

// SourceQP is the flow's source QP; ok is false unless it is confirmed and the record is open.
func (l *Learner) SourceQP(x flowtable.Index) (qp uint32, ok bool) {
	a := l.Answer(x, l.table.State(x).Answer())
	return a.SourceQP(), a.Usable()
}

// Description describes a flow's source QP, and how it was learned.
type Description struct {
	Answer
	// Took is the number of the flow's packets until the source QP was confirmed; 0 for a flow without a slot.
	Took uint64
	// Contradictions is how often packets contradicted the flow's pair.
	Contradictions uint32
	// Since is the time of the first packet of the flow after the answer became what it is, in ns; 0 if there was none yet, or if the
	// answer is Unknown.
	Since int64
}

// Describe returns what a report shows of a flow.
func (l *Learner) Describe(x flowtable.Index) Description {
	v := Description{Answer: l.Answer(x, l.table.State(x).Answer())}
	t := &l.tracks[x]
	if t.known == known(v.Answer) && v.State() != Unknown {
		v.Since = l.since[x]
	}
	slot, ok := l.slotOf(x)
	switch {
	case v.State() != Confirmed:
	case v.fixed():
		v.Took = 1
	case !ok:
	case t.flags&sure != 0:
		v.Took = uint64(l.notes.of(&slot).took)
	default: // confirmed since the flow's last packet
		v.Took = uint64(max(t.packets, l.notes.of(&slot).took))
	}
	if ok && slot.Group().Lock().Try() {
		if slot.Has(l.ref(x)) {
			v.Contradictions = uint32(slot.Contradictions())
		}
		slot.Group().Lock().Release()
	}
	return v
}

// arrival is a packet, for the functions that learn from it.
type arrival struct {
	*packet.Parsed
	frame []byte
	now   int64
}

// Observe counts a packet at which Routine has stopped, and learns from it. x is the packet's flow, k its key, b the frame from which p was
// parsed, and now the time in nanoseconds, by the same clock as for Lookup. A CNP has no flow: x is flowtable.None. Observe must be called
// before the next Lookup, which may end the flow.
func (l *Learner) Observe(x flowtable.Index, k *flowtable.Key, p *packet.Parsed, b []byte, now int64) {
	if p.Opcode == packet.CNP {
		l.observeCNP(k)
		return
	}
	if p.DestQP == packet.GSIQP {
		if m, ok := packet.CMMessage(b, p); ok {
			l.observeCM(k, &m, now)
		}
	}
	if x == flowtable.None {
		return
	}
	l.tally(x, p.Len)
	t, role := &l.tracks[x], p.Opcode.Role()
	if role == packet.NoRole && p.SourceQP == 0 && p.DestQP > packet.GSIQP {
		return // RD, or forged: not a packet of the key's connection
	}
	t.setTransport(p.Opcode)
	a := l.answer(x)
	if t.known != known(a) {
		l.noteAnswer(x, a, now)
	}
	if role == packet.NoRole || p.DestQP <= packet.GSIQP || a.fixed() { // nothing to learn: Routine may let pass the packets that follow this one
		t.port = p.SrcPort
		switch role {
		case packet.Request:
			t.last = p.PSN
		case packet.Response:
			t.acked = p.PSN | ackedBit
		}
		t.wait(noHurry)
		return
	}
	l.observe(x, a, &arrival{p, b, now})
}

// observe learns from a packet of a connection.
func (l *Learner) observe(x flowtable.Index, a Answer, p *arrival) {
	if a.Ended() != Open {
		if !l.over(x, a, p) {
			l.tracks[x].acked = 0 // so that the next packet is observed, too
			return
		}
		l.renew(x, p)
	}
	f, ok := l.flowOf(x)
	if !ok {
		if f.track.slot != 0 { // another flow has the slot
			f.wait(0)
		}
		if !f.enter(p) {
			return
		}
	}
	f.countPackets()
	f.catchUp()
	f.notePath(p)
	link, was := f.slot.Link(), f.answer()
	if was.State() != Unknown { // a flow that was in a map, and no longer is, is learned again
		if peer, ok := f.slot.LinkedPeer(link); ok {
			c := check{&f, p, link, peer, was}
			c.packet()
			return
		}
	}
	if link != 0 || was.State() == Confirmed {
		f.peerGone(link)
	}
	f.learn(p)
}

// over reports whether the current packet begins a new flow record: the old one is closed, and either its time has passed or the packet
// belongs to another connection that RDMA-CM has set up.
func (l *Learner) over(x flowtable.Index, a Answer, p *arrival) bool {
	slot, ok := l.slotOf(x)
	if a.Ended() != EndedDREQ || !ok {
		return true
	}
	const linger = 1000 // ms that packets after a DREQ still belong to its connection
	ended := slot.Ended().Load()
	if int32(milliseconds(p.now)-ended) > linger { // the clock of the worker that saw the DREQ may be ahead of this one's
		return true
	}
	if !l.spend(madCost / 4) { // without a check, the packet counts as the old connection's
		return false
	}
	c, ok, _ := l.pairing.claimOf(l.table.Key(x), l.ref(x), p.PSN, milliseconds(p.now), p.now)
	return ok && int32(milliseconds(c.Time)-ended) >= 0 && (p.Opcode.Role() == packet.Response || (p.PSN-c.PSN)&packet.PSNMask <= firstSlack)
}

// renew ends the flow record and begins a new one, and counts the current packet for the new one.
func (l *Learner) renew(x flowtable.Index, p *arrival) {
	t := &l.tracks[x]
	t.packets = max(t.packets, 1) - 1
	t.bytes -= min(p.Len, t.bytes)
	l.table.Renew(x, p.now)
	l.tally(x, p.Len)
	l.tracks[x].setTransport(p.Opcode)
	l.noteAnswer(x, l.answer(x), p.now)
}
