package endpoint

import (
	"fmt"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

const (
	second = 1_000_000_000 // ns
	never  = int64(1<<63 - 1)

	// EthernetOverhead is what a frame occupies on an Ethernet line beyond its length without FCS, in bytes: preamble and start delimiter
	// 8, FCS 4, inter-frame gap 12 (IEEE 802.3 4.4.2).
	EthernetOverhead = 24
	// MaxFrame is enough for any frame that a Host writes, in bytes.
	MaxFrame = maxMTU + maxHeaders

	maxMTU     = 9216
	maxHeaders = 512
	// maxInFlight bounds the PSNs in flight of a QP without a window. It is less than half of the PSN space, as beyond that an
	// acknowledgement is ambiguous (IBTA 9.7.2).
	maxInFlight = 1 << 22
)

// PayloadMode selects whether frames hold their payload.
type PayloadMode uint8

const (
	PayloadNone PayloadMode = iota // headers only; the ICRC is neither computed nor checked, except in CNPs
	PayloadReal                    // all bytes, with a correct ICRC; frames with a wrong one are dropped
)

// Config describes a host. Times are nanoseconds, rates bits per second. A zero field takes the default that its comment gives; Addr,
// LineRate and Reaction.Trusted have none.
type Config struct {
	Addr     packet.Addr // IPv4-mapped for an IPv4 host
	MAC      [6]byte
	LineRate int64 // of the NIC
	Overhead int   // bytes that a frame occupies on the line beyond its length, such as EthernetOverhead
	MTU      int   // path MTU: most payload bytes in a packet; 1024. All hosts of a network have the same
	Payload  PayloadMode
	FirstQP  uint32 // number of the first QP that Connect opens; 0x11

	AckDSCP  uint8 // of acknowledgements; that of data, 26. READ responses count as data
	Priority uint8 // of data, 0 to 7: the class that PFC stops; 3

	Window          int64 // most bytes in flight for each QP; 0: unlimited
	VariableWindow  bool  // the window shrinks with the QP's rate: Window * rate / LineRate, at least one packet
	AckEvery        int   // packets between requests for an acknowledgement; the last packet of a message, and one that fills the window, always request one
	SelectiveRepeat bool  // a receiver keeps packets after a gap, and a sender retransmits little more than what is missing; both ends need it
	Timeout         int64 // a requester goes back after this time without an acknowledgement; 4 ms
	Retries         int   // time-outs without progress after which a QP fails; 7
	CNPInterval     int64 // least time between CNPs of one QP; 50 us. 1: a CNP for each CE packet
	NoCNP           bool  // no notification point: CE marks cause no CNP

	// AnyICRC accepts data with a wrong ICRC, and doesn't compute it: a peer that only measures has no use for the payload.
	AnyICRC bool

	// Remote is the peers' memory for READ and WRITE; nil: a made-up one, which only a Host accepts.
	Remote *Region

	Reaction ReactionConfig // Addr and LineRate are the host's
	CM       CMConfig

	// Completed is called for each message that completed or failed. It may call Start, Open and Close.
	Completed func(Completion)
}

// transport makes the configuration of the QPs' transport.
func (c *Config) transport() transport.Config {
	return transport.Config{MTU: uint32(c.MTU), AckEvery: c.AckEvery, SelectiveRepeat: c.SelectiveRepeat, Timeout: c.Timeout, Retries: c.Retries}
}

func (c *Config) complete() error {
	setDefault(&c.MTU, 1024)
	setDefault(&c.FirstQP, 0x11)
	setDefault(&c.AckDSCP, dataDSCP)
	setDefault(&c.Priority, 3)
	setDefault(&c.Timeout, 4_000_000)
	setDefault(&c.Retries, 7)
	setDefault(&c.CNPInterval, 50_000)
	c.Reaction.LineRate = c.LineRate
	c.Reaction.Addr = c.Addr
	switch {
	case c.Addr == packet.Addr{}:
		return fmt.Errorf("no address: set Addr")
	case c.LineRate <= 0:
		return fmt.Errorf("LineRate is %d bit/s, expected more than 0", c.LineRate)
	case c.MTU < 1 || c.MTU > maxMTU:
		return fmt.Errorf("MTU is %d bytes, expected 1 to %d", c.MTU, maxMTU)
	case c.Priority >= packet.PFCClasses:
		return fmt.Errorf("priority %d is too high, expected 0 to %d", c.Priority, packet.PFCClasses-1)
	case c.Window < 0 || c.AckEvery < 0 || c.Timeout < 0 || c.CNPInterval < 0 || c.Retries < 0 || c.Overhead < 0:
		return fmt.Errorf("a negative value: Window, AckEvery, Timeout, Retries, CNPInterval and Overhead must be 0 or more")
	}
	return c.CM.complete(c.MTU, c.FirstQP)
}

// setDefault sets a zero field to its default.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

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
	Inconsistent: "inconsistent", Stale: "stale", Replayed: "replayed", WrongTrace: "wrong-trace",
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
	InSequence       uint64 // requests that were accepted
	Duplicates       uint64 // requests that were accepted before
	OutOfSequence    uint64 // requests after a gap
	Acknowledgements uint64 // including NAKs
	NAKsReceived     uint64
	ReadResponses    uint64
	ReadsDropped     uint64 // READs dropped because the responder's queue was full; part of InSequence and Duplicates
	CEReceived       uint64 // CE-marked data packets
}
