package notifications

// longHaul are the 12 octets common to both formats: level, action and parameter, Source QP Number, metric.
func longHaul(level, action, parameter, qp, metricType, metric, note string) []Field {
	return []Field{
		{Hex: level, Name: "long_haul_cnp.level"},
		{Hex: action, Name: "long_haul_cnp.action_flags"},
		{Name: "long_haul_cnp.action", Mask: 0xc0, Note: "0 Notify, 1 Pause, 2 Rate Reduce, 3 Resume"},
		{Name: "long_haul_cnp.reserved", Mask: 0x3f},
		{Hex: parameter, Name: "long_haul_cnp.parameter", Note: note},
		{Hex: qp, Name: "long_haul_cnp.source_qp"},
		{Hex: metricType, Name: "long_haul_cnp.metric_type"},
		{Hex: metric, Name: "long_haul_cnp.metric_value"},
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
		{Hex: ctype, Name: "object.c_type"},
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

var ofLongHaul = map[string]about{
	"long-haul-cnp/bth.dest_qp":  {"DestQP", tian + " 6.2.3"},
	"icmpv6.type":                {"Type: TBD1", tian + " 6.1, 10.1, W9"},
	"icmpv6.code":                {"Code", tian + " 10.2"},
	"icmpv6.checksum":            {"Checksum, with pseudo-header", tian + " 6.1, RFC 4443 2.3"},
	"long_haul_cnp.level":        {"Congestion Level, 0 to 255", tian + " 6.1"},
	"long_haul_cnp.action_flags": {"Action Flags", tian + " 6.1"},
	"long_haul_cnp.action":       {"action", tian + " 5.5.1, 6.1"},
	"long_haul_cnp.reserved":     {"reserved", tian + " 6.1"},
	"long_haul_cnp.parameter":    {"Action Parameter", tian + " 6.1"},
	"long_haul_cnp.source_qp":    {"Source QP Number, 24 bits in 32", tian + " 6.1"},
	"long_haul_cnp.metric_type":  {"Metric Type", tian + " 6.1, 10.4"},
	"long_haul_cnp.metric_value": {"Congestion Metric Value", tian + " 6.1, 10.4"},
	"extension.checksum":         {"Checksum over header and objects", tian + " 6.1.1, RFC 4884 7"},
	"extension.version":          {"Version", tian + " 6.1.1"},
	"extension.reserved":         {"Reserved", tian + " 6.1.1"},
	"object.length":              {"Length, octets", tian + " 6.1.1, RFC 4884 8"},
	"object.class":               {"Class-Num: TBD2", tian + " 10.3, W9"},
	"object.c_type":              {"C-Type", tian + " 10.3"},
	"object.payload":             {"payload", tian + " 6.1.1"},
	"object.padding":             {"zeros to a multiple of 4 octets", tian + " 6.1.1"},
	"extension.version_reserved": {"Version, Reserved", tian + " 6.1.1"},
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
			{Hex: "ff ff", Name: "bth.p_key", Value: 0xffff},
			{Hex: "7f", Name: "bth.flags", Note: "BECN, E; reserved bits"},
			{Hex: "00 00 64", Name: "bth.dest_qp", Value: 100},
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
