package dataplane_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestDomain: notifications come in by a WAN port from known sources only, and leave by one to members only; standard CNPs and all
// that is no notification pass. Without a domain everything does.
func TestDomain(t *testing.T) {
	prefixes := func(p ...string) (out []netip.Prefix) {
		for _, s := range p {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	const inside, outside = sender6, receiver6
	for _, c := range []struct {
		name                string
		domain              *dataplane.Domain
		in, out             bool // whether a notification from sender6 to receiver6 passes from the WAN, and to it
		countsIn, countsOut counters.Counter
	}{
		{"no domain", nil, true, true, 0, 0},
		{"an empty domain", stage.NewDomain(nil, nil, false), false, false, counters.DroppedDomainIn, counters.DroppedDomainOut},
		{"known source", stage.NewDomain(nil, prefixes("fd00:18::/32"), false), true, false, 0, counters.DroppedDomainOut},
		{"member", stage.NewDomain(prefixes("fd00:19::1/128"), nil, false), false, true, counters.DroppedDomainIn, 0},
		{"the destination's no source", stage.NewDomain(prefixes("fd00:18::/32"), prefixes("fd00:19::/32"), false), false, false,
			counters.DroppedDomainIn, counters.DroppedDomainOut},
		{"observing", stage.NewDomain(nil, nil, true), true, true, counters.DomainObservedFirst, counters.DomainObservedFirst + 1},
		{"both", stage.NewDomain(prefixes("::/0"), prefixes("::/0"), false), true, true, 0, 0},
	} {
		for name, frame := range notCauses(t) {
			notification := name != "ACK" && name != "READ request" && name != "standard-cnp"
			for port := range 2 {
				passes, reason := c.out, c.countsOut
				if port == wan {
					passes, reason = c.in, c.countsIn
				}
				passes = passes || !notification
				p := testkit.DefaultPolicy(2)
				p.Domain = c.domain
				r := testkit.New(t, testkit.Setup{Policy: p})
				r.Inject(t, port, frame)
				r.Drain()
				if n := len(r.Take(port ^ 1)); (n == 1) != passes {
					t.Errorf("%s: %s from port %d: %d passed", c.name, name, port, n)
				}
				if notification && reason != 0 && r.Count(port, reason) != 1 {
					t.Errorf("%s: %s from port %d isn't counted as %v", c.name, name, port, counters.Catalogue[reason])
				}
				if name == "standard-cnp" && r.Count(port, counters.ReceivedFirst+counters.Counter(packet.StandardCNP)) != 1 {
					t.Errorf("%s: a standard CNP isn't counted", c.name)
				}
				r.Close(t)
			}
		}
	}
	var p packet.Parsed
	for name, frame := range notCauses(t) {
		packet.Parse(frame, uint32(len(frame)), &p)
		if p.Src != address(inside) || p.Dst != address(outside) {
			t.Errorf("%s is from %v to %v", name, p.Src.Netip(), p.Dst.Netip())
		}
	}
}

// TestDomainKnowsImpostors: an IPv4-mapped source in IPv6 isn't the known IPv4 source, nor such a destination the IPv4 member.
func TestDomainKnowsImpostors(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for port, reason := range map[int]counters.Counter{fabric: counters.DroppedDomainOut, wan: counters.DroppedDomainIn} {
		for name, frame := range notCauses(t) {
			if name == "ACK" || name == "READ request" || name == "standard-cnp" {
				continue
			}
			for _, at := range []int{22, 38} {
				changed := bytes.Clone(frame)
				packet.AddrFrom(netip.MustParseAddr("10.0.0.254")).Put16(changed[at:])
				p := testkit.DefaultPolicy(2)
				p.Domain = stage.NewDomain(all, all, false)
				r := testkit.New(t, testkit.Setup{Policy: p})
				r.Inject(t, port, changed)
				r.Drain()
				if len(r.Take(port^1)) != 0 || r.Count(port, reason) != 1 {
					t.Errorf("%s with an impostor at octet %d passes from port %d", name, at, port)
				}
				r.Close(t)
			}
		}
	}
}
