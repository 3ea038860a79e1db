package advertise

import (
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/proxy"
)

// Usable reports whether the gateway can notify a proxy of a prefix. One that isn't usable must not spoil the others.
func Usable(prefix netip.Prefix, address netip.Addr) bool {
	_, err := proxy.NewSenders(proxy.Sender{Prefix: prefix, Proxy: address})
	return err == nil
}

// Best chooses a proxy for each prefix, of those that routers announce by an IGP: the lowest address, so that all gateways choose the same one.
type Best struct {
	Own     netip.Addr              // this gateway's address as a proxy, which is none for itself
	Accepts func(netip.Prefix) bool // whether a prefix may be learned
	Full    bool                    // prefixes beyond proxy.MaxSenders were offered, and are not learned
	proxies map[netip.Prefix]netip.Addr
}

// Offer notes that a prefix has a proxy, which is usable.
func (b *Best) Offer(prefix netip.Prefix, address netip.Addr) {
	if address == b.Own || !b.Accepts(prefix) {
		return
	}
	if b.proxies == nil {
		b.proxies = map[netip.Prefix]netip.Addr{}
	}
	other, ok := b.proxies[prefix]
	if !ok && len(b.proxies) == proxy.MaxSenders {
		b.Full = true
		return
	}
	if !ok || address.Less(other) {
		b.proxies[prefix] = address
	}
}

// Senders returns the senders with their proxies, in the order of their prefixes.
func (b *Best) Senders(origin string) []proxy.Sender {
	all := make([]proxy.Sender, 0, len(b.proxies))
	for prefix, address := range b.proxies {
		all = append(all, proxy.Sender{Prefix: prefix, Proxy: address, Origin: origin})
	}
	slices.SortFunc(all, func(a, b proxy.Sender) int { return a.Prefix.Compare(b.Prefix) })
	return all
}
