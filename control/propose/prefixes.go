package propose

import (
	"net/netip"
	"slices"
)

// fewPrefixes is how many entries of endpoints an operator reads: with more hosts than that, prefixes take their place.
const fewPrefixes = 16

// prefixesOf are the prefixes of hosts, without any of the others: the hosts themselves, or, if they are many, the longest prefixes of a usual length that
// are few. If those would hold one of the others, or are still many, the list is of hosts.
func prefixesOf(hosts map[netip.Addr]uint64, others map[netip.Addr]uint64) []netip.Prefix {
	all := prefixesOfLength(hosts, 32, 128)
	for _, bits := range [][2]int{{32, 128}, {24, 64}, {16, 56}, {12, 48}} {
		p := prefixesOfLength(hosts, bits[0], bits[1])
		if len(p) <= fewPrefixes && !slices.ContainsFunc(p, func(p netip.Prefix) bool { return containsAny(p, hosts, others) }) {
			return p
		}
	}
	return all
}

// containsAny reports whether a prefix contains one of the others that is none of the hosts.
func containsAny(p netip.Prefix, hosts, others map[netip.Addr]uint64) bool {
	for other := range others {
		if hosts[other] == 0 && p.Contains(other) {
			return true
		}
	}
	return false
}

func prefixesOfLength(hosts map[netip.Addr]uint64, bits4, bits6 int) (all []netip.Prefix) {
	for host := range hosts {
		bits := bits6
		if host.Is4() {
			bits = bits4
		}
		all = append(all, netip.PrefixFrom(host, bits).Masked())
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}
