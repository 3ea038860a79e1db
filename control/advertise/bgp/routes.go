//go:build !nobgp

package bgp

import (
	"net/netip"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/advertise/nhc"
)

// bestRoutes are the best routes that peers have announced.
func bestRoutes(s *server.BgpServer) ([]advertise.Route, error) {
	var routes []advertise.Route
	for _, family := range []bgp.Family{bgp.RF_IPv4_UC, bgp.RF_IPv6_UC} {
		err := s.ListPath(apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: family}, func(nlri bgp.NLRI, paths []*apiutil.Path) {
			for _, path := range paths {
				if path.Best && path.PeerAddress.IsValid() { // without a peer, it is this gateway's own
					if r, ok := route(nlri, path); ok {
						routes = append(routes, r)
					}
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return routes, nil
}

// route reads a route from GoBGP's form.
func route(nlri bgp.NLRI, path *apiutil.Path) (advertise.Route, bool) {
	r := advertise.Route{Peer: path.PeerAddress}
	p, ok := nlri.(*bgp.IPAddrPrefix)
	if !ok {
		return r, false
	}
	r.Prefix = netip.PrefixFrom(p.Prefix.Addr().Unmap(), p.Prefix.Bits()).Masked()
	for _, a := range path.Attrs {
		switch a := a.(type) {
		case *bgp.PathAttributeNextHop:
			r.NextHop = a.Value
		case *bgp.PathAttributeMpReachNLRI:
			r.NextHop = a.Nexthop
		case *bgp.PathAttributeUnknown:
			if a.Type == nhc.Type {
				r.Attribute, r.Flags = append([]byte{}, a.Value...), uint8(a.Flags)
			}
		}
	}
	return r, r.Prefix.IsValid()
}
