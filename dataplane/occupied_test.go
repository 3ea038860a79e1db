package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestTablesFill: a host that scans fills the flow table and the pairing table. Each frame is forwarded, and the tables say how full they are; when the flows have
// ended, they are empty.
func TestTablesFill(t *testing.T) {
	const flows, paired, hosts = 4096, 256, 1000
	r := testkit.New(t, testkit.Setup{Flows: flows, Forget: true, Buffers: 8192, Change: func(c *dataplane.Config) { c.Paired, c.Aging = paired, 1e9 }})
	tables := func() map[string]dataplane.Occupied {
		all := map[string]dataplane.Occupied{}
		for _, o := range r.Plane.Occupied(r.Now) {
			if o.Used < 0 || o.Used > o.Size {
				t.Errorf("%+v", o)
			}
			all[o.Table] = o
		}
		return all
	}
	for i := range hosts {
		r.Inject(t, 0, testkit.RoCE{Src: "10.0.0.1", Dst: fmt.Sprintf("10.1.%d.%d", i/250, 1+i%250), DestQP: 7, Size: 100, ECN: packet.ECT0}.Frame())
		r.Settle()
		r.Advance(1000)
	}
	r.Advance(1e6)
	r.Settle()
	full := tables()
	if o := full["flows"]; o.Used != hosts || o.Size != flows {
		t.Errorf("after %d flows: %+v", hosts, o)
	}
	if slots, groups := full["pairing"], full["pairing-hosts"]; slots.Used*100 < slots.Size*50 || groups.Used*100 < groups.Size*90 {
		t.Errorf("after %d flows between as many hosts, of %d: %+v, %+v", hosts, paired, slots, groups)
	}
	if n := r.Plane.Worker(0).PairingStats().NoSlot; n == 0 {
		t.Error("no flow found the pairing table full")
	}
	for range 100 { // an aging period, swept
		r.Advance(1e8)
		r.Settle()
		r.Plane.Worker(0).Step()
	}
	for _, o := range tables() {
		if o.Used != 0 {
			t.Errorf("when the flows have ended: %+v", o)
		}
	}
}
