package advertise_test

import (
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/proxy"
)

// TestBestFull: of more prefixes than the map takes, the first ones are learned, and these may still change their proxy.
func TestBestFull(t *testing.T) {
	high, low := netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("192.0.2.8")
	b := advertise.Best{Accepts: func(netip.Prefix) bool { return true }}
	host := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
	}
	for i := range proxy.MaxSenders {
		b.Offer(host(i), high)
	}
	if b.Full {
		t.Error("full with as many prefixes as the map takes")
	}
	b.Offer(host(proxy.MaxSenders), high)
	b.Offer(host(0), low)
	all := b.Senders("ospf")
	if !b.Full || len(all) != proxy.MaxSenders || all[0].Proxy != low {
		t.Errorf("full: %v, %d senders, the first one %v", b.Full, len(all), all[0])
	}
	if _, err := proxy.NewSenders(all...); err != nil {
		t.Error(err)
	}
}
