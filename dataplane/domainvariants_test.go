package dataplane_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// domainRig is a gateway with a domain, and all that passes its filter.
type domainRig struct{ *testkit.Rig }

func newDomainRig(t *testing.T, b *dataplane.Domain) domainRig {
	t.Helper()
	p := testkit.DefaultPolicy(2)
	p.Domain = b
	return domainRig{testkit.New(t, testkit.Setup{Policy: p, BufferSize: 4096})}
}

// crosses reports whether a frame that comes in by port leaves by the other one.
func (r domainRig) crosses(t *testing.T, port int, frame []byte) bool {
	t.Helper()
	before := len(r.Sent[0])
	r.Inject(t, port, frame)
	r.Drain()
	return len(r.Sent[0]) > before
}

// TestNoVariantCrosses: no way of sending a notification, or a piece of it, passes the filter of an empty domain, in either
// direction; every one of these frames is counted there; and without a domain every one passes.
func TestNoVariantCrosses(t *testing.T) {
	kinds := goldenNotifications(t)
	if len(kinds) < 8 {
		t.Fatalf("only %d golden notifications: %v", len(kinds), slices.Sorted(maps.Keys(kinds)))
	}
	for _, port := range []int{fabric, wan} {
		open, closed := newDomainRig(t, nil), newDomainRig(t, stage.NewDomain(nil, nil, false))
		sent, passed := uint64(0), 0
		for kind, frame := range kinds {
			for _, v := range variants(frame) {
				sent++
				if !open.crosses(t, port, v.frame) {
					t.Errorf("%s, %s: dropped from port %d without a domain", kind, v.name, port)
				}
				if closed.crosses(t, port, v.frame) {
					passed++
					t.Errorf("%s, %s: passes from port %d", kind, v.name, port)
				}
			}
		}
		t.Logf("port %d: %d of %d variants pass", port, passed, sent)
		open.Close(t)
		closed.Close(t)
	}
}

var everything = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// TestUnclassifiedIsCounted: of each variant the filter counts either that a notification may not cross or, under a reason of its own, that
// it may hide one. The second doesn't depend on addresses: such a frame doesn't cross between members either.
func TestUnclassifiedIsCounted(t *testing.T) {
	type reasons struct{ known, unclassified counters.Counter }
	for port, count := range map[int]reasons{
		fabric: {counters.DroppedDomainOut, counters.DroppedDomainUnclassifiedOut},
		wan:    {counters.DroppedDomainIn, counters.DroppedDomainUnclassifiedIn},
	} {
		strict, lenient := newDomainRig(t, stage.NewDomain(nil, nil, false)), newDomainRig(t, stage.NewDomain(everything, everything, false))
		sent := uint64(0)
		for kind, frame := range goldenNotifications(t) {
			for _, v := range variants(frame) {
				sent++
				before := strict.Count(port, count.unclassified)
				strict.crosses(t, port, v.frame)
				hidden := strict.Count(port, count.unclassified) > before
				if crosses := lenient.crosses(t, port, v.frame); crosses == hidden && !strings.Contains(v.name, "segment left") && !strings.Contains(v.name, "source route") {
					t.Errorf("%s, %s from port %d: crosses between members: %v, counted as unclassified: %v", kind, v.name, port, crosses, hidden)
				}
			}
		}
		if known, hidden := strict.Count(port, count.known), strict.Count(port, count.unclassified); known+hidden != sent || known == 0 || hidden == 0 {
			t.Errorf("from port %d: %d + %d of %d frames are counted", port, known, hidden, sent)
		}
		if n := lenient.Count(port, count.unclassified); n != strict.Count(port, count.unclassified) {
			t.Errorf("from port %d: %d frames are unclassified between members, %d otherwise", port, n, strict.Count(port, count.unclassified))
		}
		strict.Close(t)
		lenient.Close(t)
	}
}

// TestDomainSourceRoutes: a notification for a member that goes on from there to another host doesn't leave. It comes in if its
// source is known: where it ends is the domain's own matter.
func TestDomainSourceRoutes(t *testing.T) {
	for kind, frame := range goldenNotifications(t) {
		for _, v := range variants(frame) {
			if !strings.HasSuffix(v.name, "segment left") && !strings.HasSuffix(v.name, "source route") {
				continue
			}
			r := newDomainRig(t, stage.NewDomain(everything, everything, false))
			if r.crosses(t, fabric, v.frame) || r.Count(fabric, counters.DroppedDomainOut) != 1 {
				t.Errorf("%s, %s: leaves", kind, v.name)
			}
			if !r.crosses(t, wan, v.frame) {
				t.Errorf("%s, %s: doesn't come in", kind, v.name)
			}
			r.Close(t)
		}
	}
}

// TestOrdinaryTrafficCrosses: what can't be a notification passes the filter of an empty domain, and so do standard CNPs.
func TestOrdinaryTrafficCrosses(t *testing.T) {
	frames := []variant{
		{"ARP", ethernet(0x0806, 0, 1, 8, 0, 6, 4, 0, 1)},
		{"LLDP", ethernet(0x88cc, 2, 7, 4, 2)},
		{"RoCEv1", ethernet(0x8915, 0x60, 0, 0, 0, 0, 36, 0x1b, 64)},
		{"spanning tree", ethernet(38, 0x42, 0x42, 3, 0, 0)},
		{"IS-IS", ethernet(27, 0xfe, 0xfe, 3, 0x83, 27, 1, 0, 15)},
		{"IS-IS in a jumbo frame", append(ethernet(0x8870, 0xfe, 0xfe, 3, 0x83, 27, 1, 0, 15), make([]byte, 1500)...)},
		{"CDP", ethernet(46, 0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0)},
	}
	add := func(name string, frame []byte) { frames = append(frames, variant{name, frame}) }
	for name, frame := range notCauses(t) {
		if name == "standard-cnp" || name == "ACK" || name == "READ request" {
			add(name, frame)
		}
	}
	for _, o := range outers {
		for proto, name := range map[uint8]string{1: "ICMP", 6: "TCP", 58: "ICMPv6", 59: "no next header", 89: "OSPF", 103: "PIM", 132: "SCTP"} {
			whole := o.ip(proto, make([]byte, 64))
			add(name, o.ethernet(whole))
			add(name+" with a tag", o.frame([]byte("\x81\x00\x00\x05"), o.etherType(), whole))
			add(name+" in IP", o.ethernet(o.ip(o.in, whole)))
			add(name+" in GRE", o.ethernet(o.ip(47, []byte("\x00\x00"), o.etherType(), whole)))
			add(name+" in VXLAN", o.ethernet(o.ip(17, []byte("\xc0\x00\x12\xb5\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x05\x00"), o.ethernet(whole))))
			if name == "ICMPv6" && o.family == 6 {
				continue // its fragments may be those of a notification
			}
			o.cut(func(piece string, ip []byte) { add(name+", "+piece, o.ethernet(ip)) }, proto, make([]byte, 64))
		}
		for name, port := range map[string]uint16{"PTP": 319, "BFD": 3784, "L2TP": 1701, "LISP": 4341, "GUE": 6080, "Teredo": 3544} {
			control := append(be.AppendUint16([]byte{0xc0, 0}, port), 0, 48, 0, 0, 0xc8, 0x02)
			add(name+" without a packet", o.ethernet(o.ip(17, control, make([]byte, 38))))
		}
		add("DNS", o.ethernet(o.ip(17, []byte("\xc0\x00\x00\x35\x00\x14\x00\x00"), make([]byte, 12))))
	}
	for _, port := range []int{fabric, wan} {
		r := newDomainRig(t, stage.NewDomain(nil, nil, false))
		for _, v := range frames {
			if !r.crosses(t, port, v.frame) {
				t.Errorf("%s doesn't cross from port %d: % x", v.name, port, v.frame)
			}
		}
		r.Close(t)
	}
}
