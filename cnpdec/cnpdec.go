// Package cnpdec reads notifications of cnpgen and of other vendors' gateways: standard CNP, Fast CNP, Long-haul CNP in both formats, PPFC
// notification and notification to a proxy; also the PAUSE and PFC frames of a link. Decode takes a frame that packet.Parse has parsed,
// makes all checks that the drafts require of a receiver, and fills a Notification or returns why the packet is refused. The package has no
// state, doesn't allocate, and doesn't act on notifications.
//
// An accepted packet can be rebuilt octet by octet from the Notification: it keeps bits that receivers must ignore. A packet that can't be
// rebuilt isn't accepted.
package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// Ask is what a notification asks the sender to do with a flow.
type Ask uint8

const (
	SlowDown Ask = iota // a CNP's meaning, which has no number
	Reduce              // by Parameter percent of its rate
	Pause               // for Parameter microseconds
	Resume              // end a pause, and restore Parameter percent of the last reduction; 0: the whole rate
	EndPause            // only that: PPFC's resume
	// Asks is the number of them.
	Asks
)

// String is the name in metrics.
func (a Ask) String() string {
	return [...]string{"slow-down", "rate-reduce", "pause", "resume", "end-pause", "unknown"}[min(a, Asks)]
}

// Request is what an accepted notification asks for. It names the flow by the receiver and one of the flow's QPs.
type Request struct {
	Sender, Receiver packet.Addr // Receiver is the zero Addr if the notification names only the sender's QP
	QP               uint32      // 24 bits; 0: none is named
	SendersQP        bool        // QP is the sender's, otherwise the receiver's
	Ask              Ask
	Parameter        uint16
}

// Consistent reports whether there is something to do: a pause or a reduction has a Parameter.
func (r *Request) Consistent() bool { return r.Parameter != 0 || r.Ask != Pause && r.Ask != Reduce }

// Receiver has the parameters of a receiver of notifications. It is read-only: workers may share one. Decode calls the functions for each
// packet that has passed the earlier checks, so on a hot path they mustn't allocate.
type Receiver struct {
	Code packet.CodePoints
	// Extension is the kind of a CNP with ExtensionBit, LongHaulCNP or PPFC. draft-tian's E and draft-xz's P are the same bit, and the fields
	// after it can have the same length: nothing on the wire distinguishes them. Any other kind: such a CNP is a StandardCNP, and the bit and
	// the fields are ignored (draft-tian 5.6, 8).
	Extension packet.Notification
	ICRC      ICRCCoverage // which ICRC is right after an IPv6 extension header

	// Trusted reports whether an address may send the kind of notification. Decode calls it for every kind but StandardCNP, which comes
	// from the QP's peer, and the link's own (draft-xiao-fast-cnp 5: an access list is a MUST; draft-tian 5.6 step 1, 9). nil: anybody.
	Trusted func(kind packet.Notification, src packet.Addr) bool
	// KnownQP reports whether a QP of this host is active: the DestQP of a StandardCNP, the Source QP Number of a Long-haul CNP
	// (draft-tian 5.6 step 1). nil: any is.
	KnownQP func(qp uint32) bool
	// KnownFlow reports whether this host has a QP connected to QP destQP of dst, for FastCNP and PPFC (draft-xiao-fast-cnp 4). nil: it
	// has.
	KnownFlow func(dst packet.Addr, destQP uint32) bool
}

// ICRCCoverage is whether an ICRC covers IPv6 extension headers. No specification defines it.
type ICRCCoverage uint8

const (
	ICRCAsSent                  ICRCCoverage = iota // all, as sent
	ICRCWithoutExtensionHeaders                     // none
	ICRCEither                                      // a receiver accepts both; a Notification has one of the others
)
