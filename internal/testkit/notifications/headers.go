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
		{Hex: "02 00 00 00 00 01", Name: "ethernet.destination", Value: "02:00:00:00:00:01", Note: "the data frame's source"},
		{Hex: "02 00 00 00 00 02", Name: "ethernet.source", Value: "02:00:00:00:00:02", Note: "the data frame's destination"},
	}
	for i, t := range tags {
		all = append(all,
			Field{Hex: t[:5], Name: fmt.Sprintf("vlan%d.tpid", i+1)},
			Field{Hex: t[6:], Name: fmt.Sprintf("vlan%d.tci", i+1), Note: "priority and VID as in the data frame"})
	}
	return append(all, Field{Hex: etherType, Name: "ethernet.type"})
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
		{Hex: src, Name: "ip.source", Value: addr(src)},
		{Hex: dst, Name: "ip.destination", Value: addr(dst)},
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
		{Hex: "40", Name: "ip.hop_limit", Value: 64},
		{Hex: src, Name: "ip.source", Value: addr(src)},
		{Hex: dst, Name: "ip.destination", Value: addr(dst)},
	}
}

// udp is the header of a RoCEv2 notification: source port 52769, which Linux assigns to the flow's QP pair, and no checksum.
func udp(length string) []Field {
	return []Field{
		{Hex: "ce 21", Name: "udp.source_port", Value: 52769, Note: "as the data packet"},
		{Hex: "12 b7", Name: "udp.destination_port", Value: 4791},
		{Hex: length, Name: "udp.length"},
		{Hex: "00 00", Name: "udp.checksum", Value: 0, Note: "none"},
	}
}

// bth is the BTH of a CNP, with the two parts that differ: flags and DestQP.
func bth(flags, destQP, note string) []Field {
	return []Field{
		{Hex: "81", Name: "bth.opcode", Value: 0x81},
		{Hex: "00", Name: "bth.se_m_pad_tver", Value: 0},
		{Hex: "ff ff", Name: "bth.p_key", Value: 0xffff},
		{Hex: flags, Name: "bth.flags"},
		{Name: "bth.fecn", Mask: 0x80, Value: 0},
		{Name: "bth.becn", Mask: 0x40, Value: 1},
		{Name: "bth.extension_bit", Mask: 0x20, Note: "draft-tian's E, draft-xz's P"},
		{Hex: destQP, Name: "bth.dest_qp", Note: note},
		{Hex: "00", Name: "bth.a_reserved", Value: 0},
		{Hex: "00 00 00", Name: "bth.psn", Value: 0},
	}
}

func icrc(octets string) []Field {
	return []Field{{Hex: octets, Name: "icrc", Note: "the least significant octet first"}}
}

const (
	ofSender   = "the sender's QP"
	ofReceiver = "the receiver's QP, as the data packet"
)

// pattern is n octets that count up from 0.
func pattern(n int) string {
	s := ""
	for i := range n {
		s += fmt.Sprintf("%02x", byte(i))
	}
	return s
}

var headers = map[string]about{
	"ethernet.destination":     {"destination", "W14"},
	"ethernet.source":          {"source", "W14"},
	"ethernet.type":            {"EtherType", "IEEE 802.3"},
	"vlan1.tpid":               {"TPID of the outer tag", "IEEE 802.1Q, W14"},
	"vlan1.tci":                {"PCP, DEI, VID", "W14"},
	"vlan2.tpid":               {"TPID of the inner tag", "IEEE 802.1Q, W14"},
	"vlan2.tci":                {"PCP, DEI, VID", "W14"},
	"ip.version_ihl":           {"Version, IHL", rfc791},
	"ip.tos":                   {"DSCP, ECN", "RFC 2474 3, RFC 3168 5"},
	"ip.dscp":                  {"DSCP", "W14"},
	"ip.ecn":                   {"ECN", "W14"},
	"ip.len":                   {"Total Length, octets", rfc791},
	"ip.id":                    {"Identification", "RFC 6864 4.1, W14"},
	"ip.flags_offset":          {"Flags, Fragment Offset", "W14"},
	"ip.ttl":                   {"Time to Live", "W14"},
	"ip.proto":                 {"Protocol", rfc791},
	"ip.checksum":              {"Header Checksum", "RFC 1071 1"},
	"ip.source":                {"Source Address: the gateway", "W6"},
	"ip.destination":           {"Destination Address: the sender", "W6"},
	"ipv6.version_class_label": {"Version, Traffic Class, Flow Label", "RFC 8200 3"},
	"ipv6.plen":                {"Payload Length, octets", "RFC 8200 3"},
	"ipv6.nxt":                 {"Next Header", "RFC 8200 3"},
	"ip.hop_limit":             {"Hop Limit", "W14"},
	"udp.source_port":          {"Source Port", "W14"},
	"udp.destination_port":     {"Destination Port: RoCEv2", "IBTA A17"},
	"udp.length":               {"Length, octets", "RFC 768"},
	"udp.checksum":             {"Checksum", "W14"},
	"bth.opcode":               {"OpCode: CNP", ibta},
	"bth.se_m_pad_tver":        {"SE, MigReq, PadCount, TVer", tian + " 6.2.3"},
	"bth.p_key":                {"Partition Key: the default one", tian + " 6.2.3"},
	"bth.flags":                {"FECN, BECN, E or P, reserved", tian + " 6.2.1"},
	"bth.fecn":                 {"FECN", ibta},
	"bth.becn":                 {"BECN", ibta},
	"bth.extension_bit":        {"E or P", "W1, W2"},
	"bth.a_reserved":           {"AckReq, reserved", tian + " 6.2.3"},
	"bth.psn":                  {"PSN", tian + " 6.2.3"},
	"icrc":                     {"ICRC, little-endian", "IBTA A17, W4"},
	"bth.dest_qp":              {"DestQP", ibta},
}
