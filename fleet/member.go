package fleet

import (
	"encoding/json"
	"maps"

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
	wantFirst    = 25e6  // half of the time between the first two messages
	keepAgain    = 100e9 // when a flow is sent again to those who have confirmed it
	FlowLifetime = 300e9 // of a peer's flow without news
	pairLifetime = 720e9 // of a confirmed pair for a successor
	pairAgain    = 300e9 // and when it is sent again
	askFor       = 60e9  // after the start a member asks for pairs
)

// Bounds of a member's memory and work.
const (
	maxWants     = 1 << 17 // pairs of hosts that others want to know about, and that this member wants
	maxVisits    = 2048    // flows that one look visits
	maxHotVisits = 4096    // and those that wait for news
	maxNews      = 256     // and those that a tick visits at once, as they are new
	maxHot       = 4096    // groups that each look visits
	chunk        = 64 << 10
	maxSnapshot  = 2 // chunks of a snapshot a tick
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

	Answer func(request []byte) []byte             // to a question of another member; may be nil
	Hints  func(host string, m *HintMessage) error // takes hints of a host
	Plane  Plane                                   // may be nil
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
	*core
	roster    roster
	asking    asking
	scan      scan
	heirs     heirs
	transfer  transfer
	shares    shares
	questions questions
	began     int64 // the first tick
	nextLook  int64
	nextTell  int64
}

// NewMember returns a member that has heard of nobody.
func NewMember(c Config) *Member {
	m := &Member{core: &core{Config: c, sequence: uint64(c.Started)}}
	m.stats.Refused, m.stats.HintsRefused = map[string]uint64{}, map[string]uint64{}
	m.roster = roster{core: m.core, others: map[string]*other{}}
	m.asking = newAsking(m.core)
	m.heirs = heirs{core: m.core, of: map[heirKey]heir{}}
	m.scan = newScan(m.core, &m.asking, &m.heirs)
	m.transfer = transfer{core: m.core, roster: &m.roster, heirs: &m.heirs}
	m.shares = shares{core: m.core, of: map[shareKey]*share{}}
	m.questions = questions{core: m.core, roster: &m.roster, pending: map[uint64]*pending{}}
	return m
}

// Broadcast sends a body of a kind that fleet doesn't make itself to all: Episode.
func (m *Member) Broadcast(k wire.Kind, body []byte) { m.send(k, "", body) }

// Tick does what is due. now is in ns, by the caller's monotonic clock. It is called every few milliseconds.
func (m *Member) Tick(now int64) {
	m.now = now
	if m.began == 0 {
		m.began = now
	}
	m.shares.tick()
	m.transfer.proceed()
	m.questions.expire()
	if now >= m.nextLook {
		m.nextLook = now + lookEvery
		m.scan.look()
		m.transfer.ask(now-m.began <= askFor)
	}
	m.scan.news()
	if now >= m.nextTell {
		m.nextTell = now + statusEvery
		m.roster.tell(m.status())
		m.asking.expire()
		m.heirs.expire()
		m.shares.expire()
	}
}

// status is what this member says of itself.
func (m *Member) status() status {
	s := status{Version: m.Version, UpMS: (m.now - m.began) / 1e6, Time: m.now, Pairs: len(m.heirs.of), Wants: len(m.asking.own)}
	if m.Peers != nil {
		s.Flows = m.Peers.Flows()
	}
	return s
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
	o := m.roster.hear(h)
	switch h.Kind {
	case wire.Status:
		began, err := m.roster.takeStatus(o, body)
		if began { // perhaps anew: it needs to hear of this one at once
			m.nextTell = m.now
			m.transfer.restarted(h.Sender)
		}
		return err
	case wire.Want:
		return wire.EachWanted(body, func(w *wire.Wanted) { m.asking.wanted(h.Sender, w) })
	case wire.Flows:
		return wire.EachFlow(body, m.scan.takeFlow)
	case wire.Pairs:
		return wire.EachPair(body, m.heirs.take)
	case wire.Notified:
		return wire.EachNotice(body, m.shares.takeNotice)
	case wire.Arrivals:
		return wire.EachArrival(body, func(a *wire.Arrival) { m.shares.takeArrival(h, a) })
	case wire.Learned:
		return wire.EachDelay(body, m.shares.takeDelay)
	case wire.Snapshot:
		return m.transfer.take(h.Sender, body)
	case wire.Ask:
		return m.takeAsk(h.Sender, body)
	case wire.Answer:
		return m.questions.takeAnswer(h.Sender, body)
	}
	return nil // Episode: nobody here reads it
}

// takeAsk answers a question.
func (m *Member) takeAsk(from string, body []byte) error {
	var q question
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	if q.Pairs {
		m.transfer.answer(from, q.First)
	}
	if q.Request != nil && m.Answer != nil {
		m.send(wire.Answer, from, encode(reply{q.ID, m.Answer(q.Request)}))
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

// Stats is a copy of the counts.
func (m *Member) Stats() Stats {
	s := m.stats
	s.Refused, s.HintsRefused = maps.Clone(s.Refused), maps.Clone(s.HintsRefused)
	s.Wants, s.Wanted, s.Pairs = len(m.asking.own), len(m.asking.others), len(m.heirs.of)
	if m.Peers != nil {
		s.RemoteFlows = m.Peers.Flows()
	}
	return s
}

// Views are all gateways that may take part, by name.
func (m *Member) Views() []MemberView { return m.roster.views(m.status()) }

// Question asks all active members, and calls done with their answers, by name, once all have answered or the time (ns) has passed.
func (m *Member) Question(request []byte, now, timeout int64, done func(map[string]json.RawMessage)) {
	m.now = now
	m.questions.ask(request, timeout, done)
}
