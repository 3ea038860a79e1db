package cnpgen

import "github.com/cnpgate/cnpgate/internal/packet"

// Action is the request of a Long-haul CNP to the source (draft-tian 6.1, 5.5.1).
type Action = packet.Action

const (
	Notify     = packet.ActionNotify
	Pause      = packet.ActionPause
	RateReduce = packet.ActionRateReduce
	Resume     = packet.ActionResume
)

// LongHaul is the content of a Long-haul CNP, the same in both of its formats (draft-tian 6.1, 6.2.4). Builders ignore Reserved.
type LongHaul = packet.LongHaul

// longHaulLen is the length in octets of the fields and the extension structure.
func longHaulLen(x *Extension) int {
	if x == nil {
		return packet.LongHaulLen
	}
	return packet.LongHaulLen + x.len()
}

// putExtended writes longHaulLen(x) octets.
func putExtended(b []byte, l *LongHaul, x *Extension, class uint8) {
	parameter, sourceQP, metric := l.InRange()
	l.PutWith(b, 0, parameter, sourceQP, metric)
	if len(b) > packet.LongHaulLen {
		x.put(b[packet.LongHaulLen:], class)
	}
}

// Extension are the Extension Objects of a Long-haul CNP (draft-tian 6.1.1). If the IP packet would be longer than 576 octets (IPv4) or
// 1280 (IPv6) with them, the notification isn't built. They are read-only: notifications may share them.
type Extension struct {
	Timestamp uint64 // packet.NTPTime; 0: omitted
	Device    []byte // device identifier, valid UTF-8; empty: omitted
	Path      []byte // path identifier, opaque; empty: omitted
	Others    []packet.Object
}

// len is the length in octets of the extension structure, 0 without objects: then there is no Extension Header either.
func (x *Extension) len() (n int) {
	if x.Timestamp != 0 {
		n += packet.ObjectHeaderLen + packet.TimestampLen
	}
	n += identifierLen(x.Device) + identifierLen(x.Path)
	for i := range x.Others {
		n += x.Others[i].Len()
	}
	if n == 0 {
		return 0
	}
	return packet.ExtensionHeaderLen + n
}

func identifierLen(id []byte) int {
	if len(id) == 0 {
		return 0
	}
	o := packet.Object{Payload: id}
	return o.Len()
}

// put writes the extension structure, which is all of b.
func (x *Extension) put(b []byte, class uint8) {
	list := b[packet.ExtensionHeaderLen:]
	if x.Timestamp != 0 {
		list = list[packet.PutTimestamp(list, class, x.Timestamp):]
	}
	list = putIdentifier(list, class, packet.CTypeDevice, x.Device)
	list = putIdentifier(list, class, packet.CTypePath, x.Path)
	for i := range x.Others {
		o := &x.Others[i]
		o.Put(list)
		list = list[o.Len():]
	}
	packet.PutExtensionHeader(b)
}

// putIdentifier writes an object with an identifier, unless that is empty, and returns the rest of list.
func putIdentifier(list []byte, class, ctype uint8, id []byte) []byte {
	if len(id) == 0 {
		return list
	}
	o := packet.Object{Class: class, CType: ctype, Payload: id}
	o.Put(list)
	return list[o.Len():]
}
