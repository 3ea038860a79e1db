//go:build !nobgp

package bgp

import (
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/advertise/nhc"
)

// announcement is what is announced with a prefix.
type announcement struct {
	nextHop   netip.Addr
	attribute string // value of the Next Hop Dependent Characteristics attribute
}

// announcements are those of the settings, by prefix.
func (s *Settings) announcements() (map[netip.Prefix]announcement, error) {
	all := map[netip.Prefix]announcement{}
	for _, p := range s.Announce {
		hop, proxy := s.NextHopIPv6, first(s.ProxyIPv6, s.ProxyIPv4)
		if p.Addr().Is4() {
			hop, proxy = s.NextHopIPv4, first(s.ProxyIPv4, s.ProxyIPv6)
		}
		a := nhc.Attribute{Family: nhc.FamilyOf(p), NextHop: hop, Characteristics: []nhc.Characteristic{nhc.PNC(s.Characteristic, proxy)}}
		value, err := a.Append(nil)
		if err != nil {
			return nil, err
		}
		all[p] = announcement{hop, string(value)}
	}
	return all, nil
}

// first is a if it is valid, else b: the proxy's address of the prefix's IP version, if there is one.
func first(a, b netip.Addr) netip.Addr {
	if a.IsValid() {
		return a
	}
	return b
}

// path is an announcement in GoBGP's form.
func (a *announcement) path(p netip.Prefix) (*apiutil.Path, error) {
	family := bgp.RF_IPv6_UC
	if p.Addr().Is4() {
		family = bgp.RF_IPv4_UC
	}
	nlri, err := bgp.NewIPAddrPrefix(p)
	if err != nil {
		return nil, err
	}
	hop, err := bgp.NewPathAttributeMpReachNLRI(family, []bgp.PathNLRI{{NLRI: nlri}}, a.nextHop)
	if err != nil {
		return nil, err
	}
	return &apiutil.Path{
		Family: family, Nlri: nlri, Age: time.Now().Unix(),
		Attrs: []bgp.PathAttributeInterface{
			bgp.NewPathAttributeOrigin(bgp.BGP_ORIGIN_ATTR_TYPE_IGP), hop,
			bgp.NewPathAttributeUnknown(nhc.Flags, nhc.Type, []byte(a.attribute)),
		},
	}, nil
}

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
