package ospfapi

import (
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv2"
)

// prefixesPerLSA is how many prefixes an LSA announces. An LSA then has at most 1,300 octets; FRR's ospfd takes 1,500.
const prefixesPerLSA = 32

// announcement returns the LSAs that announce proxy as the proxy of prefixes, by opaque ID. The proxy's address comes with each prefix, as the Prefix
// Source Router Address (RFC 9084): the advertising router is the ospfd, and not the gateway.
func announcement(proxy netip.Addr, prefixes []netip.Prefix) (map[uint32][]byte, error) {
	all := map[uint32][]byte{}
	for first := 0; first < len(prefixes); first += prefixesPerLSA {
		var l ospfv2.LSA
		for _, p := range prefixes[first:min(first+prefixesPerLSA, len(prefixes))] {
			a := ospf.Attributes{Addresses: []netip.Addr{proxy}}
			a.SetP()
			l.Prefixes = append(l.Prefixes, ospfv2.Prefix{RouteType: ospfv2.Unspecified, Prefix: p, Attributes: a})
		}
		id := uint32(len(all) + 1)
		lsa, err := ospfv2.OpaqueLSA(id, &l)
		if err != nil {
			return nil, fmt.Errorf("announce: %w", err)
		}
		if all[id], err = originate(&lsa); err != nil {
			return nil, fmt.Errorf("announce: %w", err)
		}
	}
	return all, nil
}
