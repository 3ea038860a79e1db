package notifications

import (
	"fmt"
	"net/netip"
)

// The flow is that of draft-tian section 7: source QP 100 and destination QP 200 (0xC8), from 10.0.0.1 to 10.0.0.4. Its IPv6 counterpart
// goes from one data centre's prefix to the other's. The data frames go from 02:00:00:00:00:01 to 02:00:00:00:00:02.
const (
	gateway4  = "0a 00 00 fe"
	sender4   = "0a 00 00 01"
	receiver4 = "0a 00 00 04"
	proxy4    = "0a 00 00 fd"
	gateway6  = "20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 fe"
	sender6   = "20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 01"
	receiver6 = "20 01 0d b8 00 0b 00 00 00 00 00 00 00 00 00 04"
	proxy6    = "20 01 0d b8 00 0a 00 00 00 00 00 00 00 00 00 fd"
	zeros16   = "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
)

// join concatenates parts of a frame.
func join(parts ...[]Field) []Field {
	var all []Field
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func addr(s string) netip.Addr {
	a, ok := netip.AddrFromSlice(octets(s))
	if !ok {
		panic(s)
	}
	return a
}

// eth is the Ethernet header of a notification: each tag is the TPID and TCI of the data frame.
func eth(etherType string, tags ...string) []Field {
	all := []Field{
		{Hex: "02 00 00 00 00 01", Name: "eth.dst", Value: "02:00:00:00:00:01", Note: "the data frame's source"},
		{Hex: "02 00 00 00 00 02", Name: "eth.src", Value: "02:00:00:00:00:02", Note: "the data frame's destination"},
	}
	for i, t := range tags {
		all = append(all,
			Field{Hex: t[:5], Name: fmt.Sprintf("vlan%d.tpid", i+1)},
			Field{Hex: t[6:], Name: fmt.Sprintf("vlan%d.tci", i+1), Note: "priority and VID as in the data frame"})
	}
	return append(all, Field{Hex: etherType, Name: "eth.type"})
}

// ipv4 is the header of a notification: DSCP 48, Not-ECT, Identification 0, DF, TTL 64.
func ipv4(length, proto, checksum, src, dst string) []Field {
	return []Field{
		{Hex: "45", Name: "ip.version_ihl", Note: "version 4, 5 words"},
		{Hex: "c0", Name: "ip.tos"},
		{Name: "ip.dscp", Mask: 0xfc, Value: 48},
		{Name: "ip.ecn", Mask: 0x03, Value: 0, Note: "Not-ECT"},
		{Hex: length, Name: "ip.len"},
		{Hex: "00 00", Name: "ip.id", Value: 0},
		{Hex: "40 00", Name: "ip.flags_offset", Note: "DF"},
		{Hex: "40", Name: "ip.ttl", Value: 64},
		{Hex: proto, Name: "ip.proto"},
		{Hex: checksum, Name: "ip.checksum"},
		{Hex: src, Name: "ip.src", Value: addr(src)},
		{Hex: dst, Name: "ip.dst", Value: addr(dst)},
	}
}

// ipv6 is the header of a notification: DSCP 48, Not-ECT, flow label 0, hop limit 64.
func ipv6(length, next, src, dst string) []Field {
	return []Field{
		{Hex: "6c 00 00 00", Name: "ipv6.version_class_label", Note: "version 6, flow label 0"},
		{Name: "ip.dscp", Mask: 0x0fc00000, Value: 48},
		{Name: "ip.ecn", Mask: 0x00300000, Value: 0, Note: "Not-ECT"},
		{Hex: length, Name: "ipv6.plen"},
		{Hex: next, Name: "ipv6.nxt"},
		{Hex: "40", Name: "ipv6.hlim", Value: 64},
		{Hex: src, Name: "ip.src", Value: addr(src)},
		{Hex: dst, Name: "ip.dst", Value: addr(dst)},
	}
}

// udp is the header of a RoCEv2 notification: source port 52769, which Linux assigns to the flow's QP pair, and no checksum.
func udp(length string) []Field {
	return []Field{
		{Hex: "ce 21", Name: "udp.srcport", Value: 52769, Note: "as the data packet"},
		{Hex: "12 b7", Name: "udp.dstport", Value: 4791},
		{Hex: length, Name: "udp.length"},
		{Hex: "00 00", Name: "udp.checksum", Value: 0, Note: "none"},
	}
}

// bth is the BTH of a CNP, with the two parts that differ: flags and DestQP.
func bth(flags, destQP, note string) []Field {
	return []Field{
		{Hex: "81", Name: "bth.opcode", Value: 0x81},
		{Hex: "00", Name: "bth.se_m_pad_tver", Value: 0},
		{Hex: "ff ff", Name: "bth.pkey", Value: 0xffff},
		{Hex: flags, Name: "bth.flags"},
		{Name: "bth.fecn", Mask: 0x80, Value: 0},
		{Name: "bth.becn", Mask: 0x40, Value: 1},
		{Name: "bth.extension", Mask: 0x20, Note: "draft-tian's E, draft-xz's P"},
		{Hex: destQP, Name: "bth.destqp", Note: note},
		{Hex: "00", Name: "bth.a_reserved", Value: 0},
		{Hex: "00 00 00", Name: "bth.psn", Value: 0},
	}
}

// reserved follows the BTH of a standard CNP and of a Fast CNP.
var reserved = []Field{{Hex: zeros16, Name: "cnp.reserved", Value: "00000000000000000000000000000000"}}

func icrc(octets string) []Field {
	return []Field{{Hex: octets, Name: "icrc", Note: "the least significant octet first"}}
}

const (
	ofSender   = "the sender's QP"
	ofReceiver = "the receiver's QP, as the data packet"
)

// longHaul are the 12 octets common to both formats: level, action and parameter, Source QP Number, metric.
func longHaul(level, action, parameter, qp, metricType, metric, note string) []Field {
	return []Field{
		{Hex: level, Name: "longhaul.level"},
		{Hex: action, Name: "longhaul.action_flags"},
		{Name: "longhaul.action", Mask: 0xc0, Note: "0 Notify, 1 Pause, 2 Rate Reduce, 3 Resume"},
		{Name: "longhaul.reserved", Mask: 0x3f},
		{Hex: parameter, Name: "longhaul.parameter", Note: note},
		{Hex: qp, Name: "longhaul.source_qp"},
		{Hex: metricType, Name: "longhaul.metric_type"},
		{Hex: metric, Name: "longhaul.metric_value"},
	}
}

// extension is the header of an extension structure.
func extension(checksum string) []Field {
	return []Field{
		{Hex: "20 00", Name: "extension.version_reserved"},
		{Name: "extension.version", Mask: 0xf000, Value: 2},
		{Name: "extension.reserved", Mask: 0x0fff, Value: 0},
		{Hex: checksum, Name: "extension.checksum"},
	}
}

// object is an Extension Object; padding follows its payload.
func object(length, class, ctype, payload string, value any, padding, note string) []Field {
	all := []Field{
		{Hex: length, Name: "object.length", Note: "header and payload, unpadded"},
		{Hex: class, Name: "object.class"},
		{Hex: ctype, Name: "object.ctype"},
		{Hex: payload, Name: "object.payload", Value: value, Note: note},
	}
	if padding != "" {
		all = append(all, Field{Hex: padding, Name: "object.padding"})
	}
	return all
}

// icmpv6 is the header of a Long-haul CNP in ICMPv6 format.
func icmpv6(checksum string) []Field {
	return []Field{
		{Hex: "c8", Name: "icmpv6.type", Value: 200},
		{Hex: "00", Name: "icmpv6.code", Value: 0, Note: "flow level"},
		{Hex: checksum, Name: "icmpv6.checksum"},
	}
}

// destination is the Destination Options header of a Fast CNP up to the option.
func destination(length, note string) []Field {
	return []Field{
		{Hex: "11", Name: "dstopts.nxt", Value: 17},
		{Hex: length, Name: "dstopts.len", Note: note},
	}
}

// ppfc are the two words after the congested destination.
func ppfc(flagsPT, port, reserved, duration string) []Field {
	return []Field{
		{Hex: flagsPT, Name: "ppfc.flags_pt"},
		{Name: "ppfc.flags", Mask: 0xfffc},
		{Name: "ppfc.pt", Mask: 0x0003, Note: "0 pause, 1 resume"},
		{Hex: port, Name: "ppfc.port"},
		{Hex: reserved, Name: "ppfc.reserved"},
		{Hex: duration, Name: "ppfc.duration", Note: "microseconds"},
	}
}

// proxied are the five-tuple and the level.
func proxied(first, src, dst string) []Field {
	return []Field{
		{Hex: first, Name: "proxy.version_level"},
		{Name: "proxy.version", Mask: 0xf0},
		{Name: "proxy.r", Mask: 0x08, Value: 0},
		{Name: "proxy.level", Mask: 0x07},
		{Hex: "11", Name: "proxy.protocol", Value: 17},
		{Hex: "00 00", Name: "proxy.reserved", Value: 0},
		{Hex: "ce 21", Name: "proxy.srcport", Value: 52769},
		{Hex: "12 b7", Name: "proxy.dstport", Value: 4791},
		{Hex: src, Name: "proxy.src", Value: addr(src)},
		{Hex: dst, Name: "proxy.dst", Value: addr(dst)},
	}
}

// pattern is n octets that count up from 0.
func pattern(n int) string {
	s := ""
	for i := range n {
		s += fmt.Sprintf("%02x", byte(i))
	}
	return s
}
