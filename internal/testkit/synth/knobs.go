package synth

// Timeouts says how long a host waits for an answer, and how often it tries again.
type Timeouts struct {
	// Requester is the retransmission time-out, ns: after one to two of it without progress, the requester goes back to its oldest
	// unacknowledged PSN. It may be shorter than the round trip: then the requester goes back while acknowledgements are on their
	// way to it, to PSNs that the tap has seen acknowledged. 0: four round trips with a full window.
	Requester int64

	// Retries is how many time-outs in a row, without progress between them, a connection survives; 7, as in IBTA. Forever: all.
	Retries int

	// Manager is a communication manager's time-out, ns. 0: four round trips with a full window.
	Manager int64

	// MADs is how many times a communication manager sends a message before it gives up; 8.
	MADs int
}

// Forever is a number of Retries that no run reaches.
const Forever = 1 << 30

// KindLoss is the probability that packets of one kind are lost, by sending side, in addition to Config.LossBefore and LossAfter.
type KindLoss struct {
	Before [2]float64 // before the tap
	After  [2]float64 // behind the tap: the tap has seen them
}

// Bottleneck is a drop-tail queue behind the tap. A packet that doesn't fit into it is Event.Lost. The queue delays packets by up to
// Capacity * 8 / Rate seconds.
type Bottleneck struct {
	From     End   // the packets from this side pass the queue; Fabric
	Rate     int64 // bit/s of frames without FCS; 0: no bottleneck
	Capacity int64 // bytes of frames without FCS; 65,536
}

// NAKs says how often responders repeat what they refuse.
type NAKs struct {
	// Every makes a responder answer each out-of-sequence request by a NAK. Otherwise it sends one NAK, and no other until the PSN
	// that it has asked for comes.
	Every bool

	// RNRAgain is the probability that a SEND which was refused by an RNR NAK is refused again when it is retransmitted. The first
	// refusal has the probability Config.RNR.
	RNRAgain float64
}

// Managers says how communication managers behave beyond Config.CM.
type Managers struct {
	// Share is the part of the connections that RDMA-CM sets up; 0: all. The others are set up by means that don't pass the tap, and
	// have no flow label. So a QP may be reused without RDMA-CM after a connection that had it.
	Share float64

	// MRA is the probability that a passive side answers a REQ by an MRA first, and by its REP after MRADelay, ns; 10 time-outs of
	// the manager.
	MRA      float64
	MRADelay int64

	// Stale is the probability that a MAD is sent twice, and that the second one is late by up to StaleDelay, ns; 1e9. It may pass
	// the tap long after the connection has ended.
	Stale      float64
	StaleDelay int64
}

// Attack is what an attacker does. Off the path, it injects packets that come in from the WAN with the source address of a WAN host. It
// sees nothing; what it knows is an assumption. Forged packets change nothing in the hosts' connections.
type Attack struct {
	Interval  int64   // between packets that come in from the WAN with a forged source, about, ns; 0: none
	KnowsQPs  bool    // uses QPNs that exist; else random ones
	KnowsPSNs bool    // uses PSNs that are in flight, and communication IDs
	ACK       bool    // forges acknowledgements
	CNP       bool    // forges CNPs
	CM        bool    // forges RDMA-CM messages
	Request   bool    // forges WRITEs
	OnPath    float64 // for each response or CNP that it sees: a copy to another QP of the host, just before or after

	Managers ForgedCM
}

// ForgedCM is what an attacker off the path does to RDMA-CM beyond the single messages of Attack.CM, which reach nobody. A REQ that it
// forges here reaches a listener of the fabric host. The listener answers by a genuine REP with a new QPN, communication ID and start PSN
// (0 with PSNZero), and repeats it like any REP. Nobody sends data on this connection. Such a REP, and a REJ of it, are events with Conn
// -1 that are not Forged.
type ForgedCM struct {
	// All makes Attack.CM choose from MRA, LAP and APR, too.
	All bool

	// KnowsIDs makes the attacker use the communication IDs of the connection that it attacks.
	KnowsIDs bool

	// Connect makes the attacker send, among what it sends at Attack.Interval, REQs with the QPN of a live connection of the WAN host.
	// Communication ID and start PSN are its own. If it KnowsPSNs, the start PSN is one that the live connection has in flight.
	Connect bool

	// Ahead makes the attacker send one REQ for each connection, so many ns before the connection begins; 0: none. The REQ has the QPN
	// that the WAN end will have, if the attacker KnowsQPs, and its start PSN, if it KnowsPSNs. A forged REP with those of the fabric end
	// follows half of these REQs. Only connections that begin late enough are attacked: set Spread or ReuseGap.
	Ahead int64

	// REP is the probability that a genuine REQ from the fabric is followed by a forged REP from its WAN host, with the QPN of another
	// connection, just after the REQ or up to two round trips later.
	REP float64

	// Refused is the probability that the WAN host refuses a REP that the listener sends by a REJ. Else it ignores it.
	Refused float64

	// Recycle makes a host use the QPN of a listener's REP again, for the next connection after the listener gave up.
	Recycle bool
}
