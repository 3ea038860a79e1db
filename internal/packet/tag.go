package packet

import "fmt"

// Tag is what a VLAN tag says of whose a frame is: which VLAN, by which protocol. Two tags with one VID and different TPIDs are of different
// VLANs (IEEE 802.1Q 9.5), so both are in it; priority and DEI are not. The zero Tag is no tag, unlike a priority tag, whose VID is 0.
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

// tpids are the tag protocol identifiers that a Tag tells apart.
var tpids = [...]uint16{0, EtherTypeCTag, EtherTypeSTag, EtherTypeQinQ}

// MakeTag is the Tag of a TPID and tag control information: VID in the low 12 bits, the rest is left out. Of a TPID other than the three it is 0.
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

// VID is the VLAN ID, 0 to 4095; 0 of a priority tag, and of no tag.
func (t Tag) VID() uint16 { return uint16(t & vidMask) }

// TPID is the tag protocol identifier: 0x8100, 0x88A8 or 0x9100, or 0 of no tag.
func (t Tag) TPID() uint16 { return tpids[t>>tagWhich%Tag(len(tpids))] }

// String gives "0x88a8:100", and "none" for no tag.
func (t Tag) String() string {
	if t == 0 {
		return "none"
	}
	return fmt.Sprintf("%#04x:%d", t.TPID(), t.VID())
}
