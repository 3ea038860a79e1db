package ospfapi

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv2"
	"github.com/cnpgate/cnpgate/proxy"
)

// origin is the origin of senders learned here.
const origin = "ospf"

const (
	maxPrefixes = proxy.MaxSenders // of all LSAs; an LSA beyond is ignored
	maxRouters  = 1 << 16          // that can be reached; others don't count
	maxOwn      = 1 << 16          // LSAs of this ospfd that the client keeps in mind
)

// database has the prefixes of other routers' extended prefix LSAs, and which routers are reachable.
type database struct {
	lsas      map[key][]entry
	prefixes  int // of all LSAs
	reachable map[netip.Addr]bool
	own       map[uint32]bool         // opaque IDs of AS scope that this ospfd has originated
	accepts   func(netip.Prefix) bool // others need no place
}

// key identifies an LSA: a router may use the same ID in several areas and at several interfaces.
type key struct {
	router  netip.Addr
	lsaType uint8
	opaque  uint32
	where   [2]netip.Addr
}

// compare orders the LSAs of a router by which counts first if several have the same prefix: the smaller scope, then the smaller opaque ID (RFC 7684
// 2.1), then the place, so that the order is always the same.
func (k key) compare(other key) int {
	return cmp.Or(k.router.Compare(other.router), cmp.Compare(k.lsaType, other.lsaType), cmp.Compare(k.opaque, other.opaque),
		k.where[0].Compare(other.where[0]), k.where[1].Compare(other.where[1]))
}

// entry is a prefix of an LSA, and its proxy: the zero Addr if it has none.
type entry struct {
	prefix netip.Prefix
	proxy  netip.Addr
}

func newDatabase(accepts func(netip.Prefix) bool) *database {
	return &database{accepts: accepts, lsas: map[key][]entry{}, reachable: map[netip.Addr]bool{}, own: map[uint32]bool{}}
}

// effect is what a change of the LSDB led to.
type effect uint8

const (
	nothing effect = iota
	changed        // senders may have changed
	lost           // ospfd no longer has an LSA of its own
	full           // the LSA is ignored: there are too many prefixes
)

// update adds or replaces an LSA, or removes it. An error says why an LSA is ignored; what an earlier version of it said goes, too.
func (d *database) update(c *change, present bool) (effect, error) {
	l := &c.lsa
	if !ospfv2.IsExtendedPrefix(l) {
		return nothing, nil
	}
	present = present && !l.Flushed()
	if c.originated {
		return d.updateOwn(l, present), nil
	}
	k := key{l.Router, ospfv2.Type(l), ospfv2.OpaqueID(l), c.where}
	before := d.lsas[k]
	d.prefixes -= len(before)
	delete(d.lsas, k)
	if !present {
		return changed, nil
	}
	decoded, err := ospfv2.Decode(l.Body)
	if err != nil {
		return changed, err
	}
	all := d.entries(l, &decoded)
	if d.prefixes+len(all) > maxPrefixes {
		return full, nil
	}
	if len(all) > 0 {
		d.lsas[k] = all
		d.prefixes += len(all)
	}
	return changed, nil
}

// updateOwn notes an LSA that the gateway's ospfd has originated: the gateway learns nothing from it.
func (d *database) updateOwn(l *ospf.LSA, present bool) effect {
	id := ospfv2.OpaqueID(l)
	switch {
	case ospfv2.Type(l) != ospfv2.ASScope:
	case present && len(d.own) < maxOwn:
		d.own[id] = true
	case present:
	case d.own[id]:
		delete(d.own, id)
		return lost
	}
	return nothing
}

// entries are the accepted prefixes of an LSA; of one that is repeated the first counts (RFC 7684 2.1).
func (d *database) entries(l *ospf.LSA, decoded *ospfv2.LSA) []entry {
	all := make([]entry, 0, len(decoded.Prefixes))
	seen := make(map[netip.Prefix]bool, len(decoded.Prefixes))
	for i := range decoded.Prefixes {
		p := &decoded.Prefixes[i]
		if seen[p.Prefix] || !d.accepts(p.Prefix) {
			continue
		}
		seen[p.Prefix] = true
		e := entry{prefix: p.Prefix}
		if address, ok := p.Proxy(l.Router, true); ok && advertise.Usable(p.Prefix, address) {
			e.proxy = address
		}
		all = append(all, e)
	}
	return all
}

// reach notes which routers became reachable and unreachable.
func (d *database) reach(added, removed []netip.Addr) {
	for _, r := range added {
		if len(d.reachable) < maxRouters {
			d.reachable[r] = true
		}
	}
	for _, r := range removed {
		delete(d.reachable, r)
	}
}

// senders returns the senders with a proxy, in the order of their prefixes. An LSA of a router that can't be reached doesn't count (RFC 5250 5).
func (d *database) senders(best advertise.Best) []proxy.Sender {
	keys := make([]key, 0, len(d.lsas))
	for k := range d.lsas {
		if d.reachable[k.router] {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, key.compare)
	type of struct {
		router netip.Addr
		prefix netip.Prefix
	}
	decided := map[of]bool{}
	for _, k := range keys {
		for _, e := range d.lsas[k] {
			if decided[of{k.router, e.prefix}] {
				continue
			}
			decided[of{k.router, e.prefix}] = true
			if e.proxy.IsValid() {
				best.Offer(e.prefix, e.proxy)
			}
		}
	}
	return best.Senders(origin)
}

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
