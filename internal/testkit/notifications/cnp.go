package notifications

// reserved follows the BTH of a standard CNP and of a Fast CNP.
var reserved = []Field{{Hex: zeros16, Name: "cnp.reserved", Value: "00000000000000000000000000000000"}}

// destination is the Destination Options header of a Fast CNP up to the option.
func destination(length, note string) []Field {
	return []Field{
		{Hex: "11", Name: "dstopts.nxt", Value: 17},
		{Hex: length, Name: "dstopts.len", Note: note},
	}
}

var ofCNPs = map[string]about{
	"standard-cnp/ip.source":         {"Source Address: the receiver", "W6"},
	"cnp.reserved":                   {"reserved", "draft-xiao-fast-cnp 3, figure 2, W3"},
	"fast-cnp/bth.dest_qp":           {"DestQP", fast + " 4"},
	"dstopts.nxt":                    {"Next Header", "RFC 8200 4.6"},
	"dstopts.len":                    {"Hdr Ext Len: 8 octets each, less 1", "RFC 8200 4.6"},
	"dstopts.padding":                {"padding", "RFC 8200 4.2, W10"},
	"fast_cnp.option_type":           {"Option Type: act 10, chg 0", fast + " 4, 6, W9"},
	"fast_cnp.option_length":         {"Opt Data Len, octets", fast + " 4, W5"},
	"fast_cnp.congested_destination": {"Destination IPv6 address of the data packet", fast + " 4, figure 3"},
	"fast_cnp.reserved":              {"Reserved", fast + " 4, figure 4"},
	"ioam.option_type":               {"IOAM Opt-Type", fast + " 4, figure 4"},
	"ioam.namespace_id":              {"Namespace-ID", ioam},
	"ioam.lengths":                   {"NodeLen, Flags, RemainingLen", ioam},
	"ioam.node_len":                  {"NodeLen", ioam},
	"ioam.flags":                     {"Flags", ioam},
	"ioam.remaining_len":             {"RemainingLen", ioam},
	"ioam.trace_type":                {"IOAM Trace-Type", ioam},
	"ioam.reserved":                  {"Reserved", ioam},
	"ioam.node_data":                 {"node data list", "RFC 9197 4.4.2"},
}

// IBTA Annex A17; draft-xiao-fast-cnp figure 2.
var standardCNPs = []Golden{
	{Name: "standard-cnp-v4", Kind: "standard-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("08 00"),
		ipv4("00 3c", "11", "25 ed", receiver4, sender4), // 60 = 20 + 8 + 12 + 16 + 4; as the receiver would send it
		udp("00 28"),
		bth("40", "00 00 64", ofSender), reserved, icrc("32 28 e9 ce"))},
	{Name: "standard-cnp-v6-tagged", Kind: "standard-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd", "81 00 60 64"),
		ipv6("00 28", "11", receiver6, sender6),
		udp("00 28"),
		bth("40", "00 00 64", ofSender), reserved, icrc("34 13 6b 68"))},
	{Name: "standard-cnp-connectx-4-lx", Kind: "standard-cnp", Extension: "none", ICRC: "as-sent",
		Origin: "captured on a ConnectX-4 Lx; published in the tests of scapy's contrib roce (test/contrib/roce.uts)",
		Fields: []Field{
			{Hex: "e4 1d 2d ab 2b c2", Name: "ethernet.destination", Value: "e4:1d:2d:ab:2b:c2"},
			{Hex: "7c fe 90 64 3b 32", Name: "ethernet.source", Value: "7c:fe:90:64:3b:32"},
			{Hex: "08 00", Name: "ethernet.type"},
			{Hex: "45", Name: "ip.version_ihl"},
			{Hex: "c2", Name: "ip.tos"},
			{Name: "ip.dscp", Mask: 0xfc, Value: 48},
			{Name: "ip.ecn", Mask: 0x03, Value: 2, Note: "ECT(0)"},
			{Hex: "00 3c", Name: "ip.len", Value: 60},
			{Hex: "71 8c", Name: "ip.id"},
			{Hex: "40 00", Name: "ip.flags_offset", Note: "DF"},
			{Hex: "40", Name: "ip.ttl", Value: 64},
			{Hex: "11", Name: "ip.proto", Value: 17},
			{Hex: "91 61", Name: "ip.checksum"},
			{Hex: "0a 00 11 01", Name: "ip.source", Value: addr("0a 00 11 01")},
			{Hex: "0a 00 12 01", Name: "ip.destination", Value: addr("0a 00 12 01")},
			{Hex: "00 00", Name: "udp.source_port", Value: 0},
			{Hex: "12 b7", Name: "udp.destination_port", Value: 4791},
			{Hex: "00 28", Name: "udp.length", Value: 40},
			{Hex: "00 00", Name: "udp.checksum", Value: 0},
			{Hex: "81", Name: "bth.opcode", Value: 0x81},
			{Hex: "00", Name: "bth.se_m_pad_tver", Value: 0},
			{Hex: "ff ff", Name: "bth.p_key", Value: 0xffff},
			{Hex: "40", Name: "bth.flags", Value: 0x40, Note: "BECN"},
			{Hex: "00 01 18", Name: "bth.dest_qp", Value: 280},
			{Hex: "00", Name: "bth.a_reserved", Value: 0},
			{Hex: "00 00 00", Name: "bth.psn", Value: 0},
			{Hex: zeros16, Name: "cnp.reserved", Value: "00000000000000000000000000000000"},
			{Hex: "82 fd 00 2a", Name: "icrc", Note: "the least significant octet first"},
		}},
}

// draft-xiao-fast-cnp figures 2 to 4.
var fastCNPs = []Golden{
	{Name: "fast-cnp", Kind: "fast-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd"),
		ipv6("00 40", "3c", gateway6, sender6), // 64 = 24 + 8 + 12 + 16 + 4; Destination Options
		destination("02", "24 octets = (2 + 1) x 8"),
		[]Field{
			{Hex: "9e", Name: "fast_cnp.option_type", Value: 0x9e, Note: "10 0 11110"},
			{Hex: "10", Name: "fast_cnp.option_length", Value: 16, Note: "option 1"},
			{Hex: receiver6, Name: "fast_cnp.congested_destination", Value: addr(receiver6), Note: "the data packet's destination"},
			{Hex: "01 02 00 00", Name: "dstopts.padding", Value: "01020000", Note: "PadN"},
		},
		udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("6e a9 74 f2"))},
	{Name: "fast-cnp-qinq-icrc-without-extension-headers", Kind: "fast-cnp", Extension: "none",
		ICRC: "without-extension-headers", Fields: join(
			eth("86 dd", "88 a8 60 0a", "81 00 60 64"),
			ipv6("00 40", "3c", gateway6, sender6),
			destination("02", "24 octets"),
			[]Field{
				{Hex: "9e", Name: "fast_cnp.option_type", Value: 0x9e},
				{Hex: "10", Name: "fast_cnp.option_length", Value: 16, Note: "option 1"},
				{Hex: receiver6, Name: "fast_cnp.congested_destination", Value: addr(receiver6)},
				{Hex: "01 02 00 00", Name: "dstopts.padding", Value: "01020000", Note: "PadN"},
			},
			udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("d6 b8 82 e3"))},
	{Name: "fast-cnp-preallocated-trace", Kind: "fast-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd"),
		ipv6("00 58", "3c", gateway6, sender6), // 88 = 48 + 40
		destination("05", "48 octets = 2 + 2 + 4 + 24 + 16"),
		[]Field{
			{Hex: "01 00", Name: "dstopts.padding", Value: "0100", Note: "PadN(2): the option on a 4-octet boundary"},
			{Hex: "9e", Name: "fast_cnp.option_type", Value: 0x9e},
			{Hex: "2a", Name: "fast_cnp.option_length", Value: 42, Note: "option 2: 2 + 24 + 16"},
			{Hex: "00", Name: "fast_cnp.reserved", Value: 0},
			{Hex: "00", Name: "ioam.option_type", Value: 0, Note: "pre-allocated trace"},
			{Hex: "00 01", Name: "ioam.namespace_id", Value: 1},
			{Hex: "10 02", Name: "ioam.lengths"},
			{Name: "ioam.node_len", Mask: 0xf800, Value: 2, Note: "words a node"},
			{Name: "ioam.flags", Mask: 0x0780, Value: 0},
			{Name: "ioam.remaining_len", Mask: 0x007f, Value: 2, Note: "words free"},
			{Hex: "c0 00 00", Name: "ioam.trace_type", Note: "hop limit and node ID; interface IDs"},
			{Hex: "00", Name: "ioam.reserved", Value: 0},
			{Hex: "00 00 00 00 00 00 00 00", Name: "ioam.node_data", Value: "0000000000000000", Note: "free"},
			{Hex: "3e 00 00 07 00 01 00 02", Name: "ioam.node_data", Value: "3e00000700010002",
				Note: "hop limit 62, node 7, from interface 1 to 2"},
			{Hex: receiver6, Name: "fast_cnp.congested_destination", Value: addr(receiver6)},
		},
		udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("fe ee 76 69"))},
	{Name: "fast-cnp-incremental-trace", Kind: "fast-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd", "81 00 60 64"),
		ipv6("00 58", "3c", gateway6, sender6),
		destination("05", "48 octets = 2 + 2 + 4 + 20 + 16 + 4"),
		[]Field{
			{Hex: "01 00", Name: "dstopts.padding", Value: "0100"},
			{Hex: "9e", Name: "fast_cnp.option_type", Value: 0x9e},
			{Hex: "26", Name: "fast_cnp.option_length", Value: 38, Note: "option 2: 2 + 20 + 16"},
			{Hex: "00", Name: "fast_cnp.reserved", Value: 0},
			{Hex: "01", Name: "ioam.option_type", Value: 1, Note: "incremental trace"},
			{Hex: "00 00", Name: "ioam.namespace_id", Value: 0},
			{Hex: "08 80", Name: "ioam.lengths"},
			{Name: "ioam.node_len", Mask: 0xf800, Value: 1},
			{Name: "ioam.flags", Mask: 0x0780, Value: 1},
			{Name: "ioam.remaining_len", Mask: 0x007f, Value: 0},
			{Hex: "80 00 00", Name: "ioam.trace_type", Note: "hop limit and node ID"},
			{Hex: "00", Name: "ioam.reserved", Value: 0},
			{Hex: "3d 00 00 09  3e 00 00 08  3f 00 00 07", Name: "ioam.node_data", Value: "3d0000093e0000083f000007",
				Note: "three nodes, the last first"},
			{Hex: receiver6, Name: "fast_cnp.congested_destination", Value: addr(receiver6)},
			{Hex: "01 02 00 00", Name: "dstopts.padding", Value: "01020000", Note: "PadN to a multiple of 8"},
		},
		udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("60 39 d0 f0"))},
	{Name: "fast-cnp-longest-trace", Kind: "fast-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd", "88 a8 60 0a", "81 00 60 64"),
		ipv6("01 30", "3c", gateway6, sender6), // 304 = 264 + 40
		destination("20", "264 octets = 2 + 2 + 4 + 236 + 16 + 4"),
		[]Field{
			{Hex: "01 00", Name: "dstopts.padding", Value: "0100"},
			{Hex: "9e", Name: "fast_cnp.option_type", Value: 0x9e},
			{Hex: "fe", Name: "fast_cnp.option_length", Value: 254, Note: "option 2: 2 + 8 + 228 + 16"},
			{Hex: "00", Name: "fast_cnp.reserved", Value: 0},
			{Hex: "00", Name: "ioam.option_type", Value: 0},
			{Hex: "00 01", Name: "ioam.namespace_id", Value: 1},
			{Hex: "18 00", Name: "ioam.lengths"},
			{Name: "ioam.node_len", Mask: 0xf800, Value: 3},
			{Name: "ioam.flags", Mask: 0x0780, Value: 0},
			{Name: "ioam.remaining_len", Mask: 0x007f, Value: 0},
			{Hex: "e0 00 00", Name: "ioam.trace_type", Note: "hop limit and node ID, interface IDs, seconds"},
			{Hex: "00", Name: "ioam.reserved", Value: 0},
			{Hex: pattern(228), Name: "ioam.node_data", Value: pattern(228), Note: "nineteen nodes of twelve octets"},
			{Hex: receiver6, Name: "fast_cnp.congested_destination", Value: addr(receiver6)},
			{Hex: "01 02 00 00", Name: "dstopts.padding", Value: "01020000"},
		},
		udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("d5 f6 f4 fe"))},
	// Another vendor's: the drafts prescribe no layout, and receivers ignore reserved bits.
	{Name: "fast-cnp-other-layout", Kind: "fast-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd"),
		ipv6("00 48", "3c", gateway6, sender6), // 72 = 32 + 40
		destination("03", "32 octets"),
		[]Field{
			{Hex: "00 00", Name: "dstopts.padding", Value: "0000", Note: "Pad1 twice"},
			{Hex: "1e 02 ab cd", Name: "dstopts.option", Value: "1e02abcd", Note: "an unknown option that may be skipped"},
			{Hex: "9e", Name: "fast_cnp.option_type", Value: 0x9e},
			{Hex: "10", Name: "fast_cnp.option_length", Value: 16},
			{Hex: receiver6, Name: "fast_cnp.congested_destination", Value: addr(receiver6)},
			{Hex: "01 04 00 00 00 00", Name: "dstopts.padding", Value: "010400000000"},
		},
		udp("00 28"),
		[]Field{
			{Hex: "81", Name: "bth.opcode", Value: 0x81},
			{Hex: "40", Name: "bth.se_m_pad_tver", Value: 0x40, Note: "MigReq"},
			{Hex: "ff ff", Name: "bth.p_key", Value: 0xffff},
			{Hex: "5f", Name: "bth.flags", Note: "BECN; reserved bits"},
			{Hex: "00 00 c8", Name: "bth.dest_qp", Value: 200},
			{Hex: "7f", Name: "bth.a_reserved", Value: 0x7f, Note: "reserved bits"},
			{Hex: "00 00 00", Name: "bth.psn", Value: 0},
			{Hex: pattern(16), Name: "cnp.reserved", Value: pattern(16)},
		},
		icrc("20 11 28 e6"))},
}
