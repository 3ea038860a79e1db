package cm

import (
	"fmt"
	"math"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/ring"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

const (
	never      = math.MaxInt64
	timeUnit   = 4096 // ns (IBTA 12.7)
	maxTimeout = 24   // 69 s
	maxRetries = 15   // of 4 bits
	// maxDelay bounds how long an MRA may postpone a repetition, ns.
	maxDelay = 60_000_000_000
)

// Config describes a Manager. All fields except Port, Also and Seed must be set.
type Config struct {
	Addr packet.Addr // of this host
	GUID uint64      // of its channel adapter
	MTU  uint8       // code of the path MTU, the same at both ends: 1 is 256 bytes, 5 is 4096
	Port uint16      // RDMA-CM's port at which it accepts connections; 0: none
	Also []uint16    // other such ports
	// Timeout is how long the manager waits before it repeats a message, 4.096 us * 2^Timeout; up to 24. It is encoded as in REQ and REP.
	Timeout uint8
	Retries uint8 // how often it repeats a message before it gives up, up to 15
	// Connections is the most connections that it keeps, including those in time-wait state.
	Connections int
	ReadDepth   uint8  // READs that a QP accepts, and may have outstanding
	Seed        uint64 // of communication IDs, ports and Random
	Handler     Handler
}

// Handler is notified of connections. It must not call Receive or Expire.
type Handler interface {
	// Open is called when the peer's QPN and PSN are known: at the passive end for a REQ, at the active end for the REP. It opens the QP, and sets
	// Conn.Local at the passive end. If it returns a reason of a REJ instead of 0, the connection is refused.
	Open(now int64, c *Conn) (reason uint16)
	// Established is called when both ends may use the connection.
	Established(now int64, c *Conn)
	// Ended is called when a connection ends that Open accepted or that the host requested.
	Ended(now int64, c *Conn, o Outcome)
}

// Manager is a host's communication manager. It is for one goroutine.
type Manager struct {
	c        Config
	counters Counters
	random   splitmix.Rand
	byComm   map[uint32]*Conn // by this end's communication ID, without forgotten ones
	conns    []*Conn          // in the order in which they began
	out      ring.Ring[Message]
	due      int64 // when Expire has something to do, or earlier, ns
}

// Message is a message to send.
type Message struct {
	packet.CM
	To Peer
}

// New makes a Manager. The error names the field of Config that is wrong.
func New(c Config) (*Manager, error) {
	switch {
	case c.MTU < 1 || c.MTU > 5:
		return nil, fmt.Errorf("the code of the path MTU is %d, expected 1 to 5, for 256 to 4096 bytes", c.MTU)
	case c.Timeout > maxTimeout || c.Retries > maxRetries:
		return nil, fmt.Errorf("a message is repeated %d times after 4.096 us * 2^%d, expected at most %d times and 2^%d", c.Retries, c.Timeout, maxRetries, maxTimeout)
	case c.Connections < 1:
		return nil, fmt.Errorf("a table for %d connections, expected 1 or more", c.Connections)
	}
	return &Manager{c: c, random: splitmix.Rand(c.Seed), byComm: make(map[uint32]*Conn), due: never}, nil
}

// Counters returns the manager's counters.
func (m *Manager) Counters() Counters { return m.counters }

// RandomPSN is a random first PSN for a connection's requests.
func (m *Manager) RandomPSN() uint32 { return uint32(m.random.Next()) & packet.PSNMask }

// Connect requests a connection from a peer, to the service at a port. local is the QP of this end, which Handler.Open is to open. The
// caller chooses id.
func (m *Manager) Connect(now int64, to Peer, port uint16, local QP, id uint64) (*Conn, error) {
	const lowest, ports = 32768, 28232 // Linux's range of ephemeral ports
	if !m.makePlace() {
		return nil, fmt.Errorf("all %d connections are in use; end one first", m.c.Connections)
	}
	c := &Conn{m: m, ID: id, Active: true, Peer: to, Local: local, state: reqSent, comm: [2]uint32{m.newComm()},
		service: packet.ServiceID(packet.ProtoTCP, port), source: lowest + uint16(m.random.Next()%ports)}
	c.FlowLabel = FlowLabel(c.source, port)
	c.transaction = Transaction(c.comm[0])
	m.add(c)
	c.transmit(now)
	return c, nil
}

// Disconnect ends a connection, an established one by DREQ.
func (m *Manager) Disconnect(now int64, c *Conn) {
	switch c.state {
	case established:
		c.state, c.tries = dreqSent, 0
		c.transmit(now)
	case reqSent, repSent:
		c.withdraw(packet.CMConsumerReject)
		c.end(now, Closed)
	}
}

// Forget removes a connection without notifying the peer or Handler.
func (m *Manager) Forget(c *Conn) {
	if c.state != forgotten {
		delete(m.byComm, c.comm[0])
		c.state, c.at = forgotten, 0
		m.due = 0
	}
}

// InUse lists the connections that are being set up, in use or being ended, in the order in which they began.
func (m *Manager) InUse() (all []*Conn) {
	for _, c := range m.conns {
		if !c.over() {
			all = append(all, c)
		}
	}
	return all
}

// Due returns when to call Expire, ns; never (the highest int64) if nothing is pending.
func (m *Manager) Due() int64 { return m.due }

// Pending reports whether Next has a message.
func (m *Manager) Pending() bool { return m.out.Len() > 0 }

// Next returns the next message to send; there must be one.
func (m *Manager) Next() Message {
	m.counters.Sent++
	return m.out.Pop()
}

// newComm returns an unused communication ID.
func (m *Manager) newComm() uint32 {
	for {
		comm := uint32(m.random.Next())
		if _, taken := m.byComm[comm]; !taken && comm != 0 {
			return comm
		}
	}
}

// makePlace reports whether there is place for another connection. If necessary, it ends the oldest time-wait state.
func (m *Manager) makePlace() bool {
	if len(m.byComm) < m.c.Connections {
		return true
	}
	for _, c := range m.conns {
		if c.state == timeWait {
			m.Forget(c)
			return true
		}
	}
	return false
}

func (m *Manager) add(c *Conn) {
	m.byComm[c.comm[0]] = c
	m.conns = append(m.conns, c)
}
