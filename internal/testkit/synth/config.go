package synth

// End is a side of the tap.
type End uint8

// The two sides.
const (
	Fabric End = iota // the data centre's
	WAN
)

// Config says what a run does. Times are virtual nanoseconds, probabilities from 0 to 1; what is left zero is ordinary.
type Config struct {
	Seed uint64

	// Who there is.
	IPv6        bool
	Hosts       [2]int // on each side; 1 and 1
	Tenants     int    // that many VLANs from 100 on with the same addresses and QPNs in each; 0: untagged
	TwoTags     bool   // two tenants share each VID, one in a customer tag, one in a service tag, and match the same QPNs differently
	Connections int    // at a time; 256
	Transports  Transports
	QPNs        QPNs
	QPBase      [2]uint32 // the lowest QPN of a host of each side for QPSequential; 0x11 and 0x11
	StartPSN    StartPSN
	Near        [2]uint32 // with PSNNear: start PSNs lie from so many PSNs behind to so many ahead; 0 and 65,536

	// What they say.
	MTU        int // path MTU, bytes; 1024
	Requesters Requesters
	Mix        Mix
	Sizes      [2]int // of messages, bytes, smallest and largest; 256 and 16,384
	Messages   int    // of each requester of a connection; 16
	Window     int    // packets that may be unacknowledged, of at most 16 messages; 64
	DSCP       uint8  // of all packets but CNPs and MADs; 26
	NotECT     bool   // else ECT(0)
	Ports      Ports

	// When.
	Schedule Schedule
	Period   int64   // between a requester's messages; 50,000
	Gap      int64   // between packets of one QP; 1,000
	Jitter   int64   // each message is late by up to this
	Drift    float64 // a connection's clock goes fast or slow by up to this part
	Spread   int64   // connections start within this time
	Lifetime int64   // a connection is cut off after this time; 0: when its messages are done
	Duration int64   // of the run; 0: until all connections are done

	// Acknowledgements.
	AckEvery int // AckReq also on every AckEvery-th packet of a message; 0: on the last one only
	AckFull  AckFull
	Coalesce int     // AckReqs that one ACK answers; 1
	AckDelay int64   // from request to response; 500
	RNR      float64 // an inbound SEND finds no receive buffer
	NAKs     NAKs
	Timeouts Timeouts

	// The network.
	Delay        [2]int64   // from the tap to the hosts of each side; 5,000 and 500,000
	PathJitter   int64      // a packet is late by up to this on each half of the path, never overtaking
	ConnJitter   int64      // a connection's packets are all late by a fixed time up to this
	LossBefore   [2]float64 // before the tap, by sending side
	LossAfter    [2]float64 // after the tap, by sending side
	RequestLoss  KindLoss   // of requests only
	ResponseLoss KindLoss   // of acknowledgements, READ and ATOMIC responses only
	Bottleneck   Bottleneck
	Reorder      float64 // a packet is held back on each half of the path
	ReorderDelay int64   // by up to this; 10,000
	CE           float64 // a data packet is marked CE, before or behind the tap
	CNPInterval  int64   // between a receiver's CNPs for one QP; 50,000
	CNPPort      bool    // CNPs have the connection's UDP source port, not 0

	// What the tap sees.
	TapStart int64   // nothing before
	Sight    Sight   // directions, by connection
	Sampled  float64 // each packet with this probability; 0 is 1

	// Communication management.
	CM       bool    // RDMA-CM sets connections up, SIDR resolves UD QPs
	NoDREQ   bool    // no DREQ and DREP at the end
	CMReject float64 // a REQ is answered by a REJ, and tried again with the same QPN
	Managers Managers

	// What follows a connection that ended.
	Generations int // that many more connections in its place; 0
	Reuse       Reuse
	ReuseGap    int64 // from end to start; 20,000

	Attack Attack
}

// AckFull is whether a requester sets AckReq on the packet that fills its window.
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

// QPNs is how hosts number their QPs.
type QPNs uint8

// Ways to number QPs.
const (
	QPRandom     QPNs = iota // of 24 bits
	QPSequential             // upwards from a base, as NICs do
)

// StartPSN is where requesters begin.
type StartPSN uint8

// Start PSNs.
const (
	PSNRandom StartPSN = iota
	PSNZero            // as NCCL has it
	PSNWrap            // a few packets before 2^24
	PSNEqual           // both ends at the same random one
	PSNNear            // near the PSN after the last one that went to the same QP on the connection before it, see Config.Near; at first, random
)

// Requesters is who sends requests on an RC or UC connection. Of XRC it is the end that set it up, of UD both.
type Requesters uint8

// Requesters of a connection.
const (
	FromFabric Requesters = iota
	FromWAN
	FromEither // one of them, by connection
	FromBoth
)

// Ports is a rule for UDP source ports.
type Ports uint8

// Rules for UDP source ports, all from 0xC000 on.
const (
	PortsSymmetric  Ports = iota // Linux's from both QPNs; of UD, Soft-RoCE's from the sending QPN
	PortsFlowLabel               // Linux's from the flow label in RDMA-CM's REQ
	PortsRandom                  // random by connection
	PortsAsymmetric              // random by connection and direction
	PortsEqual                   // all the same
	PortsSpray                   // random by message
	PortsBorrowed                // the symmetric port of another connection: the formula points at a wrong peer
)

// Schedule is how messages of several connections lie in time.
type Schedule uint8

// Schedules.
const (
	Free     Schedule = iota // each at its own random times
	Lockstep                 // all do the same at once, in a fixed order; Jitter, Drift and ConnJitter take them out of step
)

// Sight is which directions of a connection pass the tap.
type Sight uint8

// Directions that are seen.
const (
	SeeBoth    Sight = iota
	SeeForward       // from the end that set the connection up, or sends requests
	SeeReverse
	SeeMixed // one of these, by connection
)

// Reuse is what the connection after a connection takes over.
type Reuse uint8

// Kinds of reuse.
const (
	ReusePeerQP   Reuse = iota // one end's QPN, now with another QP of the same peer
	ReusePeerHost              // one end's QPN, now with another host
	ReusePair                  // both QPNs
	ReuseShuffled              // the hosts' QPNs that are free, matched anew
)
