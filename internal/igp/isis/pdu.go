// Package isis decodes the prefixes of IS-IS link-state PDUs: TLVs 135, 235, 236 and 237 (RFC 5305 4, RFC 5120 7, RFC 5308 2) with
// the prefix attribute flags and source router IDs (RFC 7794). A router that is the proxy of a prefix of senders sets the P-flag
// (draft-xiao-proxy 5.1). The package is pure. All numbers on the wire are big endian.
//
// Only decode uses the package: draft-xiao-proxy 5.1 specifies the flag, but FRR can neither set nor show it, so that a captured LSP is where an
// operator can see it. That a router preserves the flag from one level to another is that router's matter; cnpgate is none.
package isis

import (
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/internal/igp/fletcher"
)

// LLC is the IEEE 802.2 header of IS-IS: DSAP, SSAP and control.
const LLC = "\xfe\xfe\x03"

// PDUType is the type of a PDU (ISO/IEC 10589 9).
type PDUType uint8

// The types of LSPs.
const (
	L1LSP PDUType = 18
	L2LSP PDUType = 20
)

var pduNames = map[PDUType]string{15: "isis-l1-hello", 16: "isis-l2-hello", 17: "isis-p2p-hello", L1LSP: "isis-l1-lsp", L2LSP: "isis-l2-lsp",
	24: "isis-l1-csnp", 25: "isis-l2-csnp", 26: "isis-l1-psnp", 27: "isis-l2-psnp"}

// String is the name of a type, or its number.
func (t PDUType) String() string {
	if name := pduNames[t]; name != "" {
		return name
	}
	return fmt.Sprintf("isis-type-%d", uint8(t))
}

const (
	discriminator = 0x83
	commonLen     = 8  // octets of the header that all PDUs have
	headerLen     = 27 // of an LSP
	lspIDAt       = 12 // the checksum covers the LSP from here on
	checksumAt    = 24
	version       = 1
	systemIDLen   = 6
)

// Type decodes what PDU b is: what follows the LLC header.
func Type(b []byte) (PDUType, error) {
	switch {
	case len(b) < commonLen:
		return 0, fmt.Errorf("a PDU has %d octets; expected at least %d", len(b), commonLen)
	case b[0] != discriminator:
		return 0, fmt.Errorf("the network layer protocol is %#02x; expected %#02x, IS-IS", b[0], discriminator)
	case b[2] != version || b[5] != version:
		return 0, fmt.Errorf("the PDU has the versions %d and %d; expected 1 and 1", b[2], b[5])
	case b[3] != 0 && b[3] != systemIDLen:
		return 0, fmt.Errorf("system IDs have %d octets; cnpgate reads those of 6", b[3])
	}
	return PDUType(b[4] & 0x1f), nil
}

// LSPID is the ID of an LSP: system ID, pseudonode ID, number of the fragment.
type LSPID [systemIDLen + 2]byte

// String writes an ID as operators do: 0000.0000.0001.00-00.
func (id LSPID) String() string {
	return fmt.Sprintf("%x.%x.%x.%x-%x", id[0:2], id[2:4], id[4:6], id[6:7], id[7:8])
}

// LSP is a link-state PDU.
type LSP struct {
	Type       PDUType // L1LSP or L2LSP
	MaxAreas   uint8   // maximum area addresses; 0 means 3
	Lifetime   uint16  // seconds; 0: the LSP is being purged
	ID         LSPID
	Sequence   uint32
	Checksum   uint16
	Flags      uint8 // P, ATT, OL, IS type
	RouterIDs  RouterIDs
	Prefixes   []Prefix
	Unknown    []TLV // of other types, in their order: receivers ignore what they don't know (ISO/IEC 10589 9.3 note)
	ChecksumOK bool  // Decode found it right
}

// TLV is a TLV or sub-TLV: at most 255 octets.
type TLV struct {
	Type  uint8
	Value []byte
}

// Decode decodes an LSP, which the result shares. b is what follows the LLC header; padding may follow the LSP.
func Decode(b []byte) (l LSP, err error) {
	if l.Type, err = Type(b); err != nil {
		return LSP{}, err
	}
	if l.Type != L1LSP && l.Type != L2LSP {
		return LSP{}, fmt.Errorf("%v is no LSP", l.Type)
	}
	if len(b) < headerLen {
		return LSP{}, fmt.Errorf("an LSP has %d octets; expected at least %d", len(b), headerLen)
	}
	length := int(binary.BigEndian.Uint16(b[8:]))
	if b[1] != headerLen || length < headerLen || length > len(b) {
		return LSP{}, fmt.Errorf("an LSP of %d octets gives the length of its header as %d and its own as %d; expected %d, and %d to %d",
			len(b), b[1], length, headerLen, headerLen, len(b))
	}
	b = b[:length]
	l.MaxAreas, l.Lifetime, l.ID = b[7], binary.BigEndian.Uint16(b[10:]), LSPID(b[lspIDAt:])
	l.Sequence, l.Checksum, l.Flags = binary.BigEndian.Uint32(b[20:]), binary.BigEndian.Uint16(b[checksumAt:]), b[26]
	l.ChecksumOK = l.Checksum == fletcher.Sum(b[lspIDAt:], checksumAt-lspIDAt)
	return l, l.decodeTLVs(b[headerLen:])
}

// next decodes the first TLV of b and returns what follows.
func next(b []byte) (t TLV, rest []byte, err error) {
	if len(b) < 2 {
		return TLV{}, nil, fmt.Errorf("%d octet is left where a TLV begins; expected at least 2", len(b))
	}
	if len(b)-2 < int(b[1]) {
		return TLV{}, nil, fmt.Errorf("TLV %d has a length of %d octets, but %d are left", b[0], b[1], len(b)-2)
	}
	end := 2 + int(b[1])
	return TLV{b[0], b[2:end]}, b[end:], nil
}
