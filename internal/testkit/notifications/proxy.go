package notifications

// proxied are the five-tuple and the level.
func proxied(first, src, dst string) []Field {
	return []Field{
		{Hex: first, Name: "proxy.version_level"},
		{Name: "proxy.ip_version", Mask: 0xf0},
		{Name: "proxy.r", Mask: 0x08, Value: 0},
		{Name: "proxy.level", Mask: 0x07},
		{Hex: "11", Name: "proxy.protocol", Value: 17},
		{Hex: "00 00", Name: "proxy.reserved", Value: 0},
		{Hex: "ce 21", Name: "proxy.source_port", Value: 52769},
		{Hex: "12 b7", Name: "proxy.destination_port", Value: 4791},
		{Hex: src, Name: "proxy.source", Value: addr(src)},
		{Hex: dst, Name: "proxy.destination", Value: addr(dst)},
	}
}

var ofProxy = map[string]about{
	"proxy-notification/ip.destination":       {"Destination Address: the proxy", "draft-xiao-proxy 5"},
	"proxy-notification/udp.destination_port": {"Destination Port: TBD1", "draft-xiao-proxy 4, W9"},
	"proxy-notification/udp.checksum":         {"Checksum", "RFC 768, RFC 8200 8.1, W14"},
	"proxy.version_level":                     {"IP version, Congestion Level", byW7},
	"proxy.ip_version":                        {"IP version of the five-tuple", byW7},
	"proxy.r":                                 {"reserved", byW7},
	"proxy.level":                             {"Congestion Level, 0 to 7", byW7},
	"proxy.protocol":                          {"protocol", byW7},
	"proxy.reserved":                          {"reserved", byW7},
	"proxy.source_port":                       {"source port", byW7},
	"proxy.destination_port":                  {"destination port", byW7},
	"proxy.source":                            {"source address: the sender", byW7},
	"proxy.destination":                       {"destination address: the receiver", byW7},
	"proxy.invoking_packet":                   {"invoking packet, from its IP header", byW7},
}

// proxyUDP is the UDP header of a notification to a proxy.
func proxyUDP(length, checksum string) []Field {
	return []Field{
		{Hex: "ce 21", Name: "udp.source_port", Value: 52769, Note: "as the data packet"},
		{Hex: "03 fe", Name: "udp.destination_port", Value: 1022},
		{Hex: length, Name: "udp.length"},
		{Hex: checksum, Name: "udp.checksum"},
	}
}

// The data packets that met congestion: RC SEND First, destination QP 200, PSN 7. Over IPv4 the header checksum is unchanged.
const (
	data4Header = "45 02 00 3c 12 34 40 00 3f 11 00 00" + sender4 + receiver4 + "ce 21 12 b7 00 28 00 00" + dataBTH
	data4Long   = "45 02 04 14 12 34 40 00 3f 11 00 00" + sender4 + receiver4 + "ce 21 12 b7 04 00 00 00" + dataBTH // 1044 octets
	data6       = "60 21 23 45 00 28 11 3f" + sender6 + receiver6 + "ce 21 12 b7 00 28 00 00" + dataBTH             // 80 octets
	data6Long   = "60 21 23 45 05 f4 11 3f" + sender6 + receiver6 + "ce 21 12 b7 05 f4 00 00" + dataBTH             // 1564 octets
	dataBTH     = "00 40 ff ff 00 00 00 c8 00 00 00 07"
)

func invoking(octets, note string) []Field {
	return []Field{{Hex: octets, Name: "proxy.invoking_packet", Value: compact(octets), Note: note}}
}

// draft-xiao-proxy 4, figure 5.
var proxyNotifications = []Golden{
	{Name: "proxy-notification-v4", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("08 00"),
		ipv4("00 68", "11", "23 cb", gateway4, proxy4), // 104 = 20 + 8 + 16 + 60
		proxyUDP("00 54", "fc 9c"),
		proxied("45", sender4, receiver4), // level 5
		invoking(data4Header+pattern(16)+"69 63 72 63", "whole"))},
	{Name: "proxy-notification-v4-cut", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("08 00", "81 00 60 64"),
		ipv4("02 40", "11", "21 f3", gateway4, proxy4), // 576 = 20 + 8 + 16 + 532
		proxyUDP("02 2c", "1e 6a"),
		proxied("47", sender4, receiver4),
		invoking(data4Long+pattern(492), "cut at 576 octets"))},
	{Name: "proxy-notification-v6", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("86 dd"),
		ipv6("00 80", "11", gateway6, proxy6), // 128 = 8 + 40 + 80
		proxyUDP("00 80", "47 66"),
		proxied("65", sender6, receiver6), // level 5
		invoking(data6+pattern(16)+"69 63 72 63", "whole"))},
	{Name: "proxy-notification-v6-cut", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("86 dd", "88 a8 60 0a", "81 00 60 64"),
		ipv6("04 d8", "11", gateway6, proxy6), // 1240 = 8 + 40 + 1192
		proxyUDP("04 d8", "11 b7"),
		proxied("60", sender6, receiver6), // level 0
		invoking(data6Long+pattern(1132), "cut at 1280 octets"))},
	{Name: "proxy-notification-v4-about-v6", Kind: "proxy-notification", Extension: "none", Fields: join(
		eth("08 00"),
		ipv4("02 40", "11", "21 f3", gateway4, proxy4), // 576 = 20 + 8 + 40 + 508
		proxyUDP("02 2c", "13 a0"),
		proxied("61", sender6, receiver6),
		invoking(data6Long+pattern(448), "cut at 576 octets"))},
}

// compact formats the octets as a line of the listing.
func compact(s string) string { return hexOf(octets(s)) }
