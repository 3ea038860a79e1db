package cm

import "github.com/cnpgate/cnpgate/internal/packet"

// Peer is the address of the other end, for messages to it.
type Peer struct {
	Addr packet.Addr
	MAC  [6]byte // of the peer, or of the router towards it
}

// QP is a QP of a connection, and the first PSN of requests to it.
type QP struct {
	Number uint32 // 24 bits
	PSN    uint32 // 24 bits
}

// state is the state of a connection (IBTA 12.9).
type state uint8

const (
	reqSent     state = iota // waits for REP
	repSent                  // waits for RTU
	established              //
	dreqSent                 // waits for DREP
	timeWait                 // ended; it only answers the peer's repetitions
	forgotten                // the manager drops it from its list
)

// Conn is one end of a connection.
type Conn struct {
	ID     uint64 // chosen by the caller; 0 at a passive end until Handler.Open sets it
	Active bool   // sent the REQ
	Peer   Peer
	Local  QP // of this host; at a passive end, Handler.Open sets it
	Remote QP // of the peer, once Handler.Open is called
	// FlowLabel is the label in the REQ, which determines the UDP source port of both ends' packets. 20 bits.
	FlowLabel uint32
	// Reason is that of the REJ with which the peer refused the connection.
	Reason uint16

	m           *Manager
	comm        [2]uint32 // communication IDs: of this end, of the peer
	transaction uint64    // of the REQ
	release     uint64    // transaction ID of the DREQ that this end answered
	service     uint64    // service ID
	source      uint16    // the active end's RDMA-CM port
	state       state
	delayed     bool // an MRA has postponed the next repetition
	tries       uint8
	at          int64 // when to repeat, or to leave timeWait, ns
}

// Established reports whether both ends may use the connection.
func (c *Conn) Established() bool { return c.state == established }

// over reports whether the connection has ended or failed.
func (c *Conn) over() bool { return c.state >= timeWait }

// Outcome says how a connection ended.
type Outcome uint8

const (
	Refused     Outcome = iota // by the peer's REJ; Conn.Reason says why
	Unanswered                 // the peer didn't answer REQ, REP or DREQ
	Closed                     // by DREQ of either end
	OpenFailed                 // Handler.Open refused the peer's REP
	outcomeKind = iota
)

// Outcomes is the number of outcomes.
const Outcomes = int(outcomeKind)

// String is the outcome's name in reports.
func (o Outcome) String() string {
	return [...]string{Refused: "refused", Unanswered: "unanswered", Closed: "closed", OpenFailed: "open-failed"}[o]
}
