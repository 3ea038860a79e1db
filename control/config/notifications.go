package config

import (
	"fmt"
	"strings"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// notificationResolver resolves what is sent, and to whom.
type notificationResolver struct{ *resolver }

// kindSection is what a file says about a kind of notification, which may have several formats.
type kindSection struct {
	enabled *int
	formats []Format // the first one exists for each IP version that another one exists for
}

// kinds are the first so many kinds of package packet, by the sections that enable them. All checks of kinds follow from them and from their properties there.
func (r *notificationResolver) kinds(most int) (all []kindSection) {
	root := r.At(r.doc)
	for f := range Format(most) {
		enabled := root.Find(strings.TrimPrefix(root.Path+"."+f.Section()+".enabled", ".")).Value().(*int)
		if last := len(all) - 1; last >= 0 && all[last].enabled == enabled {
			all[last].formats = append(all[last].formats, f)
			continue
		}
		all = append(all, kindSection{enabled, []Format{f}})
	}
	return all
}

// resolve sets what is sent and what is in it.
func (r *notificationResolver) resolve(p *dataplane.Policy) {
	n := &r.doc.Notifications
	for _, k := range r.kinds(packet.SentNotifications) {
		for _, f := range k.formats {
			p.Who.Enabled[f], p.ObserveKind[f] = *k.enabled != kindOff, *k.enabled == kindObserved
		}
	}
	p.PerDestination, p.PerPort = ratelimit.PerSecond(n.Limits.PerDestination), ratelimit.PerSecond(n.Limits.PerPort)
	p.PerProxy = ratelimit.PerSecond(r.doc.Proxy.Limits.PerProxy)
	s, b, own := &n.StandardCNP, &p.Build, &p.Build.CNP
	b.DSCP, b.FlowPKey, b.ICRCExtensionHeaders = n.DSCP, n.FlowPKey, n.FastCNP.ICRCExtensionHeaders
	b.Code.FastCNPOption, b.Code.FastCNPTraceOption = n.FastCNP.OptionType, n.FastCNP.OptionType
	if r.Given(&n.FastCNP.TraceOptionType) {
		b.Code.FastCNPTraceOption = n.FastCNP.TraceOptionType
	}
	b.Code.LongHaulICMPv6Type, b.Code.ExtensionClass, b.Code.ProxyPort = n.LongHaulCNP.ICMPv6Type, n.LongHaulCNP.ExtensionClass, r.doc.Proxy.Port
	own.Own, own.Class, own.HopLimit, own.FromGateway = true, n.DSCP<<2|uint8(s.ECN), s.TTL, s.FromGateway
	own.OwnPort, own.Port = r.Given(&s.SourcePort), s.SourcePort
	p.Who.CNPFromGateway = s.FromGateway
	if x := &n.LongHaulCNP.Extensions; x.Timestamp || x.Device != "" || x.Path != "" {
		p.Extension, p.Timestamp = &cnpgen.Extension{Device: []byte(x.Device), Path: []byte(x.Path)}, x.Timestamp
	}
	r.checkICMPv6Type()
}

// checkSources checks that the gateway has an address for the notifications that it sends.
func (r *notificationResolver) checkSources(who *congestion.Policy) {
	g, n := &r.doc.Gateway, &r.doc.Notifications
	if !r.Valid(g) {
		return
	}
	has4, has6 := r.Given(&g.IPv4), r.Given(&g.IPv6) // even an invalid one shows the intention
	for _, k := range r.kinds(packet.SenderNotifications) {
		f := k.formats[0]
		switch both := f.Over(true); {
		case *k.enabled == kindOff || f.FromReceiver():
		case !both && !has6:
			r.Problem(k.enabled, "%s is for IPv6 only and needs a source address; set ipv6 in gateway (%s)", f, r.Position(g))
		case !has4 && !has6:
			r.Problem(k.enabled, "%s needs a source address; set ipv4, ipv6 or both in gateway (%s)", f, r.Position(g))
		}
	}
	if n.StandardCNP.Enabled != kindOff && n.StandardCNP.FromGateway && !has4 && !has6 {
		r.Problem(&n.StandardCNP.FromGateway, "a standard CNP from the gateway needs a source address; set ipv4, ipv6 or both in gateway (%s), or source to receiver",
			r.Position(g))
	}
	if !has4 && !has6 {
		return // formats that can't be sent are reported already
	}
	for i := range r.doc.Endpoints {
		r.warnUnreachable(&r.doc.Endpoints[i], who)
	}
}

// warnUnreachable warns of hosts that accept a format but can't get it, because the gateway lacks an address. By default, a standard CNP has the
// receiver's.
func (r *notificationResolver) warnUnreachable(s *endpointSection, who *congestion.Policy) {
	g, is4 := &r.doc.Gateway, s.Prefix.Addr().Is4()
	if !r.Valid(&s.Prefix) || is4 && r.Given(&g.IPv4) || !is4 && r.Given(&g.IPv6) {
		return
	}
	for i := range s.Accepts {
		if f := &s.Accepts[i]; r.Valid(f) && who.Enabled[*f] && (!f.FromReceiver() || who.CNPFromGateway) {
			family := "ipv6"
			if is4 {
				family = "ipv4"
			}
			r.Warn(f, "can't be sent to %s, as gateway.%s is not set", s.Prefix, family)
			return
		}
	}
}

// warnUnused warns of formats that are enabled but that no endpoint accepts, and of formats that endpoints accept but that are not enabled. Neither
// is ever sent.
func (r *notificationResolver) warnUnused() {
	granted := r.grants()
	for _, s := range r.kinds(packet.SenderNotifications) {
		if *s.enabled != kindOff {
			r.warnNotGranted(s, granted)
		} else {
			r.warnNotEnabled(s, granted)
		}
	}
}

// grants returns for each format the places in accepts that name it, in the order of the file.
func (r *notificationResolver) grants() (places [packet.SentNotifications][]*Format) {
	for i := range r.doc.Endpoints {
		accepts := r.doc.Endpoints[i].Accepts
		for j := range accepts {
			if item := &accepts[j]; r.Valid(item) {
				places[*item] = append(places[*item], item)
			}
		}
	}
	return places
}

func (r *notificationResolver) warnNotGranted(s kindSection, granted [packet.SentNotifications][]*Format) {
	var names []string
	for _, f := range s.formats {
		if len(granted[f]) > 0 {
			return
		}
		names = append(names, f.String())
	}
	r.Warn(s.enabled, "has no effect, as no endpoint accepts %[1]s; add %[1]s to accepts of the endpoints that understand it", yamldoc.Either(names))
}

// warnNotEnabled warns once per format, however many endpoints accept it.
func (r *notificationResolver) warnNotEnabled(s kindSection, granted [packet.SentNotifications][]*Format) {
	for _, f := range s.formats {
		if len(granted[f]) == 0 {
			continue
		}
		also := ""
		if more := len(granted[f]) - 1; more == 1 {
			also = " here and in 1 more entry"
		} else if more > 1 {
			also = fmt.Sprintf(" here and in %d more entries", more)
		}
		r.Warn(granted[f][0], "%s has no effect%s, as it is not enabled; set %s to true, or remove it here", f, also, r.At(s.enabled).Path)
	}
}

// icmpv6Range is a run of ICMPv6 types with one owner.
type icmpv6Range struct {
	first, last uint8
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
func (r *notificationResolver) checkICMPv6Type() {
	s := &r.doc.Notifications.LongHaulCNP.ICMPv6Type
	if !r.Valid(s) {
		return
	}
	for _, a := range assignedICMPv6 {
		if a.first <= *s && *s <= a.last {
			r.Problem(s, "%d is assigned to %s (%s); expected a type that IANA has not assigned: 162 to 254, of which 200 and 201 are for "+
				"private experimentation (RFC 4443)", *s, a.owner, a.rfc)
			return
		}
	}
	if *s == reservedICMPv6 {
		r.Warn(s, "%d is reserved for expansion of the range of types (RFC 4443 2.1); 200 and 201 are for private experimentation", *s)
	}
}
