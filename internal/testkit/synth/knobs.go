package synth

// Timeouts describes how long a host waits for an answer, and how often it repeats.
type Timeouts struct {
	// Requester is the retransmission time-out, ns: after one to two of these times without progress, the requester goes back to its oldest
	// unacknowledged PSN. If it is shorter than the round trip, the requester goes back while acknowledgements are on the path, to PSNs
	// that the tap has seen acknowledged. 0: four round trips with a full window.
	Requester int64

	// Retries is how many successive time-outs without progress a connection survives; 7, as in IBTA. Forever: any number.
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
	After  [2]float64 // after the tap, which has seen them
}

// Bottleneck is a drop-tail queue after the tap. A packet that doesn't fit into it has Event.Lost. The queue delays packets by up to
// Capacity * 8 / Rate seconds.
type Bottleneck struct {
	From     End   // packets from this side pass through the queue; Fabric
	Rate     int64 // bit/s of frames without FCS; 0: no bottleneck
	Capacity int64 // bytes of frames without FCS; 65,536
}

// NAKs describes how often responders repeat NAKs.
type NAKs struct {
	// Every makes a responder answer each out-of-sequence request by a NAK, and a requester go back on each. Otherwise the responder sends
	// one NAK, and no other until the requested PSN arrives.
	Every bool

	// RNRAgain is the probability that a retransmitted SEND is refused by another RNR NAK. The first refusal has the probability
	// Config.RNR.
	RNRAgain float64
}

// Managers describes the behaviour of communication managers beyond Config.CM.
type Managers struct {
	// Share is the fraction of the connections that RDMA-CM sets up; 0: all. The others are set up by means that the tap doesn't see, and
	// have no flow label. So a QP of an RDMA-CM connection may be reused without RDMA-CM.
	Share float64

	// MRA is the probability that a passive side answers a REQ by an MRA, and sends its REP MRADelay later, ns; 10 time-outs of the
	// manager.
	MRA      float64
	MRADelay int64

	// Stale is the probability that a MAD is sent twice, and that the second one is late by up to StaleDelay, ns; 1e9. It may pass
	// the tap long after the connection has ended.
	Stale      float64
	StaleDelay int64
}

// Attack describes an attacker. Off the path, it injects packets that arrive from the WAN with the source address of a WAN host. It sees no
// traffic; its knowledge is an assumption. Forged packets change nothing in the hosts' connections.
type Attack struct {
	Interval  int64   // mean time between packets that arrive from the WAN with a forged source, ns; 0: none
	KnowsQPs  bool    // uses existing QPNs; else random ones
	KnowsPSNs bool    // uses PSNs that are in flight, and communication IDs
	ACK       bool    // forges acknowledgements
	CNP       bool    // forges CNPs
	CM        bool    // forges RDMA-CM messages
	Request   bool    // forges WRITEs
	OnPath    float64 // copies responses and CNPs that it sees to another QP of the host, just before or after, with this probability

	Managers ForgedCM
}

// ForgedCM describes attacks on RDMA-CM by an attacker off the path, beyond the single messages of Attack.CM, which reach no host. A REQ
// that it forges here reaches a listener of the fabric host. The listener answers by a genuine REP with a new QPN, communication ID and
// start PSN (0 with PSNZero), and repeats it like any REP. Nobody sends data on this connection. Such a REP, and a REJ of it, are events
// with Conn -1 that are not Forged.
type ForgedCM struct {
	// All makes Attack.CM choose MRA, LAP and APR, too.
	All bool

	// KnowsIDs makes the attacker use the communication IDs of the connection that it attacks.
	KnowsIDs bool

	// Connect makes the attacker include REQs with the QPN of a live connection of the WAN host among its packets. The attacker chooses
	// communication ID and start PSN. If it KnowsPSNs, the start PSN is one that the live connection has in flight.
	Connect bool

	// Ahead makes the attacker send one REQ for each connection, this many ns before the connection begins; 0: none. The REQ has the WAN
	// end's future QPN, if the attacker KnowsQPs, and its start PSN, if it KnowsPSNs. After half of these REQs follows a forged REP with
	// those of the fabric end. Only connections that begin late enough are attacked: set Spread or ReuseGap.
	Ahead int64

	// REP is the probability that a genuine REQ from the fabric is followed by a forged REP from its WAN host, with the QPN of another
	// connection, just after the REQ or up to two round trips later.
	REP float64

	// Refused is the probability that the WAN host refuses the listener's REP by a REJ. Otherwise it ignores the REP.
	Refused float64

	// Recycle makes a host reuse the QPN of a listener's REP for the next connection after the listener gave up.
	Recycle bool
}
