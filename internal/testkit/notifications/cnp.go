package notifications

// The code points are the defaults: option type 0x9E, ICMPv6 type 200, class 247, UDP port 1022.

// All are the golden notifications.
var All = gather(standardCNPs, fastCNPs, longHaulCNPs, icmpv6CNPs, ppfcs, proxyNotifications, macControls)

func gather(lists ...[]Golden) []Golden {
	var all []Golden
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
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
			{Hex: "e4 1d 2d ab 2b c2", Name: "eth.dst", Value: "e4:1d:2d:ab:2b:c2"},
			{Hex: "7c fe 90 64 3b 32", Name: "eth.src", Value: "7c:fe:90:64:3b:32"},
			{Hex: "08 00", Name: "eth.type"},
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
			{Hex: "0a 00 11 01", Name: "ip.src", Value: addr("0a 00 11 01")},
			{Hex: "0a 00 12 01", Name: "ip.dst", Value: addr("0a 00 12 01")},
			{Hex: "00 00", Name: "udp.srcport", Value: 0},
			{Hex: "12 b7", Name: "udp.dstport", Value: 4791},
			{Hex: "00 28", Name: "udp.length", Value: 40},
			{Hex: "00 00", Name: "udp.checksum", Value: 0},
			{Hex: "81", Name: "bth.opcode", Value: 0x81},
			{Hex: "00", Name: "bth.se_m_pad_tver", Value: 0},
			{Hex: "ff ff", Name: "bth.pkey", Value: 0xffff},
			{Hex: "40", Name: "bth.flags", Value: 0x40, Note: "BECN"},
			{Hex: "00 01 18", Name: "bth.destqp", Value: 280},
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
			{Hex: "9e", Name: "fastcnp.type", Value: 0x9e, Note: "10 0 11110"},
			{Hex: "10", Name: "fastcnp.len", Value: 16, Note: "option 1"},
			{Hex: receiver6, Name: "fastcnp.dst", Value: addr(receiver6), Note: "the data packet's destination"},
			{Hex: "01 02 00 00", Name: "dstopts.padding", Value: "01020000", Note: "PadN"},
		},
		udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("6e a9 74 f2"))},
	{Name: "fast-cnp-qinq-icrc-without-extension-headers", Kind: "fast-cnp", Extension: "none",
		ICRC: "without-extension-headers", Fields: join(
			eth("86 dd", "88 a8 60 0a", "81 00 60 64"),
			ipv6("00 40", "3c", gateway6, sender6),
			destination("02", "24 octets"),
			[]Field{
				{Hex: "9e", Name: "fastcnp.type", Value: 0x9e},
				{Hex: "10", Name: "fastcnp.len", Value: 16, Note: "option 1"},
				{Hex: receiver6, Name: "fastcnp.dst", Value: addr(receiver6)},
				{Hex: "01 02 00 00", Name: "dstopts.padding", Value: "01020000", Note: "PadN"},
			},
			udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("d6 b8 82 e3"))},
	{Name: "fast-cnp-preallocated-trace", Kind: "fast-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd"),
		ipv6("00 58", "3c", gateway6, sender6), // 88 = 48 + 40
		destination("05", "48 octets = 2 + 2 + 4 + 24 + 16"),
		[]Field{
			{Hex: "01 00", Name: "dstopts.padding", Value: "0100", Note: "PadN(2): the option on a 4-octet boundary"},
			{Hex: "9e", Name: "fastcnp.type", Value: 0x9e},
			{Hex: "2a", Name: "fastcnp.len", Value: 42, Note: "option 2: 2 + 24 + 16"},
			{Hex: "00", Name: "fastcnp.reserved", Value: 0},
			{Hex: "00", Name: "fastcnp.ioam_type", Value: 0, Note: "pre-allocated trace"},
			{Hex: "00 01", Name: "ioam.namespace", Value: 1},
			{Hex: "10 02", Name: "ioam.lengths"},
			{Name: "ioam.nodelen", Mask: 0xf800, Value: 2, Note: "words a node"},
			{Name: "ioam.flags", Mask: 0x0780, Value: 0},
			{Name: "ioam.remaininglen", Mask: 0x007f, Value: 2, Note: "words free"},
			{Hex: "c0 00 00", Name: "ioam.tracetype", Note: "hop limit and node ID; interface IDs"},
			{Hex: "00", Name: "ioam.reserved", Value: 0},
			{Hex: "00 00 00 00 00 00 00 00", Name: "ioam.node_data", Value: "0000000000000000", Note: "free"},
			{Hex: "3e 00 00 07 00 01 00 02", Name: "ioam.node_data", Value: "3e00000700010002",
				Note: "hop limit 62, node 7, from interface 1 to 2"},
			{Hex: receiver6, Name: "fastcnp.dst", Value: addr(receiver6)},
		},
		udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("fe ee 76 69"))},
	{Name: "fast-cnp-incremental-trace", Kind: "fast-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd", "81 00 60 64"),
		ipv6("00 58", "3c", gateway6, sender6),
		destination("05", "48 octets = 2 + 2 + 4 + 20 + 16 + 4"),
		[]Field{
			{Hex: "01 00", Name: "dstopts.padding", Value: "0100"},
			{Hex: "9e", Name: "fastcnp.type", Value: 0x9e},
			{Hex: "26", Name: "fastcnp.len", Value: 38, Note: "option 2: 2 + 20 + 16"},
			{Hex: "00", Name: "fastcnp.reserved", Value: 0},
			{Hex: "01", Name: "fastcnp.ioam_type", Value: 1, Note: "incremental trace"},
			{Hex: "00 00", Name: "ioam.namespace", Value: 0},
			{Hex: "08 80", Name: "ioam.lengths"},
			{Name: "ioam.nodelen", Mask: 0xf800, Value: 1},
			{Name: "ioam.flags", Mask: 0x0780, Value: 1},
			{Name: "ioam.remaininglen", Mask: 0x007f, Value: 0},
			{Hex: "80 00 00", Name: "ioam.tracetype", Note: "hop limit and node ID"},
			{Hex: "00", Name: "ioam.reserved", Value: 0},
			{Hex: "3d 00 00 09  3e 00 00 08  3f 00 00 07", Name: "ioam.node_data", Value: "3d0000093e0000083f000007",
				Note: "three nodes, the last first"},
			{Hex: receiver6, Name: "fastcnp.dst", Value: addr(receiver6)},
			{Hex: "01 02 00 00", Name: "dstopts.padding", Value: "01020000", Note: "PadN to a multiple of 8"},
		},
		udp("00 28"), bth("40", "00 00 c8", ofReceiver), reserved, icrc("60 39 d0 f0"))},
	{Name: "fast-cnp-longest-trace", Kind: "fast-cnp", Extension: "none", ICRC: "as-sent", Fields: join(
		eth("86 dd", "88 a8 60 0a", "81 00 60 64"),
		ipv6("01 30", "3c", gateway6, sender6), // 304 = 264 + 40
		destination("20", "264 octets = 2 + 2 + 4 + 236 + 16 + 4"),
		[]Field{
			{Hex: "01 00", Name: "dstopts.padding", Value: "0100"},
			{Hex: "9e", Name: "fastcnp.type", Value: 0x9e},
			{Hex: "fe", Name: "fastcnp.len", Value: 254, Note: "option 2: 2 + 8 + 228 + 16"},
			{Hex: "00", Name: "fastcnp.reserved", Value: 0},
			{Hex: "00", Name: "fastcnp.ioam_type", Value: 0},
			{Hex: "00 01", Name: "ioam.namespace", Value: 1},
			{Hex: "18 00", Name: "ioam.lengths"},
			{Name: "ioam.nodelen", Mask: 0xf800, Value: 3},
			{Name: "ioam.flags", Mask: 0x0780, Value: 0},
			{Name: "ioam.remaininglen", Mask: 0x007f, Value: 0},
			{Hex: "e0 00 00", Name: "ioam.tracetype", Note: "hop limit and node ID, interface IDs, seconds"},
			{Hex: "00", Name: "ioam.reserved", Value: 0},
			{Hex: pattern(228), Name: "ioam.node_data", Value: pattern(228), Note: "nineteen nodes of twelve octets"},
			{Hex: receiver6, Name: "fastcnp.dst", Value: addr(receiver6)},
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
			{Hex: "9e", Name: "fastcnp.type", Value: 0x9e},
			{Hex: "10", Name: "fastcnp.len", Value: 16},
			{Hex: receiver6, Name: "fastcnp.dst", Value: addr(receiver6)},
			{Hex: "01 04 00 00 00 00", Name: "dstopts.padding", Value: "010400000000"},
		},
		udp("00 28"),
		[]Field{
			{Hex: "81", Name: "bth.opcode", Value: 0x81},
			{Hex: "40", Name: "bth.se_m_pad_tver", Value: 0x40, Note: "MigReq"},
			{Hex: "ff ff", Name: "bth.pkey", Value: 0xffff},
			{Hex: "5f", Name: "bth.flags", Note: "BECN; reserved bits"},
			{Hex: "00 00 c8", Name: "bth.destqp", Value: 200},
			{Hex: "7f", Name: "bth.a_reserved", Value: 0x7f, Note: "reserved bits"},
			{Hex: "00 00 00", Name: "bth.psn", Value: 0},
			{Hex: pattern(16), Name: "cnp.reserved", Value: pattern(16)},
		},
		icrc("20 11 28 e6"))},
}

const (
	percent      = "percent"
	microseconds = "microseconds"
	unused       = "unused"
)

// draft-tian 6.2, figure 5, with the numbers of section 7.
var longHaulCNPs = []Golden{
	{Name: "long-haul-cnp-v4", Kind: "long-haul-cnp", Extension: "long-haul", ICRC: "as-sent", Fields: join(
		eth("08 00"),
		ipv4("00 38", "11", "24 f7", gateway4, sender4), // 56 = 20 + 8 + 12 + 12 + 4
		udp("00 24"),
		bth("60", "00 00 64", ofSender),
		longHaul("b4", "80", "00 1e", "00 00 00 64", "01", "01 fb d0", percent), // step 4: 30 percent, 130000 KB
		icrc("14 73 8e d8"))},
	{Name: "long-haul-cnp-v6-tagged", Kind: "long-haul-cnp", Extension: "long-haul", ICRC: "as-sent", Fields: join(
		eth("86 dd", "81 00 60 64"),
		ipv6("00 24", "11", gateway6, sender6),
		udp("00 24"),
		bth("60", "00 00 64", ofSender),
		longHaul("14", "c0", "00 32", "00 00 00 64", "01", "00 75 30", percent), // step 8: Resume 50 percent, 30000 KB
		icrc("70 c7 29 c9"))},
	{Name: "long-haul-cnp-v4-notify-ecn-rate", Kind: "long-haul-cnp", Extension: "long-haul", ICRC: "as-sent", Fields: join(
		eth("08 00"),
		ipv4("00 38", "11", "24 f7", gateway4, sender4),
		udp("00 24"),
		bth("60", "00 00 64", ofSender),
		longHaul("01", "00", "00 00", "00 00 00 64", "03", "00 00 2a", unused), // 42 percent marked
		icrc("54 70 cb 26"))},
	{Name: "long-haul-cnp-v6-pause-growth", Kind: "long-haul-cnp", Extension: "long-haul", ICRC: "as-sent", Fields: join(
		eth("86 dd"),
		ipv6("00 24", "11", gateway6, sender6),
		udp("00 24"),
		bth("60", "ab cd ef", ofSender),
		longHaul("ff", "40", "ff ff", "00 ab cd ef", "02", "ff ff ff", microseconds), // the longest pause, the largest metric
		icrc("0c ea 5f 99"))},
	// draft-tian 6.1.1, figures 3 and 4.
	{Name: "long-haul-cnp-v4-objects", Kind: "long-haul-cnp", Extension: "long-haul", ICRC: "as-sent", Fields: join(
		eth("08 00"),
		ipv4("00 64", "11", "24 cb", gateway4, sender4), // 100 = 56 + 4 + 12 + 12 + 16
		udp("00 50"),
		bth("60", "00 00 64", ofSender),
		longHaul("b4", "80", "00 1e", "00 00 00 64", "04", "00 27 10", percent), // RTT 10000 microseconds
		extension("c7 9d"),
		object("00 0c", "f7", "01", "ec 3f 5a 80 80 00 00 00", "ec3f5a8080000000", "", "timestamp, half a second in the fraction"),
		object("00 0a", "f7", "02", "67 77 c3 bc 2d 31", "gwü-1", "00 00", "device identifier"),
		object("00 0d", "f7", "03", "00 01 02 03 04 05 06 07 08", "000102030405060708", "00 00 00", "path identifier"),
		icrc("6b 1d d8 5a"))},
	// Another vendor's: receivers ignore reserved bits.
	{Name: "long-haul-cnp-v4-reserved-bits", Kind: "long-haul-cnp", Extension: "long-haul", ICRC: "as-sent", Fields: join(
		eth("08 00"),
		ipv4("00 38", "11", "24 f7", gateway4, sender4),
		udp("00 24"),
		[]Field{
			{Hex: "81", Name: "bth.opcode", Value: 0x81},
			{Hex: "00", Name: "bth.se_m_pad_tver", Value: 0},
			{Hex: "ff ff", Name: "bth.pkey", Value: 0xffff},
			{Hex: "7f", Name: "bth.flags", Note: "BECN, E; reserved bits"},
			{Hex: "00 00 64", Name: "bth.destqp", Value: 100},
			{Hex: "7f", Name: "bth.a_reserved", Value: 0x7f, Note: "reserved bits"},
			{Hex: "00 00 00", Name: "bth.psn", Value: 0},
		},
		longHaul("b4", "bf", "00 1e", "00 00 00 64", "00", "00 00 07", percent), // metric of no known meaning
		icrc("be 6a 11 64"))},
}

// draft-tian 6.1, figure 2.
var icmpv6CNPs = []Golden{
	{Name: "long-haul-cnp-icmpv6", Kind: "long-haul-cnp-icmpv6", Extension: "none", Fields: join(
		eth("86 dd"),
		ipv6("00 10", "3a", gateway6, sender6), // 16 = 4 + 12
		icmpv6("29 5b"),
		longHaul("b4", "80", "00 1e", "00 00 00 64", "01", "01 fb d0", percent))},
	{Name: "long-haul-cnp-icmpv6-qinq-undisclosed", Kind: "long-haul-cnp-icmpv6", Extension: "none", Fields: join(
		eth("86 dd", "91 00 ef ff", "81 00 00 01"),
		ipv6("00 10", "3a", gateway6, sender6),
		icmpv6("0b 60"),
		longHaul("ff", "40", "01 f4", "00 ab cd ef", "00", "00 00 00", microseconds))},
	{Name: "long-haul-cnp-icmpv6-objects", Kind: "long-haul-cnp-icmpv6", Extension: "none", Fields: join(
		eth("86 dd"),
		ipv6("00 38", "3a", gateway6, sender6), // 56 = 16 + 4 + 12 + 8 + 8 + 8
		icmpv6("c4 e3"),
		longHaul("14", "c0", "00 00", "00 00 00 64", "01", "00 00 00", percent), // Resume without condition
		extension("a7 2a"),
		object("00 0c", "f7", "01", "ec 3f 5a 80 00 00 00 00", "ec3f5a8000000000", "", "timestamp"),
		object("00 05", "f7", "02", "41", "A", "00 00 00", "device identifier"),
		object("00 06", "f7", "fe", "be ef", "beef", "00 00", "a type for experiments: kept and skipped"),
		object("00 08", "02", "01", "0a 00 00 01", "0a000001", "", "a class of others: kept and skipped"))},
}
