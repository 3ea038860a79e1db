package packet

import "fmt"

// Tag identifies a frame's VLAN by VID and TPID. Two tags with the same VID and different TPIDs are different VLANs (IEEE 802.1Q 9.5).
// Priority and DEI are not included. The zero Tag is no tag, unlike a priority tag, whose VID is 0.
//
//	15    12 11            0
//	+-------+---------------+
//	| which |      VID      |  which: 0 none, 1 TPID 0x8100, 2 0x88A8, 3 0x9100
//	+-------+---------------+
type Tag uint16

const (
	tagWhich = 12 // shift
	vidMask  = 1<<tagWhich - 1
)

// tpids are the tag protocol identifiers that a Tag distinguishes.
var tpids = [...]uint16{0, EtherTypeCTag, EtherTypeSTag, EtherTypeQinQ}

// MakeTag returns the Tag of a TPID and tag control information, of which it uses the VID in the low 12 bits. For any other TPID than the
// three it returns 0.
func MakeTag(tpid, tci uint16) Tag {
	switch tpid {
	case EtherTypeCTag:
		return 1<<tagWhich | Tag(tci&vidMask)
	case EtherTypeSTag:
		return 2<<tagWhich | Tag(tci&vidMask)
	case EtherTypeQinQ:
		return 3<<tagWhich | Tag(tci&vidMask)
	}
	return 0
}

// VID is the VLAN ID, 0 to 4095; 0 for a priority tag, and for no tag.
func (t Tag) VID() uint16 { return uint16(t & vidMask) }

// TPID is the tag protocol identifier: 0x8100, 0x88A8 or 0x9100, or 0 for no tag.
func (t Tag) TPID() uint16 { return tpids[t>>tagWhich%Tag(len(tpids))] }

// String gives "0x88a8:100", and "none" for no tag.
func (t Tag) String() string {
	if t == 0 {
		return "none"
	}
	return fmt.Sprintf("%#04x:%d", t.TPID(), t.VID())
}
