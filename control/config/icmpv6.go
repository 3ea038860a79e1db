package config

// icmpv6Range is a run of ICMPv6 types with one owner.
type icmpv6Range struct {
	first, last int64
	owner, rfc  string
}

// assignedICMPv6 are the informational ICMPv6 types (128 to 255) in IANA's registry "ICMPv6 'type' Numbers". A host would take a Long-haul
// CNP of such a type for a message of that protocol. Not listed: 200 and 201, for private experimentation, and 255, reserved (both RFC 4443
// 2.1); 162 to 199 and 202 to 254, unassigned.
var assignedICMPv6 = []icmpv6Range{
	{128, 129, "Echo", "RFC 4443"},
	{130, 132, "Multicast Listener Discovery", "RFC 2710"},
	{133, 134, "Router Discovery", "RFC 4861"},
	{135, 136, "Neighbor Discovery", "RFC 4861"},
	{137, 137, "Redirect", "RFC 4861"},
	{138, 138, "Router Renumbering", "RFC 2894"},
	{139, 140, "Node Information", "RFC 4620"},
	{141, 142, "Inverse Neighbor Discovery", "RFC 3122"},
	{143, 143, "Multicast Listener Discovery version 2", "RFC 3810"},
	{144, 147, "Mobile IPv6", "RFC 6275"},
	{148, 149, "Secure Neighbor Discovery", "RFC 3971"},
	{150, 150, "experimental mobility protocols", "RFC 4065"},
	{151, 153, "Multicast Router Discovery", "RFC 4286"},
	{154, 154, "Fast Handovers for Mobile IPv6", "RFC 5568"},
	{155, 155, "RPL", "RFC 6550"},
	{156, 156, "ILNPv6 Locator Update", "RFC 6743"},
	{157, 158, "Duplicate Address Detection of 6LoWPAN", "RFC 6775"},
	{159, 159, "MPL", "RFC 7731"},
	{160, 161, "Extended Echo", "RFC 8335"},
}

// reservedICMPv6 is reserved for expanding the range of types (RFC 4443 2.1).
const reservedICMPv6 = 255

// checkICMPv6Type refuses a type that has another meaning for every IPv6 host.
func (r *report) checkICMPv6Type(s *integer) {
	if !s.valid {
		return
	}
	for _, a := range assignedICMPv6 {
		if a.first <= s.V && s.V <= a.last {
			r.problem(s.place, "%d is assigned to %s (%s); expected a type that IANA has not assigned: 162 to 254, of which 200 and 201 are for "+
				"private experimentation (RFC 4443)", s.V, a.owner, a.rfc)
			return
		}
	}
	if s.V == reservedICMPv6 {
		r.warn(s.place, "%d is reserved for expansion of the range of types (RFC 4443 2.1); 200 and 201 are for private experimentation", s.V)
	}
}
