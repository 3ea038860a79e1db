package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// TestProxyRefusals: a notification that a proxy must not act upon is consumed and counted with its reason, and no sender is notified.
func TestProxyRefusals(t *testing.T) {
	f := data(false, 0)
	valid := asking(t, f.Frame(), own4, 5)
	change := func(at int, with ...byte) []byte {
		b := bytes.Clone(valid)
		copy(b[at:], with)
		return b
	}
	// fix restores the UDP checksum.
	fix := func(b []byte) []byte {
		copy(b[40:], []byte{0, 0})
		binary.BigEndian.PutUint16(b[40:], packet.UDPChecksum(address(congested4), address(own4), b[34:]))
		return b
	}
	about := func(f testkit.RoCE) []byte { return asking(t, f.Frame(), own4, 5) }
	const five, invoking = 42, 58 // offsets in the frame
	short := func(n int) []byte { // the notification with n octets of UDP
		b := bytes.Clone(valid[:34+n])
		packet.PutIPv4(b[14:], uint16(20+n), 0, 64, packet.ProtoUDP, uint32(address(congested4).Lo), uint32(address(own4).Lo))
		binary.BigEndian.PutUint16(b[38:], uint16(n))
		return fix(b)
	}
	tcp := fix(change(invoking+9, packet.ProtoTCP))
	tcp[five+1] = packet.ProtoTCP
	otherReceiver, otherQP, ack, management := f, f, f, f
	otherReceiver.Dst, otherQP.DestQP = "198.19.0.2", 109
	ack.Opcode, management.DestQP = packet.RCReadRequest, 1
	for _, c := range []struct {
		name   string
		frame  []byte
		reason string
	}{
		{"another source", fix(change(26, 203, 0, 113, 8)), "wrong-checksum"}, // of IPv4
		{"a wrong UDP checksum", change(40, 0xab, 0xcd), "wrong-checksum"},
		{"a damaged level", change(five, 0x47), "wrong-checksum"},
		{"a wrong UDP length", fix(change(38, 0, 20)), "malformed"},
		{"no five-tuple", short(12), "malformed"},
		{"no invoking packet", short(8 + 16), "five-tuple-mismatch"},
		{"another IP version", fix(change(five, 0x5f)), "malformed"},
		{"another sender than the packet's", fix(change(five+8, 198, 18, 0, 2)), "five-tuple-mismatch"},
		{"another port than the packet's", fix(change(five+4, 1, 1)), "five-tuple-mismatch"},
		{"a sender that is no host", fix(change(invoking+12, 224, 0, 0, 1)), "five-tuple-mismatch"},
		{"a packet that ends before its QP", short(8 + 16 + 20 + 8), "no-qp"},
		{"a packet that ends before UDP", short(8 + 16 + 20), "no-qp"},
		{"TCP", fix(tcp), "not-rocev2"},
		{"another receiver", about(otherReceiver), "flow-unknown"},
		{"another QP", about(otherQP), "flow-unknown"},
		{"a request without data", about(ack), "not-data"},
		{"QP 1", about(management), "management-qp"},
		{"multicast", fix(change(five+8, 224, 0, 0, 1)), "wrong-address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, proxyFor(packet.StandardCNP), nil)
			s.arrive(f.Frame())
			s.arriveAt(wan, c.frame)
			s.arrive(f.Frame())
			if got := refused(s.Rig, wan); !maps.Equal(got, map[string]uint64{c.reason: 1}) {
				t.Errorf("refused %v, expected %s", got, c.reason)
			}
			if s.Count(wan, counters.ConsumedProxyNotification) != 1 || s.Count(wan, counters.ProxyAccepted) != 0 {
				t.Error("not consumed, or accepted")
			}
			if notes := s.finish(); len(notes) != 0 {
				t.Errorf("%d notifications", len(notes))
			}
		})
	}
}

// TestProxyAccess: only listed sources are heard, at most so many notifications from one source and from all.
func TestProxyAccess(t *testing.T) {
	f := data(false, 0)
	ask := asking(t, f.Frame(), own4, 5)
	from := func(last byte) []byte { // a source of 203.0.113.0/24
		b := bytes.Clone(ask)
		b[29] = last
		packet.PutIPv4(b[14:], uint16(len(b)-14), 0, 64, packet.ProtoUDP, uint32(address(congested4).Lo)&^0xff|uint32(last), uint32(address(own4).Lo))
		var p packet.Parsed
		packet.Parse(b, uint32(len(b)), &p)
		binary.BigEndian.PutUint16(b[40:], packet.UDPChecksum(p.Src, p.Dst, b[34:p.IPEnd]))
		return b
	}
	for _, c := range []struct {
		name                string
		sources             []netip.Prefix
		perSource, received uint64
		want                map[string]uint64
		accepted            uint64
	}{
		{"no limits", prefixes("203.0.113.0/24"), 0, 0, map[string]uint64{}, 40},
		{"another prefix", prefixes("203.0.112.0/24", "::/0"), 0, 0, map[string]uint64{"untrusted-source": 40}, 0},
		{"two of the sources", prefixes("203.0.113.2/31"), 0, 0, map[string]uint64{"untrusted-source": 20}, 20},
		{"2 at once from one", prefixes("203.0.113.0/24"), 200, 0, map[string]uint64{"source-limit": 32}, 8},
		{"5 at once from all", prefixes("203.0.113.0/24"), 0, 500, map[string]uint64{"receive-limit": 35}, 5},
		{"2 at once from one, 10 from all", prefixes("203.0.113.0/24"), 200, 1000, map[string]uint64{"source-limit": 32}, 8},
		{"both limits reached: that of all counts", prefixes("203.0.113.0/24"), 200, 600, map[string]uint64{"receive-limit": 34}, 6},
	} {
		p := proxyFor(packet.StandardCNP)
		p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.Addr{}, netip.Addr{}, c.sources, c.perSource, c.received)
		s := newScene(t, p, nil)
		s.arrive(f.Frame())
		for n := range byte(40) {
			s.arriveAt(wan, from(n%4))
		}
		if got := refused(s.Rig, wan); !maps.Equal(got, c.want) || s.Count(wan, counters.ProxyAccepted) != c.accepted {
			t.Errorf("%s: refused %v, %d accepted", c.name, got, s.Count(wan, counters.ProxyAccepted))
		}
		s.Close(t)
	}
}

// TestProxyListens: with an address to listen to, the others receive no notifications, but are reachable.
func TestProxyListens(t *testing.T) {
	const listen = "192.0.2.77"
	p := proxyFor(packet.StandardCNP)
	p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.MustParseAddr(own6), netip.MustParseAddr(listen), prefixes("0.0.0.0/0"), 0, 0)
	s := newScene(t, p, nil)
	f := data(false, 0).Frame()
	s.arrive(f)
	s.arriveAt(wan, asking(t, f, own4, 5), asking(t, f, listen, 5), arp(1, neighbor4, own4), arp(1, neighbor4, listen), asking(t, f, "192.0.2.78", 5))
	s.Drain()
	if s.Count(wan, counters.ProxyAccepted) != 1 || s.Count(wan, counters.DroppedToGateway) != 1 || s.Count(wan, counters.AnswersSentFirst) != 2 ||
		s.Count(fabric, counters.TxPackets) != 2 { // the frame on the line of the scene, and the notification to another proxy
		t.Errorf("%d accepted, %d dropped, %d ARP replies, %d forwarded", s.Count(wan, counters.ProxyAccepted), s.Count(wan, counters.DroppedToGateway),
			s.Count(wan, counters.AnswersSentFirst), s.Count(fabric, counters.TxPackets))
	}
	s.Close(t)
}

// TestProxyAndDomain: a notification to the gateway that comes in from outside the domain is dropped at the WAN port, whatever the access list says; one
// from the fabric doesn't leave the domain. Notifications to other proxies pass as before.
func TestProxyAndDomain(t *testing.T) {
	f := data(false, 0).Frame()
	member := asking(t, f, "198.51.100.1", 5)
	for _, c := range []struct {
		name     string
		domain   *dataplane.Domain
		port     int
		frame    []byte
		accepted uint64
		dropped  counters.Counter // 0: none
		passed   bool
	}{
		{"from outside", stage.NewDomain(prefixes("0.0.0.0/0"), nil, false), wan, asking(t, f, own4, 5), 0, counters.DroppedDomainIn, false},
		{"from a source of the domain", stage.NewDomain(nil, prefixes("203.0.113.0/24"), false), wan, asking(t, f, own4, 5), 1, 0, false},
		{"from the fabric", stage.NewDomain(nil, nil, false), fabric, asking(t, f, own4, 5), 1, 0, false},
		{"to another proxy outside", stage.NewDomain(nil, nil, false), fabric, member, 0, counters.DroppedDomainOut, false},
		{"to another proxy in the domain", stage.NewDomain(prefixes("198.51.100.0/24"), nil, false), fabric, member, 0, 0, true},
		{"through, from outside", stage.NewDomain(nil, nil, false), wan, member, 0, counters.DroppedDomainIn, false},
		{"through, from the domain", stage.NewDomain(nil, prefixes("203.0.113.0/24"), false), wan, member, 0, 0, true},
	} {
		p := proxyFor(packet.StandardCNP)
		p.Domain = c.domain
		s := newScene(t, p, nil)
		s.arrive(f)
		s.Drain()
		s.Take(wan)
		s.arriveAt(c.port, c.frame)
		s.arrive(f)
		s.Drain()
		passed := len(s.Take(c.port^1)) > 0 && c.port == wan || c.port == fabric && s.Count(wan, counters.TxPackets) == 4
		notes := s.Count(fabric, formatCounter(counters.SentFirst, packet.StandardCNP))
		if c.port == wan {
			passed = s.Count(fabric, counters.TxPackets) == 2
		}
		if s.Count(c.port, counters.ProxyAccepted) != c.accepted || notes != c.accepted || passed != c.passed || c.dropped != 0 && s.Count(c.port, c.dropped) != 1 ||
			s.Count(c.port, counters.ReceivedFirst+counters.Counter(packet.ProxyNotification)) != 1 {
			t.Errorf("%s: %d accepted, %d CNPs, passed %v", c.name, s.Count(c.port, counters.ProxyAccepted), notes, passed)
		}
		s.Close(t)
	}
}

// TestProxyMailboxFull: requests beyond what a mailbox holds are counted.
func TestProxyMailboxFull(t *testing.T) {
	s := newScene(t, proxyFor(packet.StandardCNP), func(s *testkit.Setup) { s.Workers = 2 })
	f := data(false, 0).Frame()
	s.InjectAt(t, 1, fabric, f)
	s.Settle()
	for range 10 {
		for range 10 {
			s.InjectAt(t, 0, wan, asking(t, f, own4, 5))
		}
		s.Plane.Worker(0).Step() // and the other one makes no step
	}
	if got := s.suppressed(fabric); !maps.Equal(got, map[string]uint64{"proxy-requests-full": 36}) {
		t.Errorf("suppressed %v, expected 36 of 100 beyond the 64 of a mailbox", got)
	}
	s.Settle()
	if got := s.suppressed(fabric); !maps.Equal(got, map[string]uint64{"proxy-requests-full": 36, "proxy-repeated": 63}) {
		t.Errorf("suppressed %v, expected 63 repeated", got)
	}
	s.Close(t)
}

// TestProxyRequestsOfTenants: the requests about a tenant's flows, however many and silent, don't keep out those about another tenant's.
func TestProxyRequestsOfTenants(t *testing.T) {
	const greedy, modest = 2000, 64
	s := newScene(t, proxyFor(packet.FastCNP), func(s *testkit.Setup) { s.Flows = 1 << 13 })
	flow := func(vid, n uint32) []byte {
		r := data(true, n)
		r.Tags = []uint32{0x8100_0000 | vid}
		return r.Frame()
	}
	ask := func(vid, flows uint32) {
		for n := range flows {
			s.arrive(flow(vid, n))
		}
		for n := range flows {
			s.arriveAt(wan, asking(t, flow(vid, n), own6, 5))
		}
	}
	ask(10, greedy)
	ask(20, modest)
	for n := range uint32(modest) {
		s.arrive(flow(20, n))
	}
	if n := s.Count(fabric, formatCounter(counters.ProxyTranslatedFirst, packet.FastCNP)); n != modest {
		t.Errorf("%d notifications for a tenant's %d flows, beside another's %d", n, modest, greedy)
	}
	s.Close(t)
}

// TestProxyLimits: the limits of the gateway's own notifications hold for translated ones, together with them.
func TestProxyLimits(t *testing.T) {
	f := data(false, 0).Frame()
	for name, limit := range map[string]func(*dataplane.Policy){
		"flow-limit":        func(p *dataplane.Policy) { p.Ports[wan].PerFlow = ratelimit.Interval(10 * ms) },
		"destination-limit": func(p *dataplane.Policy) { p.PerDestination = perSecond(100) },
		"port-limit":        func(p *dataplane.Policy) { p.PerPort = perSecond(100) },
	} {
		p := proxyFor(packet.StandardCNP)
		limit(p)
		s := newScene(t, p, nil)
		s.arrive(f)
		for range 40 {
			s.arriveAt(wan, asking(t, f, own4, 5))
			s.arrive(f)
			s.Advance(ms)
		}
		s.wantSuppressed(map[string]uint64{name: 36})
		if notes := s.finish(); len(notes) != 4 {
			t.Errorf("%s: %d notifications", name, len(notes))
		}
	}
}
