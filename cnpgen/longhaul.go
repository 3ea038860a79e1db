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

// LongHaul is the content of a Long-haul CNP, the same in both of its formats (draft-tian 6.1, 6.2.4).
type LongHaul struct {
	Level       uint8 // Congestion Level, 0 none to 255 most severe
	Action      Action
	Parameter   uint16     // by Action: percent or microseconds
	SourceQP    uint32     // 24 bits: the QP at the data's source
	MetricType  uint8      // draft-tian 10.4; 0 with value 0 discloses nothing
	MetricValue uint32     // unit by MetricType; 24 bits, larger values saturate
	Extension   *Extension // nil: none. It is read-only: notifications may share one
}

// largestParameter is the maximum of draft-tian 6.1: 0 for Notify, any for Pause, a percentage for Rate Reduce and Resume.
var largestParameter = [4]uint16{Notify: 0, Pause: 0xffff, RateReduce: 100, Resume: 100}

// ranged returns the fields as the draft requires of a sender: reserved bits 0, all values in their ranges.
func (l *LongHaul) ranged() (flags uint8, parameter uint16, sourceQP, metric uint32) {
	largest := uint32(0xffffff)
	if l.MetricType == packet.MetricECNRate {
		largest = 100
	}
	return uint8(l.Action) << 6, min(l.Parameter, largestParameter[l.Action&3]), l.SourceQP & 0xffffff, min(l.MetricValue, largest)
}

// len is the length in octets of the fields and the extension structure.
func (l *LongHaul) len() int {
	if l.Extension == nil {
		return packet.LongHaulLen
	}
	return packet.LongHaulLen + l.Extension.len()
}

// put writes len() octets.
func (l *LongHaul) put(b []byte, class uint8) {
	flags, parameter, sourceQP, metric := l.ranged()
	packet.PutLongHaul(b, l.Level, flags, parameter, sourceQP, l.MetricType, metric)
	if len(b) > packet.LongHaulLen {
		l.Extension.put(b[packet.LongHaulLen:], class)
	}
}

// Extension are the Extension Objects of a Long-haul CNP (draft-tian 6.1.1). If the IP packet would be longer than 576 octets (IPv4) or
// 1280 (IPv6) with them, the notification isn't built.
type Extension struct {
	Timestamp uint64 // packet.NTPTime; 0: omitted
	Device    []byte // device identifier, valid UTF-8; empty: omitted
	Path      []byte // path identifier, opaque; empty: omitted
	Others    []packet.Object
}

// len is the length in octets of the extension structure, 0 without objects: then there is no Extension Header either.
func (x *Extension) len() int {
	n := 0
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
