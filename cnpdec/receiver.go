package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// Receiver has the parameters of a receiver of notifications. It is read-only: workers may share one. Decode calls the functions for each
// packet that has passed the earlier checks, so on a hot path they mustn't allocate.
type Receiver struct {
	Code      packet.CodePoints
	Extension Extension
	ICRC      ICRCCoverage // which ICRC is right after an IPv6 extension header

	// Trusted reports whether an address may send the kind of notification. Decode calls it for every kind but StandardCNP, which comes
	// from the QP's peer, and the link's own (draft-xiao-fast-cnp 5: an access list is a MUST; draft-tian 5.6 step 1, 9). nil: anybody.
	Trusted func(kind Kind, src packet.Addr) bool
	// KnownQP reports whether a QP of this host is active: the DestQP of a StandardCNP, the Source QP Number of a Long-haul CNP
	// (draft-tian 5.6 step 1). nil: any is.
	KnownQP func(qp uint32) bool
	// KnownFlow reports whether this host has a QP connected to QP destQP of dst, for FastCNP and PPFC (draft-xiao-fast-cnp 4). nil: it
	// has.
	KnownFlow func(dst packet.Addr, destQP uint32) bool
	// KnownPKey reports whether a partition key other than the default one, 0xFFFF, is the host's: a CNP may have the flow's
	// (draft-tian 6.2.3). nil: any valid one is.
	KnownPKey func(key uint16) bool
}

// Extension is the meaning of ExtensionBit in the BTH of a CNP for a receiver. draft-tian's E and draft-xz's P are the same bit, and the
// fields after it can have the same length: nothing on the wire distinguishes them.
type Extension uint8

const (
	NoExtension       Extension = iota // a CNP with the bit is a standard CNP, and the rest is ignored (draft-tian 5.6, 8)
	LongHaulExtension                  // draft-tian 6.2.1
	PPFCExtension                      // draft-xz-ppfc 3
)

// ICRCCoverage is whether an ICRC covers IPv6 extension headers. No specification defines it.
type ICRCCoverage uint8

const (
	ICRCAsSent                  ICRCCoverage = iota // all, as sent
	ICRCWithoutExtensionHeaders                     // none
	ICRCEither                                      // a receiver accepts both; a Notification has one of the others
)
