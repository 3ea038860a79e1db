package cm

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/internal/packet"
)

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

// Verdict is the effect of a received message.
type Verdict uint8

const (
	Taken       Verdict = iota // it changed a connection
	Duplicate                  // a repetition of an accepted message; answered again if it needs an answer
	Rejected                   // a REQ or REP answered by REJ
	Malformed                  // not a message of the communication manager, a wrong Q_Key, or a QPN that no connection can have
	Unsupported                // SIDR, LAP or APR
	UnknownID                  // no connection has its communication ID
	WrongPeer                  // not from the peer's address, or not with the connection's communication ID or QPN
	OutOfState                 // the connection's state doesn't allow it
	verdictKind = iota
)

// Verdicts is the number of verdicts.
const Verdicts = int(verdictKind)

// String is the verdict's name in reports.
func (v Verdict) String() string {
	return [...]string{Taken: "taken", Duplicate: "duplicate", Rejected: "rejected", Malformed: "malformed", Unsupported: "unsupported",
		UnknownID: "unknown-id", WrongPeer: "wrong-peer", OutOfState: "out-of-state"}[v]
}

// Counters is what a Manager counts.
type Counters struct {
	Received    [Verdicts]uint64 // received messages, each once
	Sent        uint64           // messages, including repetitions and REJs
	Repeated    uint64           // messages repeated for lack of an answer
	Dropped     uint64           // answers for which the queue was full; the peer repeats its message
	Established uint64           // connections
	Ended       [Outcomes]uint64 // connections, including those never established
}

// FlowLabel is the flow label that Linux's RDMA-CM puts into a REQ if the application sets none. It derives from RDMA-CM's ports at both
// ends (cma_get_roce_udp_flow_label), and determines the UDP source port of the connection's packets.
func FlowLabel(source, port uint16) uint32 {
	const prime, mask = 31, 1<<20 - 1
	return (uint32(source)*prime + uint32(port)) & mask
}

// Transaction is Linux's transaction ID of a message: the number of its MAD agent, then the requesting end's communication ID, least
// significant byte first.
func Transaction(comm uint32) uint64 {
	const agent = 2
	return agent<<32 | uint64(bits.ReverseBytes32(comm))
}
