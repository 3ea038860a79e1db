package cnpdec

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// codeFlowLevel is the only assigned Code of a Long-haul CNP (draft-tian 10.2).
const codeFlowLevel = 0

// LongHaul is the content of a Long-haul CNP, the same in both of its formats.
type LongHaul struct {
	packet.LongHaul
	Header  packet.ExtensionHeader // zero without objects
	Objects []byte                 // the Extension Objects, for packet.NextObject; empty without

	// Contents of the objects of the Long-haul CNP's class, the first of each type.
	Timestamp    uint64 // NTP timestamp format
	HasTimestamp bool
	Device       []byte // UTF-8; nil: none
	Path         []byte // nil: none
}

// Undisclosed reports whether the sender doesn't disclose the state of its queue (draft-tian 9).
func (l *LongHaul) Undisclosed() bool { return l.MetricType == 0 && l.MetricValue == 0 }

// readLongHaulICMPv6 reads the message m of a Long-haul CNP in ICMPv6 format (draft-tian 6.1).
func (r *Receiver) readLongHaulICMPv6(m []byte, n *Notification) Reason {
	if !longHaulLengthOK(len(m) - packet.ICMPv6Len) {
		return WrongLength
	}
	if binary.BigEndian.Uint16(m[2:]) != packet.ICMPv6Checksum(n.Src, n.Dst, m) {
		return WrongChecksum
	}
	if m[1] != codeFlowLevel {
		return UnknownCode
	}
	return r.decodeLongHaul(m[packet.ICMPv6Len:], n)
}

// readLongHaulCNP reads a Long-haul CNP in RoCEv2 format (draft-tian 6.2.4).
func (r *Receiver) readLongHaulCNP(frame []byte, p *packet.Parsed, n *Notification) Reason {
	body := frame[p.Ext():p.ICRC]
	if reason := r.readCNP(frame, p, n, longHaulLengthOK(len(body))); reason != Accepted {
		return reason
	}
	return r.decodeLongHaul(body, n)
}

// longHaulLengthOK reports whether n octets are the fixed fields, or these and an Extension Header with or without objects. Objects
// are padded to whole words.
func longHaulLengthOK(n int) bool { return n >= packet.LongHaulLen && n%4 == 0 }

func (r *Receiver) decodeLongHaul(b []byte, n *Notification) Reason {
	l := &n.LongHaul
	l.LongHaul = packet.DecodeLongHaul(b)
	if reason := l.check(); reason != Accepted {
		return reason
	}
	if len(b) > packet.LongHaulLen {
		if reason := l.decodeExtension(b[packet.LongHaulLen:], r.Code.ExtensionClass); reason != Accepted {
			return reason
		}
	}
	if r.KnownQP != nil && !r.KnownQP(l.SourceQP) {
		return UnknownQP
	}
	n.Asks.QP, n.Asks.SendersQP, n.Asks.Ask, n.Asks.Parameter = l.SourceQP, true, longHaulAsks[l.Action&3], l.Parameter
	return Accepted
}

var longHaulAsks = [...]Ask{packet.ActionNotify: SlowDown, packet.ActionPause: Pause, packet.ActionRateReduce: Reduce, packet.ActionResume: Resume}

// check checks that the fields are consistent (draft-tian 9, "Reserved Bit Manipulation"; ranges in 6.1). Metric type 0 may have any value,
// which is then opaque.
func (l *LongHaul) check() Reason {
	switch parameter, sourceQP, metric := l.InRange(); {
	case l.SourceQP != sourceQP:
		return WrongSourceQP
	case l.Parameter != parameter:
		return WrongParameter
	case l.MetricValue != metric:
		return WrongMetric
	}
	return Accepted
}

// decodeExtension reads an extension structure (draft-tian 6.1.1): Extension Header and at least one object. Objects of other
// classes or types stay in Objects and are skipped.
func (l *LongHaul) decodeExtension(b []byte, class uint8) Reason {
	l.Header, l.Objects = packet.DecodeExtensionHeader(b), b[packet.ExtensionHeaderLen:]
	switch {
	case l.Header.Version != packet.ExtensionVersion:
		return ExtensionVersion
	case !packet.ExtensionChecksumOK(b):
		return ExtensionChecksum
	case len(l.Objects) == 0:
		return ExtensionEmpty
	}
	for list := l.Objects; len(list) > 0; { // each iteration uses at least four octets
		o, size := packet.NextObject(list)
		if size == 0 {
			return ObjectMalformed
		}
		for _, b := range list[packet.ObjectHeaderLen+len(o.Payload) : size] {
			if b != 0 {
				return ObjectPadding
			}
		}
		if o.Class == class && !l.take(&o) {
			return ObjectContent
		}
		list = list[size:]
	}
	return Accepted
}

// take reads an object of the Long-haul CNP's class. It returns false if the content doesn't match the type.
func (l *LongHaul) take(o *packet.Object) bool {
	switch o.CType {
	case packet.CTypeTimestamp:
		if len(o.Payload) != packet.TimestampLen {
			return false
		}
		if !l.HasTimestamp {
			l.Timestamp, l.HasTimestamp = binary.BigEndian.Uint64(o.Payload), true
		}
	case packet.CTypeDevice:
		if !utf8.Valid(o.Payload) {
			return false
		}
		if l.Device == nil {
			l.Device = o.Payload
		}
	case packet.CTypePath:
		if l.Path == nil {
			l.Path = o.Payload
		}
	}
	return true
}
