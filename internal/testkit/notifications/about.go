package notifications

// about is a field's description and its source: a section, or a decision W1 to W19 of docs/decisions.md.
type about struct{ field, from string }

const (
	ibta   = "IBTA A17"
	fast   = "draft-xiao-fast-cnp"
	tian   = "draft-tian"
	xz     = "draft-xz-ppfc 3, W8"
	byW7   = "draft-xiao-proxy 4, W7"
	rfc791 = "RFC 791 3.1"
	ioam   = "RFC 9197 4.4.1"
	qbb    = "IEEE 802.1Q 36.2"
)

// hexadecimal are the fields whose values are shown in hexadecimal; unsaid are those whose octets or bits need no value.
var (
	hexadecimal = names("eth.type", "vlan1.tpid", "vlan2.tpid", "bth.opcode", "bth.pkey", "fastcnp.type", "ioam.tracetype", "macc.opcode")
	unsaid      = names("ip.tos", "ip.version_ihl", "ip.flags_offset", "ip.checksum", "ipv6.version_class_label", "udp.checksum", "vlan1.tci",
		"vlan2.tci", "bth.flags", "icrc", "icmpv6.checksum", "extension.checksum", "extension.version_reserved", "longhaul.action_flags",
		"ppfc.flags_pt", "proxy.version_level", "ioam.lengths", "pfc.enabled", "object.padding", "ip.id")
)

func names(all ...string) map[string]bool {
	set := map[string]bool{}
	for _, n := range all {
		set[n] = true
	}
	return set
}

// abouts are by field name, or by kind and name if a format has its own rule.
var abouts = map[string]about{
	"eth.dst":         {"destination", "W14"},
	"eth.src":         {"source", "W14"},
	"eth.type":        {"EtherType", "IEEE 802.3"},
	"eth.padding":     {"padding to 60 octets", "IEEE 802.3 3.2.8"},
	"vlan1.tpid":      {"TPID of the outer tag", "IEEE 802.1Q, W14"},
	"vlan1.tci":       {"PCP, DEI, VID", "W14"},
	"vlan2.tpid":      {"TPID of the inner tag", "IEEE 802.1Q, W14"},
	"vlan2.tci":       {"PCP, DEI, VID", "W14"},
	"pause/eth.dst":   {"destination: reserved, no bridge forwards it", "IEEE 802.3 31B.1"},
	"pause/eth.src":   {"source: the neighbour", "IEEE 802.3 31B.1"},
	"pfc/eth.dst":     {"destination: reserved, no bridge forwards it", "IEEE 802.1Q 36.1"},
	"pfc/eth.src":     {"source: the neighbour", "IEEE 802.1Q 36.1"},
	"ip.version_ihl":  {"Version, IHL", rfc791},
	"ip.tos":          {"DSCP, ECN", "RFC 2474 3, RFC 3168 5"},
	"ip.dscp":         {"DSCP", "W14"},
	"ip.ecn":          {"ECN", "W14"},
	"ip.len":          {"Total Length, octets", rfc791},
	"ip.id":           {"Identification", "RFC 6864 4.1, W14"},
	"ip.flags_offset": {"Flags, Fragment Offset", "W14"},
	"ip.ttl":          {"Time to Live", "W14"},
	"ip.proto":        {"Protocol", rfc791},
	"ip.checksum":     {"Header Checksum", "RFC 1071 1"},
	"ip.src":          {"Source Address: the gateway", "W6"},
	"ip.dst":          {"Destination Address: the sender", "W6"},

	"standard-cnp/ip.src":       {"Source Address: the receiver", "W6"},
	"proxy-notification/ip.dst": {"Destination Address: the proxy", "draft-xiao-proxy 5"},

	"ipv6.version_class_label": {"Version, Traffic Class, Flow Label", "RFC 8200 3"},
	"ipv6.plen":                {"Payload Length, octets", "RFC 8200 3"},
	"ipv6.nxt":                 {"Next Header", "RFC 8200 3"},
	"ipv6.hlim":                {"Hop Limit", "W14"},

	"udp.srcport":  {"Source Port", "W14"},
	"udp.dstport":  {"Destination Port: RoCEv2", "IBTA A17"},
	"udp.length":   {"Length, octets", "RFC 768"},
	"udp.checksum": {"Checksum", "W14"},

	"proxy-notification/udp.dstport":  {"Destination Port: TBD1", "draft-xiao-proxy 4, W9"},
	"proxy-notification/udp.checksum": {"Checksum", "RFC 768, RFC 8200 8.1, W14"},

	"bth.opcode":        {"OpCode: CNP", ibta},
	"bth.se_m_pad_tver": {"SE, MigReq, PadCount, TVer", tian + " 6.2.3"},
	"bth.pkey":          {"Partition Key: the default one", tian + " 6.2.3"},
	"bth.flags":         {"FECN, BECN, E or P, reserved", tian + " 6.2.1"},
	"bth.fecn":          {"FECN", ibta},
	"bth.becn":          {"BECN", ibta},
	"bth.extension":     {"E or P", "W1, W2"},
	"bth.a_reserved":    {"AckReq, reserved", tian + " 6.2.3"},
	"bth.psn":           {"PSN", tian + " 6.2.3"},
	"cnp.reserved":      {"reserved", "draft-xiao-fast-cnp 3, figure 2, W3"},
	"icrc":              {"ICRC, little-endian", "IBTA A17, W4"},
	"bth.destqp":        {"DestQP", ibta},

	"fast-cnp/bth.destqp":      {"DestQP", fast + " 4"},
	"long-haul-cnp/bth.destqp": {"DestQP", tian + " 6.2.3"},
	"ppfc/bth.destqp":          {"DestQP", "W15"},

	"dstopts.nxt":       {"Next Header", "RFC 8200 4.6"},
	"dstopts.len":       {"Hdr Ext Len: 8 octets each, less 1", "RFC 8200 4.6"},
	"dstopts.padding":   {"padding", "RFC 8200 4.2, W10"},
	"fastcnp.type":      {"Option Type: act 10, chg 0", fast + " 4, 6, W9"},
	"fastcnp.len":       {"Opt Data Len, octets", fast + " 4, W5"},
	"fastcnp.dst":       {"Destination IPv6 address of the data packet", fast + " 4, figure 3"},
	"fastcnp.reserved":  {"Reserved", fast + " 4, figure 4"},
	"fastcnp.ioam_type": {"IOAM Opt-Type", fast + " 4, figure 4"},
	"ioam.namespace":    {"Namespace-ID", ioam},
	"ioam.lengths":      {"NodeLen, Flags, RemainingLen", ioam},
	"ioam.nodelen":      {"NodeLen", ioam},
	"ioam.flags":        {"Flags", ioam},
	"ioam.remaininglen": {"RemainingLen", ioam},
	"ioam.tracetype":    {"IOAM Trace-Type", ioam},
	"ioam.reserved":     {"Reserved", ioam},
	"ioam.node_data":    {"node data list", "RFC 9197 4.4.2"},

	"icmpv6.type":           {"Type: TBD1", tian + " 6.1, 10.1, W9"},
	"icmpv6.code":           {"Code", tian + " 10.2"},
	"icmpv6.checksum":       {"Checksum, with pseudo-header", tian + " 6.1, RFC 4443 2.3"},
	"longhaul.level":        {"Congestion Level, 0 to 255", tian + " 6.1"},
	"longhaul.action_flags": {"Action Flags", tian + " 6.1"},
	"longhaul.action":       {"action", tian + " 5.5.1, 6.1"},
	"longhaul.reserved":     {"reserved", tian + " 6.1"},
	"longhaul.parameter":    {"Action Parameter", tian + " 6.1"},
	"longhaul.source_qp":    {"Source QP Number, 24 bits in 32", tian + " 6.1"},
	"longhaul.metric_type":  {"Metric Type", tian + " 6.1, 10.4"},
	"longhaul.metric_value": {"Congestion Metric Value", tian + " 6.1, 10.4"},
	"extension.checksum":    {"Checksum over header and objects", tian + " 6.1.1, RFC 4884 7"},
	"extension.version":     {"Version", tian + " 6.1.1"},
	"extension.reserved":    {"Reserved", tian + " 6.1.1"},
	"object.length":         {"Length, octets", tian + " 6.1.1, RFC 4884 8"},
	"object.class":          {"Class-Num: TBD2", tian + " 10.3, W9"},
	"object.ctype":          {"C-Type", tian + " 10.3"},
	"object.payload":        {"payload", tian + " 6.1.1"},
	"object.padding":        {"zeros to a multiple of 4 octets", tian + " 6.1.1"},

	"extension.version_reserved": {"Version, Reserved", tian + " 6.1.1"},

	"ppfc.dst":      {"Congested Destination IP", xz},
	"ppfc.flags_pt": {"Flags, PT", xz},
	"ppfc.flags":    {"Flags", xz},
	"ppfc.pt":       {"PT", xz},
	"ppfc.port":     {"Congestion Port", xz},
	"ppfc.reserved": {"Reserved", xz},
	"ppfc.duration": {"Pause Duration", xz},

	"proxy.version_level": {"IP version, Congestion Level", byW7},
	"proxy.version":       {"IP version of the five-tuple", byW7},
	"proxy.r":             {"reserved", byW7},
	"proxy.level":         {"Congestion Level, 0 to 7", byW7},
	"proxy.protocol":      {"protocol", byW7},
	"proxy.reserved":      {"reserved", byW7},
	"proxy.srcport":       {"source port", byW7},
	"proxy.dstport":       {"destination port", byW7},
	"proxy.src":           {"source address: the sender", byW7},
	"proxy.dst":           {"destination address: the receiver", byW7},
	"proxy.invoking":      {"invoking packet, from its IP header", byW7},

	"macc.opcode":  {"MAC control opcode", "IEEE 802.3 31A"},
	"macc.time":    {"pause_time", "IEEE 802.3 31B.2"},
	"pfc.reserved": {"reserved", qbb},
	"pfc.enabled":  {"class_enable_vector: bit n for priority n", qbb},
}
