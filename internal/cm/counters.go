package cm

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
