package notifications

// ppfc are the two words after the congested destination.
func ppfc(flagsPT, port, reserved, duration string) []Field {
	return []Field{
		{Hex: flagsPT, Name: "ppfc.flags_pt"},
		{Name: "ppfc.flags", Mask: 0xfffc},
		{Name: "ppfc.pt", Mask: 0x0003, Note: "0 pause, 1 resume"},
		{Hex: port, Name: "ppfc.port"},
		{Hex: reserved, Name: "ppfc.reserved"},
		{Hex: duration, Name: "ppfc.duration_us", Note: "microseconds"},
	}
}

var ofPPFC = map[string]about{
	"ppfc/bth.dest_qp":           {"DestQP", "W15"},
	"ppfc.congested_destination": {"Congested Destination IP", xz},
	"ppfc.flags_pt":              {"Flags, PT", xz},
	"ppfc.flags":                 {"Flags", xz},
	"ppfc.pt":                    {"PT", xz},
	"ppfc.port":                  {"Congestion Port", xz},
	"ppfc.reserved":              {"Reserved", xz},
	"ppfc.duration_us":           {"Pause Duration", xz},
}

// draft-xz-ppfc 3. Over IPv4, the fields are as long as those of a Long-haul CNP, so one could be mistaken for the other.
var ppfcs = []Golden{
	{Name: "ppfc-v4-pause", Kind: "ppfc", Extension: "ppfc", ICRC: "as-sent", Fields: join(
		eth("08 00"),
		ipv4("00 38", "11", "24 f7", gateway4, sender4), // 56 = 20 + 8 + 12 + 12 + 4
		udp("00 24"),
		bth("60", "00 00 c8", ofReceiver),
		[]Field{{Hex: receiver4, Name: "ppfc.congested_destination", Value: addr(receiver4), Note: "the data packet's destination"}},
		ppfc("00 00", "00 02", "00 00", "01 f4"), // port 2, 500 microseconds
		icrc("84 f7 35 77"))},
	{Name: "ppfc-v6-resume-tagged", Kind: "ppfc", Extension: "ppfc", ICRC: "as-sent", Fields: join(
		eth("86 dd", "81 00 60 64"),
		ipv6("00 30", "11", gateway6, sender6), // 48 = 8 + 12 + 24 + 4
		udp("00 30"),
		bth("60", "00 00 c8", ofReceiver),
		[]Field{{Hex: receiver6, Name: "ppfc.congested_destination", Value: addr(receiver6)}},
		ppfc("00 01", "00 02", "00 00", "00 00"),
		icrc("c0 c0 92 60"))},
	{Name: "ppfc-v6-reserved-bits", Kind: "ppfc", Extension: "ppfc", ICRC: "as-sent", Fields: join(
		eth("86 dd"),
		ipv6("00 30", "11", gateway6, sender6),
		udp("00 30"),
		bth("7f", "00 00 c8", ofReceiver),
		[]Field{{Hex: receiver6, Name: "ppfc.congested_destination", Value: addr(receiver6)}},
		ppfc("ff fc", "ff ff", "ff ff", "ff ff"), // another vendor's: receivers ignore flags and reserved bits
		icrc("fc 82 ab c9"))},
}
