package notifications

var ofPauses = map[string]about{
	"ethernet.padding":           {"padding to 60 octets", "IEEE 802.3 3.2.8"},
	"pause/ethernet.destination": {"destination: reserved, no bridge forwards it", "IEEE 802.3 31B.1"},
	"pause/ethernet.source":      {"source: the neighbour", "IEEE 802.3 31B.1"},
	"pfc/ethernet.destination":   {"destination: reserved, no bridge forwards it", "IEEE 802.1Q 36.1"},
	"pfc/ethernet.source":        {"source: the neighbour", "IEEE 802.1Q 36.1"},
	"macc.opcode":                {"MAC control opcode", "IEEE 802.3 31A"},
	"pause.time_quanta":          {"pause_time", "IEEE 802.3 31B.2"},
	"pfc.reserved":               {"reserved", qbb},
	"pfc.enabled":                {"class_enable_vector: bit n for priority n", qbb},
}

// macControl is the Ethernet header of a PAUSE or PFC frame.
var macControl = []Field{
	{Hex: "01 80 c2 00 00 01", Name: "ethernet.destination", Value: "01:80:c2:00:00:01"},
	{Hex: "02 00 00 00 00 02", Name: "ethernet.source", Value: "02:00:00:00:00:02"},
	{Hex: "88 08", Name: "ethernet.type", Value: 0x8808},
}

// IEEE 802.3 31B and IEEE 802.1Qbb.
var macControls = []Golden{
	{Name: "pause", Kind: "pause", Extension: "none", Fields: join(macControl, []Field{
		{Hex: "00 01", Name: "macc.opcode", Value: 1},
		{Hex: "ff ff", Name: "pause.time_quanta", Value: 65535, Note: "quanta of 512 bit times"},
		{Hex: "0000000000000000000000000000000000000000 0000000000000000000000000000000000000000 0000", Name: "ethernet.padding",
			Value: "000000000000000000000000000000000000000000000000000000000000000000000000000000000000"},
	})},
	{Name: "pfc", Kind: "pfc", Extension: "none", Fields: join(macControl, []Field{
		{Hex: "01 01", Name: "macc.opcode", Value: 0x101},
		{Hex: "00", Name: "pfc.reserved", Value: 0},
		{Hex: "18", Name: "pfc.enabled", Value: 0x18, Note: "priorities 3 and 4"},
		{Hex: "00 00", Name: "pfc.time0_quanta", Value: 0},
		{Hex: "00 00", Name: "pfc.time1_quanta", Value: 0},
		{Hex: "00 00", Name: "pfc.time2_quanta", Value: 0},
		{Hex: "ff ff", Name: "pfc.time3_quanta", Value: 65535, Note: "quanta of 512 bit times"},
		{Hex: "00 00", Name: "pfc.time4_quanta", Value: 0, Note: "may go on"},
		{Hex: "00 00", Name: "pfc.time5_quanta", Value: 0},
		{Hex: "00 00", Name: "pfc.time6_quanta", Value: 0},
		{Hex: "00 00", Name: "pfc.time7_quanta", Value: 0},
		{Hex: "0000000000000000000000000000000000000000000000000000", Name: "ethernet.padding",
			Value: "0000000000000000000000000000000000000000000000000000"},
	})},
}
