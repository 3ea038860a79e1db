package synth

import ()

// End is a side of the tap.
type End uint8

// The two sides.
const (
	Fabric End = iota // the data centre's
	WAN
)

// Config describes a run. Times are virtual nanoseconds, probabilities are from 0 to 1. A zero field takes the default that its comment
// gives.
type Config struct {
	Seed uint64

	// Hosts and connections.
	IPv6        bool
	Hosts       [2]int // on each side; 1 and 1
	Tenants     int    // this many VLANs from 100 on, with the same addresses and QPNs in each; 0: untagged
	TwoTags     bool   // two tenants share each VID, one in a customer tag, one in a service tag, and pair the same QPNs differently
	Connections int    // at a time; 256
	Transports  Transports
	QPNs        QPNs
	QPBase      [2]uint32 // the lowest QPN of each side's hosts, for QPSequential; 0x11 and 0x11
	StartPSN    StartPSN
	Near        [2]uint32 // with PSNNear: how many PSNs before and after it a start PSN may be; 0 and 65,536

	// Messages.
	MTU        int // path MTU, bytes; 1024
	Requesters Requesters
	Mix        Mix
	Sizes      [2]int // of messages, bytes, smallest and largest; 256 and 16,384
	Messages   int    // of each requester of a connection; 16
	Window     int    // most unacknowledged packets, of at most 16 messages; 64
	NotECT     bool   // else ECT(0)
	Ports      Ports

	// Timing.
	Schedule Schedule
	Period   int64   // between a requester's messages; 50,000
	Gap      int64   // between packets of one QP; 1,000
	Jitter   int64   // each message is delayed by up to this
	Drift    float64 // a connection's clock is fast or slow by up to this fraction
	Spread   int64   // connections start within this time
	Lifetime int64   // a connection is ended after this time; 0: when its messages are done
	Duration int64   // of the run; 0: until all connections are done

	// Acknowledgements.
	AckEvery int // AckReq also on every AckEvery-th packet of a message; 0: on the last packet only
	AckFull  AckFull
	Coalesce int     // requests with AckReq that one ACK answers; 1
	RNR      float64 // a received SEND finds no receive buffer
	NAKs     NAKs
	Timeouts Timeouts

	// The network.
	Delay        [2]int64   // from the tap to the hosts of each side; 5,000 and 500,000
	PathJitter   int64      // a packet is delayed by up to this on each half of the path, without overtaking
	ConnJitter   int64      // all packets of a connection are delayed by a fixed time up to this
	LossBefore   [2]float64 // before the tap, by sending side
	LossAfter    [2]float64 // after the tap, by sending side
	RequestLoss  KindLoss   // of requests only
	ResponseLoss KindLoss   // of acknowledgements, READ and ATOMIC responses only
	Bottleneck   Bottleneck
	Reorder      float64 // a packet is held back on each half of the path
	ReorderDelay int64   // for up to this; 10,000
	CE           float64 // a data packet is marked CE, before or after the tap
	CNPInterval  int64   // between a receiver's CNPs for one QP; 50,000

	// The tap's view.
	TapStart int64   // nothing is seen before
	Sight    Sight   // directions, by connection
	Sampled  float64 // each packet with this probability; 0 is 1

	// Communication management.
	CM       bool    // RDMA-CM sets connections up, SIDR resolves UD QPs
	NoDREQ   bool    // no DREQ and DREP at the end
	CMReject float64 // a REQ is answered by a REJ, and repeated with the same QPN
	Managers Managers

	// Replacement of ended connections.
	Generations int // number of connections that follow in its place; 0
	Reuse       Reuse
	ReuseGap    int64 // from end to start; 20,000

	Attack Attack
}

// AckFull selects whether a requester sets AckReq on the packet that fills its window.
type AckFull uint8

// Values of AckFull.
const (
	AckIfFull   AckFull = iota
	NoAckIfFull         // as Soft-RoCE: only at AckEvery and a message's end; without AckEvery, a message longer than Window waits for a time-out
)

// Transports are weights of transport services; all zero is RC only.
type Transports struct{ RC, UC, UD, XRC int }

// Mix are weights of message kinds; all zero is RDMA WRITE only. UC has neither READ nor atomics, UD has SENDs only.
type Mix struct{ Send, SendImm, Write, WriteImm, Read, Atomic int }

// QPNs selects how hosts number their QPs.
type QPNs uint8

// Ways to number QPs.
const (
	QPRandom     QPNs = iota // random 24-bit numbers
	QPSequential             // counting upwards from a base, as NICs do
)

// StartPSN selects the first PSNs of requesters.
type StartPSN uint8

// Start PSNs.
const (
	PSNRandom StartPSN = iota
	PSNZero            // as NCCL sets it
	PSNWrap            // a few packets before 2^24
	PSNEqual           // both ends at the same random one
	PSNNear            // near the PSN after the last one sent to the same QP on the previous connection, see Config.Near; at first, random
)

// Requesters selects who sends requests on an RC or UC connection. On XRC, it is the end that set the connection up; on UD, both.
type Requesters uint8

// Requesters of a connection.
const (
	FromFabric Requesters = iota
	FromWAN
	FromEither // one of them, chosen for each connection
	FromBoth
)

// Ports selects the UDP source ports.
type Ports uint8

// Rules for UDP source ports, all from 0xC000 on.
const (
	PortsSymmetric  Ports = iota // Linux's from both QPNs; for UD, Soft-RoCE's from the sending QPN
	PortsFlowLabel               // Linux's from the flow label in RDMA-CM's REQ
	PortsRandom                  // random for each connection
	PortsAsymmetric              // random for each connection and direction
	PortsEqual                   // all the same
	PortsSpray                   // random for each message
	PortsBorrowed                // the symmetric port of another connection: it suggests a wrong peer
)

// Schedule selects how the messages of several connections are timed.
type Schedule uint8

// Schedules.
const (
	Free     Schedule = iota // each at its own random times
	Lockstep                 // all do the same at once, in a fixed order; Jitter, Drift and ConnJitter break the synchrony
)

// Sight selects which directions of a connection pass the tap.
type Sight uint8

// Directions that pass the tap.
const (
	SeeBoth    Sight = iota
	SeeForward       // from the end that set the connection up, or sends requests
	SeeReverse
	SeeMixed // one of these, chosen for each connection
)

// Reuse selects what a connection reuses from the one that it replaces.
type Reuse uint8

// Kinds of reuse.
const (
	ReusePeerQP   Reuse = iota // one end's QPN, now with another QP of the same peer
	ReusePeerHost              // one end's QPN, now with another host
	ReusePair                  // both QPNs
	ReuseShuffled              // the hosts' free QPNs, paired anew
)

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
