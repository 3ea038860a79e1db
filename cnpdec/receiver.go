package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// Receiver is what a receiver of notifications knows and expects. It is read only: workers may share one. The functions are
// called for each packet that is sound so far, so they mustn't allocate where Decode mustn't.
type Receiver struct {
	Code      packet.CodePoints
	Extension Extension
	ICRC      ICRCCoverage // which ICRC is right behind an IPv6 extension header

	// Trusted tells whether an address may send the kind of notification. It is asked for every kind but StandardCNP, which comes
	// from the QP's peer, and the link's own (draft-xiao-fast-cnp 5: an access list is a MUST; draft-tian 5.6 step 1, 9). nil: anybody.
	Trusted func(kind Kind, src packet.Addr) bool
	// KnownQP tells whether a QP of this host is active: the DestQP of a StandardCNP, the Source QP Number of a Long-haul CNP
	// (draft-tian 5.6 step 1). nil: any is.
	KnownQP func(qp uint32) bool
	// KnownFlow tells whether this host has a QP connected to QP destQP of dst: what FastCNP and PPFC name (draft-xiao-fast-cnp 4).
	// nil: it has.
	KnownFlow func(dst packet.Addr, destQP uint32) bool
	// KnownPKey tells whether a partition key other than the default one is the host's (draft-tian 6.2.3). nil: none is.
	KnownPKey func(key uint16) bool
}

// Extension is what ExtensionBit in the BTH of a CNP means to a receiver. draft-tian's E and draft-xz's P are the same bit, and what
// follows can be of the same length: nothing on the wire tells them apart.
type Extension uint8

const (
	NoExtension       Extension = iota // a CNP with the bit is a standard CNP whose rest is ignored (draft-tian 5.6, 8)
	LongHaulExtension                  // draft-tian 6.2.1
	PPFCExtension                      // draft-xz-ppfc 3
)

// ICRCCoverage is what an ICRC covers of the IPv6 extension headers. No specification says it.
type ICRCCoverage uint8

const (
	ICRCAsSent                  ICRCCoverage = iota // all, as sent
	ICRCWithoutExtensionHeaders                     // none
	ICRCEither                                      // a receiver takes both; a Notification has one of the others
)
