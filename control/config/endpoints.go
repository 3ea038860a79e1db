package config

import (
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// accepted is a format that an endpoint accepts.
type accepted = scalar[int, acceptedKind]

type acceptedKind struct{ choiceKind }

func (k acceptedKind) parse(text string, rl rule) (int, error) {
	if text == packet.ProxyNotification.String() {
		return 0, fmt.Errorf("%s goes to a proxy, not to a host; list these hosts with their proxy in proxy.senders; here, expected %s", text, k.expects(rl))
	}
	return k.choiceKind.parse(text, rl)
}

func (r *report) resolveEndpoints(s *list[endpointSection]) []Endpoint {
	var endpoints []Endpoint
	seen := map[netip.Prefix]place{}
	for i := range s.Items {
		e := &s.Items[i]
		if e.Prefix.valid {
			unique(r, seen, e.Prefix.V, e.Prefix.place, "the prefix "+e.Prefix.V.String())
		}
		endpoints = append(endpoints, Endpoint{e.Prefix.V, r.resolveAccepts(e)})
	}
	return endpoints
}

func (r *report) resolveAccepts(s *endpointSection) []Format {
	var formats []Format
	seen := map[Format]place{}
	for i := range s.Accepts.Items {
		item := &s.Accepts.Items[i]
		if !item.valid {
			continue
		}
		f := Format(item.V)
		unique(r, seen, f, item.place, f.String())
		if (f == packet.FastCNP || f == packet.LongHaulCNPICMPv6) && s.Prefix.valid && s.Prefix.V.Addr().Is4() {
			r.problem(item.place, "%s is for IPv6 only, but the prefix is %s (%s); remove it here", f, s.Prefix.V, r.position(s.Prefix.place))
		}
		r.checkSharedBit(f, item.place, seen)
		formats = append(formats, f)
	}
	return formats
}

// checkSharedBit refuses a pair of formats that an endpoint can't distinguish: the E bit of Long-haul CNP and the P bit of PPFC are the
// same bit.
func (r *report) checkSharedBit(f Format, at place, seen map[Format]place) {
	for _, pair := range [][2]Format{{packet.LongHaulCNP, packet.PPFC}, {packet.PPFC, packet.LongHaulCNP}} {
		if other, both := seen[pair[1]]; both && f == pair[0] {
			r.problem(at, "%s and %s (%s) can't go together, both use the same bit of the BTH; keep the one these hosts understand",
				f, pair[1], r.position(other))
		}
	}
}
