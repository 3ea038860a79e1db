package endpoint

import "github.com/cnpgate/cnpgate/cnpdec"

// Decision is what a reaction point does with a packet.
type Decision uint8

const (
	Refused      Decision = iota // by cnpdec: ReactionCounters.Refused has the reason
	WrongHost                    // it is for another address
	Disabled                     // its format isn't enabled
	NotForHosts                  // it is meant for a proxy or a link
	NotFromPeer                  // a standard CNP from neither the QP's peer nor the access list
	Inconsistent                 // its fields contradict each other or the flow
	Stale                        // its timestamp differs too much from the host's time
	NoTimestamp                  // it has no timestamp, but RequireTimestamp is set
	Replayed                     // it was obeyed before
	WrongTrace                   // its IOAM trace doesn't have the form that HPCC needs

	Ignored         // no algorithm is configured for it
	SlowedDown      // DCQCN
	Measured        // HPCC
	Paused          // for the time given
	Unpaused        // PPFC
	Reduced         // by the percentage given
	Resumed         // by the percentage given, at most MaxResume
	NothingToResume // neither paused nor reduced

	// Decisions is the number of decisions, for tables of counters.
	Decisions = iota

	lastRefusal = WrongTrace
)

var decisionNames = [Decisions]string{
	Refused: "refused", WrongHost: "wrong-host", Disabled: "disabled", NotForHosts: "not-for-hosts", NotFromPeer: "not-from-peer",
	Inconsistent: "inconsistent", Stale: "stale", NoTimestamp: "no-timestamp", Replayed: "replayed", WrongTrace: "wrong-trace",
	Ignored: "ignored", SlowedDown: "slowed-down", Measured: "measured", Paused: "paused", Unpaused: "unpaused",
	Reduced: "reduced", Resumed: "resumed", NothingToResume: "nothing-to-resume",
}

// Accepted reports whether the reaction point took the packet as a valid notification, whether or not it changed a rate.
func (d Decision) Accepted() bool { return d > lastRefusal }

// String names the decision as reports do.
func (d Decision) String() string {
	if int(d) < Decisions {
		return decisionNames[d]
	}
	return "unknown"
}

// ReactionCounters is what a ReactionPoint counts: each packet once by Decision, and refused ones again by cnpdec's reason.
type ReactionCounters struct {
	Decisions [Decisions]uint64
	Refused   [cnpdec.Reasons]uint64
}

// Counters is what a Host counts. FramesReceived = WrongDestination + FlowControl + Notifications + WrongICRC + CMReceived + UnknownQP +
// WrongPeer + Unsupported + InSequence + Duplicates + OutOfSequence + Acknowledgements + ReadResponses.
type Counters struct {
	FramesSent, BytesSent uint64
	DataSent              uint64 // data packets and READ requests, including Retransmitted
	Retransmitted         uint64
	ACKsSent, NAKsSent    uint64
	CNPsSent              uint64
	CMSent                uint64 // messages of RDMA-CM
	WentBack              uint64 // times that a requester began to retransmit
	TimedOut              uint64
	MessagesDone          uint64
	MessagesFailed        uint64
	Pings, PingErrors     uint64 // rounds of rping's exchange that completed, and exchanges that failed

	FramesReceived   uint64
	WrongDestination uint64 // another host's address
	FlowControl      uint64 // PFC and PAUSE
	Notifications    uint64 // and other packets that don't belong to a QP: ReactionPoint counts these
	WrongICRC        uint64
	CMReceived       uint64 // packets to QP 1, if RDMA-CM is enabled: CMCounters counts them by effect
	UnknownQP        uint64
	WrongPeer        uint64 // not from the QP's peer, or not of its transport
	Unsupported      uint64 // requests and MAC control frames that the host doesn't support
	InSequence       uint64 // requests and datagrams that were accepted
	Duplicates       uint64 // requests that were accepted before
	OutOfSequence    uint64 // requests after a gap
	Acknowledgements uint64 // including NAKs
	NAKsReceived     uint64
	ReadResponses    uint64
	ReadsDropped     uint64 // READs dropped because the responder's queue was full; part of InSequence and Duplicates
	CEReceived       uint64 // CE-marked data packets
}
