package decode

// Source is where a field of the layer is specified: a section of a draft or a standard.
func (l *Layer) Source(f *Field) string {
	if s, ok := sources[l.Key+"."+f.Key]; ok {
		return s
	}
	if l.Key == "ip" && l.Name == "IPv4" {
		return "RFC 791 3.1"
	}
	return sources[l.Key]
}

// sources are by layer, or by layer and field where a field has its own rule.
var sources = map[string]string{
	"ethernet": "IEEE 802.3 3.2",
	"vlan":     "IEEE 802.1Q 9.6",
	"ip":       "RFC 8200 3",
	"ip.dscp":  "RFC 2474 3",
	"ip.ecn":   "RFC 3168 5",
	"udp":      "RFC 768",
	"icmpv6":   "draft-tian-ccwg-long-haul-cnp 6.1",

	"icmpv6.checksum": "RFC 4443 2.3",

	"bth":                "IBTA 9.2, Annex A17",
	"bth.p_key":          "draft-tian-ccwg-long-haul-cnp 6.2.3",
	"bth.extension_bit":  "draft-tian-ccwg-long-haul-cnp 6.2.1, draft-xz-rtgwg-ppfc-rocv2 3",
	"bth.dest_qp":        "IBTA Annex A17, draft-tian-ccwg-long-haul-cnp 6.2.3",
	"bth.flags_reserved": "IBTA 9.2",
	"cnp":                "IBTA Annex A17",
	"icrc":               "IBTA Annex A17.3",

	"fast_cnp": "draft-xiao-rtgwg-rocev2-fast-cnp 4",
	"ioam":     "RFC 9197 4.4.1",

	"long_haul_cnp":              "draft-tian-ccwg-long-haul-cnp 6.2.4",
	"long_haul_cnp.level":        "draft-tian-ccwg-long-haul-cnp 5.5.1, 6.2.4",
	"long_haul_cnp.action":       "draft-tian-ccwg-long-haul-cnp 5.5.1, 6.2.4",
	"long_haul_cnp.parameter":    "draft-tian-ccwg-long-haul-cnp 5.5.1, 6.2.4",
	"long_haul_cnp.source_qp":    "draft-tian-ccwg-long-haul-cnp 6.2.4",
	"long_haul_cnp.metric_type":  "draft-tian-ccwg-long-haul-cnp 6.2.4",
	"long_haul_cnp.metric_value": "draft-tian-ccwg-long-haul-cnp 6.2.4",
	"extension":                  "RFC 4884 7",
	"objects":                    "draft-tian-ccwg-long-haul-cnp 6.1.1, RFC 4884 8",

	"ppfc":            "draft-xz-rtgwg-ppfc-rocv2 3",
	"proxy":           "draft-xiao-rtgwg-proxy-congestion-notification 4",
	"invoking_packet": "draft-xiao-rtgwg-proxy-congestion-notification 4",
	"pause":           "IEEE 802.3 31B",
	"pfc":             "IEEE 802.1Q 36",
}
