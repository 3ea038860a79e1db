package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/health/dissect"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// DefaultConnections is how many connections Diagnose follows at a time unless the capture says otherwise. One takes about 20 kB, and its two flows 2 kB.
const DefaultConnections = 1 << 17

// flowsEach is how many flows there is space for, by connection.
const flowsEach = 3

// mostListed is how many connections a report lists.
const mostListed = 1 << 14

// HealthOptions are those of Diagnose.
type HealthOptions struct {
	Progress func(frames int) // as for Options
	RoCEPort uint16           // UDP destination port that counts as RoCEv2's besides 4791; 0: none
	// Connections is how many are followed at a time; 0: DefaultConnections.
	Connections int
}

// Diagnosis is a report whose connections can be traced in the capture.
type Diagnosis struct {
	Name     string         `json:"name"` // of the capture
	Warnings []string       `json:"warnings"`
	Report   *health.Report `json:"report"`
	judge    *judge
}

// Diagnose judges the RDMA connections of a capture, which must stay open to trace them. It needs no gateway: it reads the capture twice, first to learn which flows are a
// pair; and between that once more if there are directions that the rules for notifications leave without a pair. A capture with more connections than are
// followed at a time is judged in shares: all that by pairs of hosts.
func Diagnose(c *Capture, o HealthOptions) (*Diagnosis, error) {
	h := &judge{capture: c, progress: o.Progress, reader: dissect.Reader{Port: o.RoCEPort}, sorter: dissect.Reader{Port: o.RoCEPort}, limit: o.Connections, shares: 1, builder: health.Builder{Offset: -epoch, Most: mostListed}}
	if h.limit <= 0 {
		h.limit = DefaultConnections
	}
	defer h.collectOften()()
	h.copies = newCopies(c.Frames, h.capacity())
	if len(c.places) > 1 {
		h.clocks = newClocks()
	}
	if c.Frames > h.limit {
		h.directions = &census{}
		if c.Frames <= mostPlaces {
			h.places = make([]place, 0, c.Frames)
		}
	}
	for share := 0; share < h.shares; share++ {
		for again := 0; again == 0 || again < mostCorrections && h.corrects(); again++ {
			if err := h.pair(share); err != nil {
				return nil, err
			}
			if err := h.followAll(); err != nil {
				return nil, err
			}
		}
		h.add()
	}
	h.copies.report(&h.builder, c.places)
	h.clocks.report(&h.builder, c)
	for _, n := range slices.Concat(h.setups.notes(), h.macs.notes()) {
		h.builder.Note(n)
	}
	said := slices.Concat(h.icrcs.verdicts(c.damaged), h.setups.verdicts(), h.discards.verdicts(h.icrcs), c.verdicts())
	slices.SortFunc(said, func(x, y health.Verdict) int { return cmp.Compare(x.Subject+x.Evidence, y.Subject+y.Evidence) })
	for _, v := range said {
		h.builder.Say(v)
	}
	h.builder.Frames = h.account.frames(uint64(h.frames))
	return &Diagnosis{c.name, c.Warnings, h.builder.Report(h.pauses.report(h.now, &h.passed), h.account.other), h}, nil
}

// Trace reads the capture once more for what passed of the requests of one end, 0 or 1, of a connection of the report.
func (d *Diagnosis) Trace(connection, requester int) (*health.Trace, error) {
	if connection < 0 || connection >= len(d.Report.Connections) || requester < 0 || requester > 1 {
		return nil, fmt.Errorf("end %d of connection %d: expected end 0 or 1 of connections 0 to %d of the report", requester, connection, len(d.Report.Connections)-1)
	}
	h, record := d.judge, &d.Report.Connections[connection]
	defer h.collectOften()()
	share := h.shareOf(packet.AddrFrom(record.Ends[0].IP), packet.AddrFrom(record.Ends[1].IP))
	if share != h.share {
		if err := h.pair(share); err != nil {
			return nil, err
		}
	}
	h.trace = health.NewTrace(record, requester, -epoch)
	if err := h.followAll(); err != nil {
		return nil, err
	}
	h.trace.End()
	return h.trace, nil
}

// pair learns which flows of a share are a pair.
func (h *judge) pair(share int) error {
	h.share = share
	if err := h.learned(); err != nil {
		return err
	}
	if !h.capture.damaged { // else they may have been whole on the wire
		h.corrupting = h.icrcs.corrupting()
	}
	known := h.pairs()
	h.named(known)
	h.gone = h.setups.gone()
	if h.alone() {
		if err := h.pass(h.compare); err != nil {
			return err
		}
		h.join(known)
	}
	h.findNotified()
	var err error
	if h.static, err = pairing.NewQPMap(known.pairs, seed); err != nil {
		return fmt.Errorf("the capture's pairs of QPs: %w: a bug in cnpgate; please report it with the capture", err)
	}
	return nil
}

// followAll follows the connections of the present share.
func (h *judge) followAll() (err error) {
	h.follower = nil
	capacity := h.capacity()
	connections := min(capacity, h.limit)
	if h.shares == 1 { // else the tables of each share are as large as those of the first one
		each := 1 + max(h.now-epoch, 0)/health.Silent // connections that a flow's QPs may have, one after the other
		connections = int(min(int64(connections), int64(h.found+1)*each))
		capacity = min(capacity, h.found+1)
	}
	if clear(h.memory); h.memory == nil { // before other memory is free, which Go would clear, and so have in use to its end
		h.memory = make([]byte, health.FollowerSize(connections, capacity))
	}
	if err := h.tables(capacity); err != nil {
		return err
	}
	if h.follower, err = health.NewFollower(h.memory, connections, h.flows, h.learner, egress); err != nil {
		return err
	}
	h.follower.Replacing = h.builder.AddSums
	return h.pass(h.follow)
}

// learned learns which flows of the present share are a pair. The first time it counts directions, and
// begins again in shares if their flows are too many.
func (h *judge) learned() error {
	for {
		h.known, h.static, h.joiner = nil, nil, newJoiner()
		h.paired, h.moved = map[connectionKey]string{}, map[connectionKey]seenAs{}
		h.released, h.unpaired, h.notified = map[connectionKey]bool{}, map[connectionKey]*directed{}, map[notified]packet.Scope{}
		if err := h.tables(h.capacity()); err != nil {
			return err
		}
		h.begun = 0
		if err := h.pass(h.learn); err != nil {
			return err
		}
		h.found = h.begun
		shared := h.directions == nil || h.begun <= h.flows.Capacity()
		again := !h.copies.known() && h.copies.decide()
		if h.clocks != nil && h.clocks.by == nil && h.clocks.shifts(len(h.capture.places)) {
			h.capture.shift, again = h.shift, true
		}
		switch {
		case !shared:
			h.shares, h.directions = h.directions.shares(h.limit), nil
		case !again:
			if h.shares == 1 {
				h.places = nil
			}
			return nil
		}
		h.icrcs, h.setups = nil, setups{}
	}
}

// pass reads the capture once, and gives each RoCEv2 packet of the present share to a function. CNPs belong to all: anybody may send one.
func (h *judge) pass(each func(b []byte)) error {
	h.skips = h.shares > 1 && h.places != nil
	if h.frames = 0; !h.skips {
		h.account = account{}
	}
	h.copies.begin()
	h.capture.rewind()
	for {
		frame, err := h.capture.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		h.frames++
		if h.progress != nil && h.frames%capturefile.ProgressStep == 0 {
			h.progress(h.frames)
		}
		h.now = frame.Time + epoch
		if h.skips && h.elsewhere() {
			continue
		}
		if frame.Unread != "" {
			if !h.skips {
				h.account.link(frame.Unread, uint64(h.frames))
			}
			h.place(false)
			continue
		}
		h.at, h.shifted = frame.Place, frame.Shift
		b, ok := h.read(frame.Octets, frame.Length)
		h.place(ok)
		if ok && (h.shares == 1 || h.parsed.Opcode == packet.CNP || h.shareOf(h.parsed.Src, h.parsed.Dst) == h.share) {
			each(b)
		}
	}
}

// judge reads a capture for Diagnose.
type judge struct {
	capture  *Capture
	progress func(frames int)
	limit    int // connections that are followed at a time
	frames   int

	flows      *flowtable.Table
	learner    *pairing.Learner
	follower   *health.Follower
	memory     []byte // of the follower
	builder    health.Builder
	static     *pairing.QPMap
	known      []pairing.QPPair
	share      int // which pairs of hosts are judged now, of so many shares
	shares     int
	released   map[connectionKey]bool
	unpaired   map[connectionKey]*directed // directions without a pair; the values are nil until the joiner knows something of them
	joiner     *joiner
	paired     map[connectionKey]string  // how, by direction
	moved      map[connectionKey]seenAs  // directions that belong to another VLAN, tunnel or address than the one that they are seen in
	notified   map[notified]packet.Scope // the VLAN or tunnel of what CNPs are about that come in another one
	pauses     pauses
	passed     traffic
	now        int64
	directions *census       // while they are counted
	places     []place       // by frame, if there are shares
	skips      bool          // the present pass skips the frames of other shares, which were accounted for before
	begun      int           // flows, in the present pass
	found      int           // those of the first pass, so that the tables of the last one need no space for more
	trace      *health.Trace // of a connection, once there is a report

	copies     *copies
	clocks     *clocks                  // nil: all frames are of one place
	leads      map[[2]packet.Addr]int64 // by how much the answers from one host to another are recorded before their requests, ns
	sorter     dissect.Reader
	at         int   // the place of the present frame
	shifted    int64 // what was added to its time, ns
	reader     dissect.Reader
	frame      dissect.Packet
	parsed     *packet.Parsed // of frame
	account    account
	icrcs      icrcs
	setups     setups
	macs       macs
	gone       map[way][]span
	discards   unreachable
	corrupting map[[2]packet.Addr]bool // between whom packets with a wrong ICRC don't count: their receiver drops them
	record     [1]packet.Record
	flow       [1]flowtable.Ref
}

var egress = []int{1, 0} // the two directions of a connection count as of two ports

// capacity is how many flows there is memory for.
func (h *judge) capacity() int { return min(h.capture.Frames+1, flowsEach*h.limit) }

// tablesSize is how many bytes the tables have. Large ones of the pass before are freed at once; that takes longer than reading a small capture.
func tablesSize(capacity int) int {
	return flowtable.Size(capacity) + pairing.Size(capacity) + pairing.LearnerSize(capacity, capacity)
}

const largeTables = 16 << 20

// mostGarbage is how much garbage there may be beside large tables.
const mostGarbage = 256 << 20

// collectOften makes Go collect garbage in time, until the function that it returns is called: otherwise Go waits for as much garbage as there is memory in use,
// and of that large tables are most.
func (h *judge) collectOften() (end func()) {
	capacity := h.capacity()
	size := tablesSize(capacity) + health.FollowerSize(min(capacity, h.limit), capacity)
	before := debug.SetGCPercent(min(100, max(100*mostGarbage/size, 5)))
	return func() { debug.SetGCPercent(before) }
}

// tables makes empty tables of flows and of what is learned of them.
func (h *judge) tables(capacity int) (err error) {
	if h.flows != nil {
		before := h.flows.Capacity()
		h.flows, h.learner, h.follower = nil, nil, nil
		if tablesSize(before) >= largeTables {
			debug.FreeOSMemory()
		}
	}
	if h.flows, err = flowtable.New(make([]byte, flowtable.Size(capacity)), flowtable.Config{Capacity: capacity, Seed: seed, Observer: h}); err != nil {
		return err
	}
	p, err := pairing.New(make([]byte, pairing.Size(capacity)), pairing.Config{Flows: capacity, Egress: egress, Seed: seed})
	if err != nil {
		return err
	}
	if h.learner, err = p.Join(h.flows, make([]byte, pairing.LearnerSize(capacity, capacity))); err != nil {
		return err
	}
	h.learner.SetStatic(h.static)
	return nil
}

// read reads a frame, and reports whether it is a RoCEv2 packet.
func (h *judge) read(b []byte, length uint32) ([]byte, bool) {
	h.frame = h.reader.Read(b, length)
	h.parsed = h.frame.Parsed
	if h.frame.Reason == dissect.None && h.copies.any && h.copies.is(&h.frame, h.at, h.now-h.shifted) {
		if !h.skips {
			h.account.copy(uint64(h.frames))
		}
		return nil, false
	}
	if h.frame.Reason != dissect.None && h.follower != nil && h.share == 0 { // once: in the last pass of the first share
		h.pause(b)
		h.discards.note(h.frame.Real, h.parsed)
	}
	if !h.skips {
		h.account.note(&h.frame, uint64(h.frames))
	}
	return h.frame.Frame, h.frame.Reason == dissect.None
}

// learn is the first pass: which flows are a pair.
func (h *judge) learn(b []byte) {
	if h.shareOf(h.parsed.Src, h.parsed.Dst) == h.share { // else it is a CNP, which each share has
		h.icrcs.note(&h.frame)
		if h.parsed.DestQP == packet.GSIQP {
			h.setups.note(h.frame.Real, h.parsed, h.now)
		}
	}
	if h.directions != nil && h.begun > h.flows.Capacity() { // it is learned again, in shares
		h.directions.note(h.parsed.Src, h.parsed.Dst, h.parsed.DestQP)
		return
	}
	if p := h.parsed; p.Opcode == packet.CNP && len(h.notified) < joinedFlows {
		h.notified[notified{p.Dst, p.DestQP, packet.ScopeOf(0, p).Named()}] = 0
	}
	if k := h.lookup(); k != nil {
		if !h.copies.known() {
			h.copies.sample(&h.frame, h.at, h.flow[0].Index, h.frames, h.now)
			h.clocks.sample(b, h.parsed, h.at, h.now)
		}
		h.learner.Observe(h.flow[0].Index, k, h.parsed, b, h.now)
		h.learner.Sweep()
	}
}

// follow is the second pass.
func (h *judge) follow(b []byte) {
	if len(b) > packet.EthernetLen {
		h.passed.note(b, h.now)
	}
	if h.corrupting[[2]packet.Addr{h.parsed.Src, h.parsed.Dst}] {
		if _, bad := wrong(&h.frame); bad {
			return // the receiver drops it
		}
	}
	if h.isGone() {
		return
	}
	k := h.lookup()
	if flow := h.flow[0].Index; flow != flowtable.None && h.trace == nil {
		h.macs.note(b, h.parsed, flow, h.capacity(), h.at)
	}
	switch cnp := h.parsed.Opcode == packet.CNP; {
	case cnp && h.trace != nil:
		h.trace.CNP(h.follower, k, h.now)
	case cnp:
		h.follower.CNP(k, h.now)
	case h.trace != nil:
		h.trace.Packet(h.follower, h.flow[0], k, h.frame.Real, h.parsed, h.now)
	default:
		h.follower.Packet(h.flow[0], k, h.frame.Real, h.parsed, h.now)
	}
}

// isGone reports whether a request goes to an end that has released the connection.
func (h *judge) isGone() bool {
	p := h.parsed
	if role := p.Opcode.Role(); len(h.gone) == 0 || role != packet.Request && role != packet.ReadRequest {
		return false
	}
	return slices.ContainsFunc(h.gone[way{p.Src, p.Dst, p.DestQP}], func(s span) bool { return h.now > s.from && (s.until == 0 || h.now < s.until) })
}

// seenAs is what the packets of a direction count as.
type seenAs struct {
	src   packet.Addr
	scope packet.Scope
}

// lookup finds a packet's flow, and returns its key. A CNP has no flow.
func (h *judge) lookup() *flowtable.Key {
	p, r := h.parsed, &h.record[0]
	scope := packet.ScopeOf(0, p)
	if len(h.moved) > 0 {
		if as, ok := h.moved[connectionKey{p.Src, p.Dst, p.DestQP, scope.Named()}]; ok {
			p.Src, scope = as.src, as.scope
		}
	}
	if p.Opcode == packet.CNP && h.follower != nil && len(h.notified) > 0 {
		if of, ok := h.notified[notified{p.Dst, p.DestQP, scope.Named()}]; ok {
			scope = of
		}
	}
	port := 0
	if compareAddrs(p.Src, p.Dst) > 0 {
		port = 1
	}
	h.learner.StartBurst()
	r.Set(p)
	k := flowtable.KeyOf(r)
	k.Src, k.Dst, k.DestQP, k.SourceQP = p.Src, p.Dst, p.DestQP, p.SourceQP
	k.SetScope(scope.At(port))
	h.flow[0] = flowtable.Ref{}
	if p.Opcode != packet.CNP {
		h.flows.Lookup(h.record[:], h.now, h.flow[:])
	}
	return k
}

// add adds the connections of the last pass to the report.
func (h *judge) add() {
	var c health.Connection
	for n := range h.follower.Len() {
		if !h.follower.Copy(n, h.now, &c) {
			continue
		}
		if h.released[connectionKey{c.End[0].Addr, c.End[1].Addr, c.End[1].QP, c.Scope}] || h.released[connectionKey{c.End[1].Addr, c.End[0].Addr, c.End[0].QP, c.Scope}] {
			if c.How == health.Open || c.How == health.Idle {
				c.How = health.Released
			}
		}
		by := ""
		if c.Paired {
			by = cmp.Or(h.paired[connectionKey{c.End[0].Addr, c.End[1].Addr, c.End[1].QP, c.Scope}], h.paired[connectionKey{c.End[1].Addr, c.End[0].Addr, c.End[0].QP, c.Scope}])
		}
		h.withoutLead(&c)
		h.builder.Add(&c, by)
	}
}
