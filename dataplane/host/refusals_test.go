package host

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// in is a host in one of two scopes.
func in(n uint64) packet.Host {
	return packet.Host{Addr: packet.Addr{Lo: n >> 1}, Scope: packet.Scope(n & 1 << 16)}
}

// TestRefusals: a refusal ends after its time, other hosts have none, and in a set that is full the one that ends first makes way.
func TestRefusals(t *testing.T) {
	r := &Refusals{}
	keyhash.Spread(r.seed[:], 1)
	set, _ := r.place(in(1))
	var hosts []packet.Host // of one set
	for lo := uint64(1); len(hosts) <= refusalWays+1; lo++ {
		if at, _ := r.place(in(lo)); at == set {
			hosts = append(hosts, in(lo))
		}
	}
	if r.Has(hosts[0], 0) {
		t.Error("a host has refused the option that said nothing")
	}
	r.Refuse(hosts[0], 5*second)
	for _, c := range []struct {
		host packet.Host
		now  int64
		want bool
	}{{hosts[0], 5 * second, true}, {hosts[0], 304 * second, true}, {hosts[0], 305 * second, false}, {hosts[1], 5 * second, false}} {
		if got := r.Has(c.host, c.now); got != c.want {
			t.Errorf("host %d at %d s: %v", c.host.Lo, c.now/second, got)
		}
	}
	for i, host := range hosts {
		r.Refuse(host, int64(10+i)*second) // the first one anew
	}
	for i, host := range hosts {
		if got, want := r.Has(host, 50*second), i >= len(hosts)-refusalWays; got != want {
			t.Errorf("host %d of %d: %v", i, len(hosts), got)
		}
	}
}
