package cnpgen

import (
	"encoding/binary"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// LinkLen is the length in bytes of the longest Ethernet header of a notification, with two VLAN tags.
const LinkLen = packet.EthernetLen + packet.MaxTags*packet.VLANTagLen

// Target has the data to send a notification to a sender without a packet of its flow. TargetOf makes one from a data packet; callers may
// also set the fields themselves. The source QP is not part of it: pairing may find or lose it while a Target is kept, so the builders of
// formats that need it take it as an argument.
//
// A Target is 72 bytes long and has no pointers, so tables of them can be outside the Go heap. The zero Target has no sender: nothing is
// built for it. Numbers are in host byte order, Link is in network byte order.
type Target struct {
	Src, Dst packet.Addr // of the data: the sender, which is notified, and the receiver

	// Link is the Ethernet header to send with, 14 bytes and 4 for each of Tags: MAC addresses, the destination's first, VLAN tags
	// with their priority (PCP) and DEI, EtherType. Builders overwrite the EtherType. The unused rest is 0.
	Link   [LinkLen]byte
	Tags   uint8 // VLAN tags in Link, 0 to 2
	Family uint8 // IP version of the flow, 4 or 6

	SrcPort uint16 // UDP source port of the flow
	PKey    uint16 // partition key of the flow; 0, which is not valid, if it is not known
	DestQP  uint32 // of the flow, that is, the receiver's QP, 24 bits

	// Encapsulated: the flow is in a tunnel. The network that the tunnel crosses has no route to Src, or one to another host with the same
	// address, so only a notification to a proxy is built.
	Encapsulated bool
}

// TargetOf makes a Target from a RoCEv2 data packet, which may be in a tunnel: p is the result of packet.Parse for frame. It returns false for packets that cause no
// notification: any CNP, since two gateways would otherwise keep answering each other; a packet that is not RoCEv2; and a frame without the
// headers that p describes.
func TargetOf(frame []byte, p *packet.Parsed) (t Target, ok bool) {
	bth := int(p.BTH)
	if p.Kind != packet.RoCEv2 || p.Opcode == packet.CNP || len(frame) < bth+packet.BTHLen {
		return Target{}, false
	}
	t.Src, t.Dst, t.SrcPort, t.DestQP = p.Src, p.Dst, p.SrcPort, p.DestQP
	t.Tags, t.Family, t.Encapsulated = p.Tags, p.Family, p.Encapsulated()
	t.PKey = binary.BigEndian.Uint16(frame[bth+pKeyAt:])
	packet.ReplyEthernet(t.Link[:], frame, p)
	return t, true
}

// pKeyAt is the offset of the partition key in a BTH.
const pKeyAt = 2

// SetPlain makes t the Target of a plain data packet, as TargetOf does: r is the record that fastpath.ParsePlain has written for frame. So frame has
// at least the headers, and there are no bounds to check.
func (t *Target) SetPlain(frame []byte, r *packet.Record) {
	t.Src, t.Dst, t.SrcPort, t.DestQP, t.Encapsulated = r.Flow.Src, r.Flow.Dst, r.SrcPort, r.DestQP(), false
	t.Family = 6
	bth := uintptr(r.IP) + packet.IPv6Len + packet.UDPLen
	if r.Flow.Src.Is4() {
		t.Family = 4
		bth -= packet.IPv6Len - packet.IPv4Len
	}
	head := unsafe.Pointer(unsafe.SliceData(frame))
	t.PKey = binary.BigEndian.Uint16((*[2]byte)(unsafe.Add(head, bth+pKeyAt))[:])
	t.Tags = uint8((r.IP - packet.EthernetLen) / packet.VLANTagLen)
	packet.ReplyPlain(&t.Link, (*[packet.EthernetLen + packet.VLANTagLen]byte)(head), t.Tags > 0)
}

// valid reports whether a notification can be sent to t, which callers may have filled with anything.
func (t *Target) valid() bool {
	return (t.Family == 4 || t.Family == 6) && t.Tags <= packet.MaxTags
}

// linkLen is the length in bytes of the Ethernet header.
func (t *Target) linkLen() int { return packet.EthernetLen + packet.VLANTagLen*int(t.Tags) }

// putLink writes the Ethernet header, with this EtherType, to frame, which is long enough.
func (t *Target) putLink(frame unsafe.Pointer, etherType uint16) {
	const macs = packet.EthernetLen - 2
	head, at := (*[macs]byte)(frame), macs
	binary.LittleEndian.PutUint64(head[:], binary.LittleEndian.Uint64(t.Link[:]))
	binary.LittleEndian.PutUint32(head[8:], binary.LittleEndian.Uint32(t.Link[8:]))
	for range t.Tags {
		*(*[packet.VLANTagLen]byte)(unsafe.Add(frame, at)) = [packet.VLANTagLen]byte(t.Link[at:])
		at += packet.VLANTagLen
	}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Add(frame, at))[:], etherType)
}
