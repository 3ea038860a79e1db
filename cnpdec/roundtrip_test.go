package cnpdec

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"pgregory.net/rapid"
)

func octetsOf(t *rapid.T, label string, n int) []byte {
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label)
}

func bitsOf[T uint8 | uint16 | uint32](t *rapid.T, label string, bits int) T {
	return T(rapid.Uint64Range(0, 1<<bits-1).Draw(t, label))
}

// drawNotification draws every field of a notification of any kind that a receiver accepts, reserved bits included.
func drawNotification(t *rapid.T) Notification {
	isFormat := func(k int) bool { return packet.Notification(k) != packet.ExtendedCNP }
	n := Notification{Kind: packet.Notification(rapid.IntRange(0, packet.Notifications-1).Filter(isFormat).Draw(t, "kind"))}
	switch n.Kind {
	case packet.LinkPause:
		n.Pause.Time = bitsOf[uint16](t, "time", 16)
		return n
	case packet.LinkPFC:
		n.PFC = packet.PFC{Reserved: bitsOf[uint8](t, "reserved", 8), Enabled: bitsOf[uint8](t, "enabled", 8)}
		for i := range n.PFC.Time {
			n.PFC.Time[i] = bitsOf[uint16](t, "time", 16)
		}
		return n
	}
	n.Family = 6
	if n.Kind.Over(true) && rapid.Bool().Draw(t, "IPv4") {
		n.Family = 4
	}
	n.Src, n.Dst = drawAddr(t, n.Family), drawAddr(t, n.Family)
	n.UDP = packet.UDPHeader{SrcPort: bitsOf[uint16](t, "source port", 16), DstPort: packet.RoCEv2Port,
		Checksum: bitsOf[uint16](t, "checksum", 1)}
	flags := uint8(packet.BECN)
	switch n.Kind {
	case packet.StandardCNP:
		n.Body = octetsOf(t, "reserved", packet.CNPReservedLen)
		if rapid.Bool().Draw(t, "extension that isn't spoken") {
			flags |= packet.ExtensionBit
			n.Body = octetsOf(t, "extension", rapid.IntRange(0, 80).Draw(t, "length"))
		}
	case packet.FastCNP:
		flags |= bitsOf[uint8](t, "extension bit", 1) * packet.ExtensionBit
		n.Body = octetsOf(t, "reserved", packet.CNPReservedLen)
		n.Fast = drawFast(t)
		n.ICRC = ICRCCoverage(bitsOf[uint8](t, "ICRC without extension headers", 1))
	case packet.LongHaulCNP, packet.LongHaulCNPICMPv6:
		flags |= packet.ExtensionBit
		n.LongHaul = drawLongHaul(t)
	case packet.PPFC:
		flags |= packet.ExtensionBit
		n.PPFC = packet.PPFCFields{Dst: drawAddr(t, n.Family), Flags: bitsOf[uint16](t, "flags", 14), PT: packet.PauseType(bitsOf[uint8](t, "PT", 1)),
			Port: bitsOf[uint16](t, "port", 16), Reserved: bitsOf[uint16](t, "reserved", 16), Duration: bitsOf[uint16](t, "duration", 16)}
	case packet.ProxyNotification:
		n.UDP.DstPort = packet.DefaultCodePoints.ProxyPort
		if n.Family == 6 {
			n.UDP.Checksum = 1
		}
		n.Proxy = drawProxy(t)
		return n
	}
	if n.Kind == packet.LongHaulCNPICMPv6 {
		n.UDP = packet.UDPHeader{}
		return n
	}
	n.BTH = packet.BTH{Opcode: packet.CNP, Flags: flags | bitsOf[uint8](t, "reserved bits", 5),
		PKey:   rapid.Uint16Range(1, 0x7fff).Draw(t, "partition") | bitsOf[uint16](t, "full member", 1)<<15,
		DestQP: bitsOf[uint32](t, "DestQP", 24), Reserved: bitsOf[uint8](t, "seven reserved bits", 7),
		MigReq: (n.Kind == packet.StandardCNP || n.Kind == packet.FastCNP) && rapid.Bool().Draw(t, "MigReq")}
	return n
}

// drawAddr draws a unicast address.
func drawAddr(t *rapid.T, family uint8) packet.Addr {
	if family == 4 {
		return packet.AddrFrom4(append([]byte{rapid.ByteRange(1, 126).Draw(t, "address")}, octetsOf(t, "address", 3)...))
	}
	return packet.AddrFrom16(append([]byte{rapid.ByteRange(1, 0xfe).Draw(t, "address")}, octetsOf(t, "address", 15)...))
}

// drawFast draws a Destination Options header in the senders' layout or any other.
func drawFast(t *rapid.T) packet.FastCNPHeader {
	h := packet.FastCNPHeader{NextHeader: packet.ProtoUDP, Type: packet.DefaultCodePoints.FastCNPOption}
	h.Option.Dst = drawAddr(t, 6)
	if rapid.Bool().Draw(t, "trace") {
		h.Option.Reserved = bitsOf[uint8](t, "reserved", 8)
		words := rapid.IntRange(0, 57).Draw(t, "words")
		h.Option.Trace = packet.IOAMTrace{Type: bitsOf[uint8](t, "trace type", 1), Data: octetsOf(t, "trace", 8+4*words)}
	}
	h.Pad()
	if rapid.Bool().Draw(t, "other layout") {
		h.Before, h.After = drawOptions(t), drawOptions(t)
		h.After = append(h.After, make([]byte, -h.Len()&7)...) // Pad1
	}
	return h
}

// drawOptions draws padding and options that may be skipped.
func drawOptions(t *rapid.T) []byte {
	var b []byte
	for range rapid.IntRange(0, 4).Draw(t, "options") {
		known := []byte{packet.OptionPad1, packet.OptionPadN, packet.OptionIOAM, packet.OptionIOAMChanges, 0x1e}
		option := rapid.SampledFrom(known).Draw(t, "option")
		if b = append(b, option); option != packet.OptionPad1 {
			data := octetsOf(t, "data", rapid.IntRange(0, 20).Draw(t, "length"))
			b = append(append(b, byte(len(data))), data...)
		}
	}
	return b
}

func drawLongHaul(t *rapid.T) LongHaul {
	l := LongHaul{LongHaul: packet.DecodeLongHaul(octetsOf(t, "fields", packet.LongHaulLen))}
	l.SourceQP &= 0xffffff
	switch l.Action {
	case packet.ActionNotify:
		l.Parameter = 0
	case packet.ActionRateReduce, packet.ActionResume:
		l.Parameter %= 101
	}
	if l.MetricType == packet.MetricECNRate {
		l.MetricValue %= 101
	}
	for range rapid.IntRange(0, 4).Draw(t, "objects") {
		o := drawObject(t, &l)
		l.Objects = append(l.Objects, put(o.Len(), o.Put)...)
	}
	if l.Objects == nil {
		return l
	}
	l.Header = packet.ExtensionHeader{Version: packet.ExtensionVersion, Reserved: bitsOf[uint16](t, "reserved", 12)}
	if rapid.Bool().Draw(t, "checksum") {
		l.Header.Checksum = ^plainSum(append(put(packet.ExtensionHeaderLen, l.Header.Put), l.Objects...))
	}
	return l
}

// drawObject draws an object and notes in l what a receiver should find by its name.
func drawObject(t *rapid.T, l *LongHaul) packet.Object {
	o := packet.Object{Class: 247, CType: rapid.SampledFrom([]uint8{0, 1, 2, 3, 4, 255}).Draw(t, "C-Type")}
	if rapid.Bool().Draw(t, "class of others") {
		o.Class = rapid.Uint8Range(0, 246).Draw(t, "class")
	}
	o.Payload = octetsOf(t, "payload", rapid.IntRange(0, 20).Draw(t, "length"))
	if o.Class != 247 {
		return o
	}
	switch o.CType {
	case packet.CTypeTimestamp:
		o.Payload = octetsOf(t, "timestamp", 8)
		if !l.HasTimestamp {
			l.Timestamp, l.HasTimestamp = binary.BigEndian.Uint64(o.Payload), true
		}
	case packet.CTypeDevice:
		o.Payload = []byte(rapid.StringN(0, 10, 20).Draw(t, "device"))
		if l.Device == nil {
			l.Device = o.Payload
		}
	case packet.CTypePath:
		if l.Path == nil {
			l.Path = o.Payload
		}
	}
	return o
}

func drawProxy(t *rapid.T) Proxy {
	x := Proxy{Proxied: packet.Proxied{Version: 4, R: rapid.Bool().Draw(t, "R"), Level: bitsOf[uint8](t, "level", 3), Proto: packet.ProtoUDP,
		Reserved: bitsOf[uint16](t, "reserved", 16), SrcPort: bitsOf[uint16](t, "source port", 16), DstPort: packet.RoCEv2Port}}
	if rapid.Bool().Draw(t, "IPv6 flow") {
		x.Version = 6
	}
	x.Src, x.Dst = drawAddr(t, x.Version), drawAddr(t, x.Version)
	payload := rapid.IntRange(0, 1500).Draw(t, "payload")
	x.Invoking = append(ipHeader(x.Version, x.Src, x.Dst, 17, 8+12+payload+4), byte(x.SrcPort>>8), byte(x.SrcPort), 0x12, 0xb7, 0, byte(28), 0, 0)
	binary.BigEndian.PutUint16(x.Invoking[len(x.Invoking)-4:], uint16(8+12+payload+4))
	bth := packet.BTH{Opcode: packet.RCSendFirst, DestQP: bitsOf[uint32](t, "QP", 24), PSN: bitsOf[uint32](t, "PSN", 24)}
	x.Invoking = append(append(x.Invoking, put(12, bth.Put)...), make([]byte, payload)...)
	if payload > 400 {
		x.Invoking = x.Invoking[:400]
	}
	packet.ParseIP(x.Invoking, &x.Inner)
	return x
}

// ipHeader is an IP header with n octets of the protocol behind it, by nothing of internal/packet.
func ipHeader(family uint8, src, dst packet.Addr, proto byte, n int) []byte {
	be := binary.BigEndian
	if family == 6 {
		b := be.AppendUint16([]byte{0x6c, 0, 0, 0}, uint16(n))
		b = append(b, proto, 61)
		b = be.AppendUint64(be.AppendUint64(b, src.Hi), src.Lo)
		return be.AppendUint64(be.AppendUint64(b, dst.Hi), dst.Lo)
	}
	b := be.AppendUint16([]byte{0x45, 0xc2}, uint16(20+n))
	b = append(b, 0x12, 0x34, 0, 0, 61, proto, 0, 0)
	b = be.AppendUint32(be.AppendUint32(b, uint32(src.Lo)), uint32(dst.Lo))
	be.PutUint16(b[10:], ^plainSum(b))
	return b
}

// frameOf encodes a drawn notification behind drawn headers and fills in what a receiver finds of them. The message is encoded twice:
// first for its length.
func frameOf(t *rapid.T, n *Notification) []byte {
	link := octetsOf(t, "MAC addresses", 12)
	for range rapid.IntRange(0, packet.MaxTags).Draw(t, "tags") {
		link = append(append(link, rapid.SampledFrom([][]byte{{0x81, 0}, {0x88, 0xa8}, {0x91, 0}}).Draw(t, "TPID")...), octetsOf(t, "TCI", 2)...)
	}
	proto := byte(packet.ProtoUDP)
	switch n.Kind {
	case packet.LinkPause, packet.LinkPFC:
		copy(link, packet.MACControlAddr[:])
		envelope := slices.Concat(link, []byte{0x88, 0x08})
		n.Start = len(envelope)
		frame := encode(n, envelope)
		n.End = len(frame)
		return frame
	case packet.LongHaulCNPICMPv6:
		proto = packet.ProtoICMPv6
	case packet.FastCNP:
		proto = packet.ProtoDestOpts
	}
	etherType := map[uint8][]byte{4: {0x08, 0x00}, 6: {0x86, 0xdd}}[n.Family]
	envelope := append(append([]byte(nil), link...), etherType...)
	l3 := len(envelope)
	n.Start = l3 + len(ipHeader(n.Family, n.Src, n.Dst, proto, 0))
	draft := encode(n, append(envelope, ipHeader(n.Family, n.Src, n.Dst, proto, 0)...))
	n.End = len(draft)
	if proto != packet.ProtoICMPv6 {
		n.UDP.Length = uint16(n.End - n.Start - n.fastLen())
	}
	frame := encode(n, append(envelope, ipHeader(n.Family, n.Src, n.Dst, proto, n.End-n.Start)...))
	if n.UDP.Checksum != 0 {
		n.UDP.Checksum = binary.BigEndian.Uint16(frame[n.Start+n.fastLen()+6:])
	}
	return frame
}

func (n *Notification) fastLen() int {
	if n.Kind == packet.FastCNP {
		return n.Fast.Len()
	}
	return 0
}

// TestDecodeEncode: decode(encode(x)) = x over all fields of all kinds.
func TestDecodeEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawNotification(t)
		frame := frameOf(t, &want)
		r := Receiver{Code: packet.DefaultCodePoints, ICRC: want.ICRC}
		if want.Kind.Extended() {
			r.Extension = want.Kind
		}
		padded := slices.Concat(frame, octetsOf(t, "Ethernet padding", rapid.IntRange(0, 20).Draw(t, "padding")))
		got, reason := r.decodeFrame(padded)
		if reason != Accepted {
			t.Fatalf("%+v\nas % x: %v", want, frame, reason)
		}
		normalize(&got)
		normalize(&want)
		want.Asks = asked(&want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// asked is what a notification asks for, by the drafts.
func asked(n *Notification) Request {
	cnp := Request{Sender: n.Dst, QP: n.BTH.DestQP}
	switch n.Kind {
	case packet.StandardCNP:
		cnp.Receiver, cnp.SendersQP = n.Src, true
	case packet.FastCNP:
		cnp.Receiver = n.Fast.Option.Dst
	case packet.PPFC:
		cnp.Receiver, cnp.Ask, cnp.Parameter = n.PPFC.Dst, [...]Ask{Pause, EndPause}[n.PPFC.PT], n.PPFC.Duration
	case packet.LongHaulCNP, packet.LongHaulCNPICMPv6:
		l := &n.LongHaul
		return Request{Sender: n.Dst, QP: l.SourceQP, SendersQP: true, Ask: [...]Ask{SlowDown, Pause, Reduce, Resume}[l.Action], Parameter: l.Parameter}
	case packet.ProxyNotification:
		return Request{Sender: n.Proxy.Src, Receiver: n.Proxy.Dst, QP: n.Proxy.Inner.DestQP}
	default:
		return Request{}
	}
	return cnp
}

// normalize takes empty and missing octets for the same.
func normalize(n *Notification) {
	for _, b := range []*[]byte{&n.Body, &n.Fast.Before, &n.Fast.After, &n.LongHaul.Objects, &n.LongHaul.Device, &n.LongHaul.Path} {
		if len(*b) == 0 {
			*b = nil
		}
	}
}
