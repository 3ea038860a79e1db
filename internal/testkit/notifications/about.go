package notifications

import "maps"

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
	hexadecimal = names("ethernet.type", "vlan1.tpid", "vlan2.tpid", "bth.opcode", "bth.p_key", "fast_cnp.option_type", "ioam.trace_type", "macc.opcode")
	unsaid      = names("ip.tos", "ip.version_ihl", "ip.flags_offset", "ip.checksum", "ipv6.version_class_label", "udp.checksum", "vlan1.tci",
		"vlan2.tci", "bth.flags", "icrc", "icmpv6.checksum", "extension.checksum", "extension.version_reserved", "long_haul_cnp.action_flags",
		"ppfc.flags_pt", "proxy.version_level", "ioam.lengths", "pfc.enabled", "object.padding", "ip.id")
)

func names(all ...string) map[string]bool {
	set := map[string]bool{}
	for _, n := range all {
		set[n] = true
	}
	return set
}

// abouts are by field name, or by kind and name if a format has its own rule. Each format's are beside its golden frames.
var abouts = func() map[string]about {
	all := map[string]about{}
	for _, some := range []map[string]about{headers, ofCNPs, ofLongHaul, ofPPFC, ofProxy, ofPauses} {
		maps.Copy(all, some)
	}
	return all
}()
