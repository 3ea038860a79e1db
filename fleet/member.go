package fleet

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/pairing"
)

// Times, ns.
const (
	statusEvery  = 1e9
	silentAfter  = 5e9   // without a message: the member counts as silent
	lookEvery    = 50e6  // between two looks at flows
	wantFor      = 60e9  // lifetime of an interest
	wantAgain    = 20e9  // and when it is sent again
	wantFirst    = 250e6 // half of the time between the first two messages
	keepAgain    = 100e9 // when a flow is sent again to those who have confirmed it
	FlowLifetime = 300e9 // of a peer's flow without news
	pairLifetime = 720e9 // of a confirmed pair for a successor
	pairAgain    = 300e9 // and when it is sent again
)

// Bounds of a member's memory and work.
const (
	maxWants    = 1 << 17 // pairs of hosts that others want to know about, and that this member wants
	maxVisits   = 2048    // flows that one look visits, and twice as many of those that wait for news
	maxHot      = 4096    // groups that each look visits
	chunk       = 64 << 10
	maxSnapshot = 2 // chunks of a snapshot a tick
	// maxFlowBytes bounds the flows that a look sends: 1.6 MB/s.
	maxFlowBytes = 80_000
)

// Config is what a Member needs.
type Config struct {
	Site, Name, Version string
	Trust               *Trust
	Sign                func([]byte) ([]byte, error)
	// Send gives a message to the bus. It never waits: a message that finds no space is dropped there.
	Send    func(subject string, message []byte)
	Pairing *pairing.Pairing // nil: the member only watches
	Peers   *pairing.Peers
	Pairs   int    // pairs of others that are kept for a successor
	Started int64  // Unix time, ns; the first sequence number
	Seed    uint64 // of hashes

	Answer func(request []byte) []byte              // to a question of another member; may be nil
	Hints  func(host string, m *HintMessage) error  // takes hints of a host
	Bodies func(k wire.Kind, from string, b []byte) // takes the kinds that fleet doesn't read: Episode
	Plane  Plane                                    // may be nil
}

// Stats counts what a member did. Names are those of the metrics.
type Stats struct {
	Sent, Received     [wire.Kinds]uint64
	SentBytes          uint64
	ReceivedBytes      uint64
	Refused            map[string]uint64 // messages, by reason
	HintsRefused       map[string]uint64 // of hosts, by host
	Shown              [pairing.ShownEnded + 1]uint64
	Adopted            uint64 // own flows that got the source QP that they had before a restart or elsewhere
	NotUnique          uint64 // flows of others that fit several or no pair of ports here
	Full               uint64 // records for which there was no space
	Wants, Wanted      int    // pairs of hosts that this member wants, and that others want of it
	Pairs, RemoteFlows int
}

// Member is one gateway's part in the fleet. One goroutine calls its methods.
type Member struct {
	Config
	sequence uint64
	now      int64
	stats    Stats
	others   map[string]*other
	asking   asking
	scan     scan
	heirs    heirs
	shares   shares
	began    int64 // the first tick
	nextLook int64
	nextTell int64
	snapshot snapshot
	request  request
	pending  map[uint64]*pending // by their numbers
}

// NewMember returns a member that has heard of nobody.
func NewMember(c Config) *Member {
	m := &Member{Config: c, sequence: uint64(c.Started), others: map[string]*other{}}
	m.stats.Refused, m.stats.HintsRefused = map[string]uint64{}, map[string]uint64{}
	m.asking = newAsking()
	m.heirs = heirs{of: map[heirKey]heir{}, most: c.Pairs}
	m.scan = newScan(c.Seed)
	m.shares.of = map[shareKey]*share{}
	return m
}

// send seals a body and gives it to the bus. to is "" for all.
func (m *Member) send(k wire.Kind, to string, body []byte) {
	subject := Subject(m.Site, m.Name, k)
	if to != "" {
		subject = SubjectTo(m.Site, m.Name, k, to)
	}
	m.sequence++
	b, err := wire.Seal(m.Site, wire.Header{Kind: k, Sender: m.Name, Sequence: m.sequence, Time: m.now}, body, m.Sign)
	if err != nil {
		m.stats.Refused["not built"]++
		return
	}
	m.stats.Sent[k]++
	m.stats.SentBytes += uint64(len(b))
	m.Send(subject, b)
}

// Broadcast sends a body of a kind that fleet doesn't make itself to all: Episode.
func (m *Member) Broadcast(k wire.Kind, body []byte) { m.send(k, "", body) }

// Tick does what is due. now is in ns, by the caller's monotonic clock. It is called every few milliseconds.
func (m *Member) Tick(now int64) {
	m.now = now
	if m.began == 0 {
		m.began = now
	}
	m.tickPlane()
	m.sendSnapshot()
	m.expireQuestions()
	if now >= m.nextLook {
		m.nextLook = now + lookEvery
		m.look()
		m.askForPairs()
	}
	if now >= m.nextTell {
		m.nextTell = now + statusEvery
		m.tell()
		m.asking.expire(now)
		m.heirs.expire(now)
		m.expireShares(now)
	}
}

// Receive takes a message of the bus.
func (m *Member) Receive(subject string, message []byte, now int64) {
	m.now = now
	h, body, to, err := m.Trust.Accept(subject, message, now)
	if err != nil {
		m.refuse(err)
		return
	}
	if h.Sender == m.Name || to != "" && to != m.Name {
		return
	}
	m.stats.Received[h.Kind]++
	m.stats.ReceivedBytes += uint64(len(message))
	if err := m.take(&h, body); err != nil {
		m.refuse(err)
	}
}

// take does what a message asks for.
func (m *Member) take(h *wire.Header, body []byte) error {
	if h.Kind == wire.Hints {
		return m.takeHints(h.Sender, body)
	}
	o := m.hear(h)
	switch h.Kind {
	case wire.Status:
		return o.takeStatus(m, h, body)
	case wire.Want:
		return wire.EachWanted(body, func(w *wire.Wanted) { m.asking.wanted(m, h.Sender, w) })
	case wire.Flows:
		return wire.EachFlow(body, m.takeFlow)
	case wire.Pairs:
		return wire.EachPair(body, m.takePair)
	case wire.Notified:
		return m.takeNotices(body)
	case wire.Arrivals:
		return wire.EachArrival(body, func(a *wire.Arrival) { m.takeArrival(h, a) })
	case wire.Learned:
		return wire.EachDelay(body, m.takeDelay)
	case wire.Snapshot:
		return m.takeSnapshot(h.Sender, body)
	case wire.Ask:
		m.takeAsk(h.Sender, body)
	case wire.Answer:
		m.takeAnswer(h.Sender, body)
	default:
		if m.Bodies != nil {
			m.Bodies(h.Kind, h.Sender, body)
		}
	}
	return nil
}

func (m *Member) takeHints(host string, body []byte) error {
	hints, foreign, err := m.Trust.AcceptHints(host, body)
	if err == nil && m.Hints != nil {
		err = m.Hints(host, hints)
	}
	refused := foreign
	if err != nil {
		refused++
	} else if foreign > 0 {
		err = ErrAddress
	}
	if refused > 0 {
		m.stats.HintsRefused[host] += uint64(refused) // the host is in the configuration, so their number is bounded
	}
	return err
}

// refuse counts a message that has no effect.
func (m *Member) refuse(err error) {
	for _, known := range [...]struct {
		err  error
		name string
	}{
		{wire.ErrLength, "length"}, {wire.ErrVersion, "version"}, {wire.ErrKind, "kind"}, {wire.ErrName, "name"}, {wire.ErrSignature, "signature"},
		{wire.ErrRecord, "record"}, {ErrSubject, "subject"}, {ErrStranger, "stranger"}, {ErrReplay, "replay"}, {ErrRole, "role"}, {ErrAddress, "address"},
		{ErrTooMany, "too_many"},
	} {
		if errors.Is(err, known.err) {
			m.stats.Refused[known.name]++
			return
		}
	}
	m.stats.Refused["content"]++
}

// Stats is a copy of the counts.
func (m *Member) Stats() Stats {
	s := m.stats
	s.Refused, s.HintsRefused = map[string]uint64{}, map[string]uint64{}
	for k, n := range m.stats.Refused {
		s.Refused[k] = n
	}
	for k, n := range m.stats.HintsRefused {
		s.HintsRefused[k] = n
	}
	s.Wants, s.Wanted, s.Pairs = len(m.asking.own), len(m.asking.others), len(m.heirs.of)
	if m.Peers != nil {
		s.RemoteFlows = m.Peers.Flows()
	}
	return s
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fleet: %v", err)) // of types that have no such error
	}
	return b
}
