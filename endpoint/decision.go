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
