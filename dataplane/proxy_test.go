package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/proxy"
	"github.com/cnpgate/cnpgate/ratelimit"
)

const (
	proxy4 = "192.0.2.66"
	proxy6 = "2001:db8:66::1"
)

// behind are senders behind proxies: each a prefix and the address of its proxy.
func behind(t testing.TB, entries ...string) *proxy.Senders {
	t.Helper()
	var all []proxy.Sender
	for i := 0; i < len(entries); i += 2 {
		all = append(all, proxy.Sender{Prefix: netip.MustParsePrefix(entries[i]), Proxy: netip.MustParseAddr(entries[i+1]), Origin: proxy.OriginStatic})
	}
	s, err := proxy.NewSenders(all...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// proxied is a policy that notifies the proxies of the senders of the tests, although these accept every format.
func proxied(t testing.TB, for4, for6 string) *dataplane.Policy {
	p := notifying(byAnything...)
	p.Who.Enabled[packet.ProxyNotification] = true
	p.Proxies = behind(t, "198.18.0.0/16", for4, "fd00:18::/32", for6)
	return p
}

// TestProxyNotification: a data packet above K_max whose sender is behind a proxy yields the notification of draft-xiao-proxy 4 to that proxy,
// of every pair of IP versions, and the data packet is marked and forwarded as ever.
func TestProxyNotification(t *testing.T) {
	for _, c := range []struct {
		name string
		v6   bool
		to   string
		size int
		tags []uint32
	}{
		{"IPv4", false, proxy4, 1000, nil},
		{"IPv6", true, proxy6, 1000, nil},
		{"an IPv4 sender, an IPv6 proxy", false, proxy6, 1400, nil},
		{"an IPv6 sender, an IPv4 proxy", true, proxy4, 1400, nil},
		{"a packet that fits", false, proxy4, 200, nil},
		{"VLAN tags", true, proxy6, 1400, []uint32{0x88a8_7011, 0x8100_2022}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := proxied(t, c.to, c.to)
			p.Ports[wan].Thresholds = congestion.Thresholds{KMin: uint64(2 * c.size), KMax: uint64(4 * c.size)}
			p.Ports[wan].PerFlow = 1e9
			s := newScene(t, p, nil)
			cause := data(c.v6, 10) // whose source QP is not known: the proxy's task
			cause.Size, cause.Tags = c.size, c.tags
			var came [][]byte
			for range 5 { // the last one is above K_max
				came = append(came, cause.Frame())
			}
			s.arrive(came...)
			if got := marks(t, s, wan, came); !got[4] || !got[3] || got[1] {
				t.Errorf("marked %v, expected those above K_min, also the one that caused the notification", got)
			}
			s.wantSuppressed(nil)
			r := s.records()
			notes := s.finish()
			if len(notes) != 1 || s.Count(fabric, counters.SentFirst+counters.Counter(packet.ProxyNotification)) != 1 {
				t.Fatalf("%d notifications", len(notes))
			}
			checkProxyNote(t, notes[0].Octets, came[4], c.to, p)
			if len(r) != 1 || r[0].Format != packet.ProxyNotification || r[0].To != address(c.to) || r[0].Key.Src != address(cause.Src) ||
				!bytes.Equal(r[0].Captured(), notes[0].Octets) {
				t.Errorf("recorded as %+v", r)
			}
		})
	}
}

// checkProxyNote compares a notification to a proxy with the data packet, as it came in, that it is about: byte by byte with one made here, and
// as cnpdec reads it. The packet was the fifth of its size in the queue, so the Congestion Level is that of 5/4 of K_max.
func checkProxyNote(t *testing.T, got, cause []byte, to string, policy *dataplane.Policy) {
	t.Helper()
	var in packet.Parsed
	packet.Parse(cause, uint32(len(cause)), &in)
	toAddr, from, header, most := address(to), policy.Build.IPv4, packet.IPv4Len, packet.MaxProxyIPv4
	if !toAddr.Is4() {
		from, header, most = policy.Build.IPv6, packet.IPv6Len, packet.MaxProxyIPv6
	}
	five := binary.BigEndian.AppendUint16([]byte{in.Family<<4 | 6, packet.ProtoUDP, 0, 0}, in.SrcPort) // level 196 of 255: 6 of 7
	five = binary.BigEndian.AppendUint16(five, packet.RoCEv2Port)
	addresses := map[uint8][2]int{4: {12, 20}, 6: {8, 40}}[in.Family]
	five = append(five, cause[int(in.L3)+addresses[0]:int(in.L3)+addresses[1]]...)
	payload := slices.Concat(five, cause[in.L3:])
	payload = payload[:min(len(payload), most-header-packet.UDPLen)]

	l3 := int(in.L3)
	want := append(append(append([]byte{}, cause[6:12]...), cause[:6]...), cause[12:l3]...) // to the data frame's source, with its tags
	etherType := uint16(packet.EtherTypeIPv6)
	if toAddr.Is4() {
		etherType = packet.EtherTypeIPv4
	}
	binary.BigEndian.PutUint16(want[l3-2:], etherType)
	want = append(want, make([]byte, header+packet.UDPLen+len(payload))...)
	copy(want[l3+header+packet.UDPLen:], payload)
	packet.PutUDPDatagram(want, l3, from, toAddr, 48, 64, in.SrcPort, packet.DefaultCodePoints.ProxyPort)
	if !bytes.Equal(got, want) {
		t.Errorf("the frame is\n% x, expected\n% x", got, want)
	}

	var out packet.Parsed
	packet.Parse(got, uint32(len(got)), &out)
	var d cnpdec.Notification
	r := cnpdec.Receiver{Code: packet.DefaultCodePoints}
	if reason := r.Decode(got, &out, &d); reason != cnpdec.Accepted || d.Kind != packet.ProxyNotification || d.Src != from || d.Dst != toAddr {
		t.Fatalf("read as %v from %v to %v: %v", d.Kind, d.Src.Netip(), d.Dst.Netip(), reason)
	}
	if x := &d.Proxy; x.Level != 6 || x.Version != in.Family || x.Src != in.Src || x.Dst != in.Dst || x.SrcPort != in.SrcPort || x.DstPort != packet.RoCEv2Port ||
		!bytes.HasPrefix(cause[in.L3:], x.Invoking) {
		t.Errorf("the proxy reads %+v", x)
	}
}

// TestProxyOrSender: which senders are notified themselves, and why a proxy isn't notified.
func TestProxyOrSender(t *testing.T) {
	const toProxy, toSender = packet.ProxyNotification, packet.LongHaulCNP
	for _, c := range []struct {
		name   string
		change func(*dataplane.Policy)
		src    string
		format packet.Notification
		to     string
		reason string
	}{
		{"a sender with a proxy, which accepts Long-haul CNP", nil, sender4, toProxy, proxy4, ""},
		{"a sender that accepts nothing", func(p *dataplane.Policy) { p.Who.Endpoints = nil }, sender4, toProxy, proxy4, ""},
		{"no proxies", func(p *dataplane.Policy) { p.Proxies = nil }, sender4, toSender, sender4, ""},
		{"other senders' proxies", func(p *dataplane.Policy) { p.Proxies = behind(t, "198.18.0.0/32", proxy4) }, sender4, toSender, sender4, ""},
		{"the longest prefix", func(p *dataplane.Policy) { p.Proxies = behind(t, "198.18.0.0/16", proxy6, sender4+"/32", proxy4) }, sender4, toProxy, proxy4, ""},
		{"the gateway's own address", func(p *dataplane.Policy) { p.Proxies = behind(t, "0.0.0.0/0", "192.0.2.1") }, sender4, toSender, sender4, ""},
		{"the gateway's own address, IPv6", func(p *dataplane.Policy) { p.Proxies = behind(t, "0.0.0.0/0", "2001:db8::1") }, sender4, toSender, sender4, ""},
		{"a proxy that is a sender behind itself", func(p *dataplane.Policy) { p.Proxies = behind(t, "0.0.0.0/0", sender4) }, sender4, toProxy, sender4, ""},
		{"no address", func(p *dataplane.Policy) { p.Who.HasIPv4 = false }, sender4, 0, "", "no-gateway-address"},
		{"no address of the proxy's IP version", func(p *dataplane.Policy) {
			p.Who.HasIPv6, p.Build.HasIPv6, p.Proxies = false, false, behind(t, "0.0.0.0/0", proxy6)
		}, sender4, 0, "", "no-gateway-address"},
		{"no address to build with", func(p *dataplane.Policy) { p.Build.HasIPv4 = false }, sender4, 0, "", "not-built"},
		{"not enabled", func(p *dataplane.Policy) { p.Who.Enabled[toProxy] = false }, sender4, 0, "", "not-enabled"},
		{"a forged source", func(p *dataplane.Policy) { p.Proxies = behind(t, "0.0.0.0/0", proxy4) }, "224.0.0.9", 0, "", "not-unicast"},
		{"a management QP", nil, "QP 1", 0, "", "management-qp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := proxied(t, proxy4, proxy6)
			if c.change != nil {
				c.change(p)
			}
			p.Ports[wan].PerFlow = 1e9
			s := newScene(t, p, nil)
			cause := data(false, 0)
			if cause.Src = c.src; c.src == "QP 1" {
				cause.Src, cause.DestQP = sender4, 1
			}
			s.fill(5, cause)
			want := map[string]uint64{}
			if c.reason != "" {
				want[c.reason] = 1
			}
			s.wantSuppressed(want)
			notes := s.finish()
			if (c.reason == "") != (len(notes) == 1) {
				t.Fatalf("%d notifications", len(notes))
			}
			if c.reason != "" {
				return
			}
			if _, q := kindOf(notes[0]); q.Dst != address(c.to) || s.Count(fabric, counters.SentFirst+counters.Counter(c.format)) != 1 {
				t.Errorf("%v was notified, expected %s by %v", q.Dst.Netip(), c.to, c.format)
			}
		})
	}
}

// TestProxyNotBuilt: a buffer that is too short, with its reason.
func TestProxyNotBuilt(t *testing.T) {
	p := proxied(t, proxy4, proxy6)
	above(p)
	s := newScene(t, p, func(s *testkit.Setup) { s.BufferSize = 100 })
	cause := data(true, 0)
	cause.Size = 0
	s.fill(3, cause)
	s.wantSuppressed(map[string]uint64{"not-built": 3})
	if notes := s.finish(); len(notes) != 0 {
		t.Errorf("%d notifications", len(notes))
	}
}

// TestLimitPerProxy: all senders behind a proxy share its limit, in place of a limit each; another proxy has its own; the limits of a flow and a
// port stay.
func TestLimitPerProxy(t *testing.T) {
	p := proxied(t, proxy4, proxy6)
	above(p)
	p.PerDestination, p.PerProxy = perSecond(1), perSecond(100) // one each 10 ms
	p.Proxies = behind(t, "fd00:18::/32", proxy4, "fd00:18:1::/48", proxy6)
	s := newScene(t, p, nil)
	for n := range 50 {
		f := data(true, 0)
		f.Src, f.Size = fmt.Sprintf("fd00:18::%x", n+1), 1000+n // the largest
		s.arrive(f.Frame())
		s.Advance(ms)
	}
	s.wantSuppressed(map[string]uint64{"destination-limit": 45})
	other := data(true, 0)
	other.Src, other.Size = "fd00:18:1::1", 2000
	s.arrive(other.Frame())
	s.wantSuppressed(map[string]uint64{"destination-limit": 45})
	if notes := s.finish(); len(notes) != 6 {
		t.Errorf("%d notifications, expected 5 to one proxy and 1 to another", len(notes))
	}

	p.PerProxy, p.PerPort, p.Ports[wan].PerFlow = ratelimit.Rate{}, perSecond(50), ratelimit.Interval(5*ms)
	s = newScene(t, p, nil)
	for range 50 {
		s.arrive(data(true, 0).Frame())
		s.Advance(ms)
	}
	if got := s.suppressed(fabric); got["port-limit"] == 0 || got["flow-limit"] == 0 || len(got) != 2 {
		t.Errorf("suppressed %v, expected limits of the flow and the port", got)
	}
	if notes := s.finish(); len(notes) != 3 {
		t.Errorf("%d notifications in 50 ms, expected 3 at 50 a second", len(notes))
	}
}

// TestProxyLimitRefund: a notification that the port's limit stops costs the proxy's limit nothing.
func TestProxyLimitRefund(t *testing.T) {
	p := proxied(t, proxy4, proxy6)
	above(p)
	p.PerProxy, p.PerPort = perSecond(100), perSecond(50)
	s := newScene(t, p, nil)
	for range 50 {
		s.arrive(data(true, 0).Frame())
		s.Advance(ms)
	}
	s.wantSuppressed(map[string]uint64{"destination-limit": 27, "port-limit": 20})
	s.finish()
}

// TestProxyObserved: in observe mode of everything, or of this kind alone, notifications to proxies are counted and not sent.
func TestProxyObserved(t *testing.T) {
	for _, change := range []func(*dataplane.Policy){
		func(p *dataplane.Policy) { p.Observe = true },
		func(p *dataplane.Policy) { p.ObserveKind[packet.ProxyNotification] = true },
	} {
		p := proxied(t, proxy4, proxy6)
		change(p)
		s := newScene(t, p, nil)
		s.fill(7, data(false, 0))
		kind := counters.Counter(packet.ProxyNotification)
		if observed, sent := s.Count(fabric, counters.ObservedFirst+kind), s.Count(fabric, counters.SentFirst+kind); observed != 3 || sent != 0 {
			t.Errorf("%d observed, %d sent, expected 3 and 0", observed, sent)
		}
		for _, r := range s.records() {
			if r.Outcome != counters.Observed || r.To != address(proxy4) {
				t.Errorf("recorded as %+v", r)
			}
		}
		s.Drain()
		s.Close(t)
	}
}

// TestProxyNoResume: a proxy gets no Resume, and nothing waits for one: once the queue has drained, the sender is a new one, whose request is not
// stricter than the queue's state alone asks for.
func TestProxyNoResume(t *testing.T) {
	for _, resumes := range []bool{false, true} {
		p := proxied(t, proxy4, proxy6)
		p.Ports[wan].Ladder = congestion.DefaultLadder
		p.Ports[wan].PerFlow, p.Ports[wan].Resumes, p.Ports[wan].RTT = 1_000, resumes, 1_000
		s := newScene(t, p, nil)
		levels := func() (all []uint8) {
			for _, n := range s.Take(fabric) {
				if n.Built {
					d := decoded(t, n)
					all = append(all, d.Proxy.Level)
				}
			}
			return all
		}
		for range 2 { // congested, drained, and congested again
			for range 8 {
				s.fill(1, data(false, 0))
				s.Advance(2_000)
			}
			s.Drain()
			if slowed := s.Plane.Worker(0).Slowed(wan, 0); slowed != 0 {
				t.Errorf("%d senders wait for a Resume", slowed)
			}
			if got := levels(); !bytes.Equal(got, []byte{6, 6, 7, 7}) {
				t.Errorf("levels %v", got)
			}
			for range 4 { // the line is free again; a frame takes it
				s.Advance(100 * ms)
				s.Settle()
			}
			s.Inject(t, fabric, ethernet(0x88cc))
			s.Settle()
		}
		s.Drain()
		s.Close(t)
	}
}

// TestProxyChanges: senders that were notified themselves before their proxy was known get the Resume that belongs to their format, and those that
// lose their proxy are notified themselves from the next packet on.
func TestProxyChanges(t *testing.T) {
	p := notifying(byAnything...)
	p.Who.Enabled[packet.ProxyNotification] = true
	p.Ports[wan].PerFlow, p.Ports[wan].Resumes, p.Ports[wan].ResumePercent = 60*ms, true, 50
	s := newScene(t, p, nil)
	s.fill(5, data(false, 0))
	s.Plane.SetProxies(behind(t, "198.18.0.0/16", proxy4))
	second := data(false, 1)
	second.Size = 1400
	s.fill(4, second)
	s.Plane.SetProxies(nil)
	third := data(false, 2)
	third.Size = 1500
	s.fill(5, third)
	var formats []string
	for _, n := range s.finish() {
		d := decoded(t, n)
		formats = append(formats, fmt.Sprintf("%v of %d", d.Kind, d.LongHaul.Action))
	}
	want := []string{"long-haul-cnp of 2", "proxy-notification of 0", "long-haul-cnp of 2", "long-haul-cnp of 3", "long-haul-cnp of 3"}
	got, expected := map[string]int{}, map[string]int{}
	for _, f := range formats {
		got[f]++
	}
	for _, f := range want {
		expected[f]++
	}
	if !maps.Equal(got, expected) {
		t.Errorf("sent %v, expected %v", formats, want)
	}
}

// TestProxySwap: while workers run, another goroutine replaces the proxies, again and again. Each notification goes to one of the proxies that were
// in force, and all are about the flow.
func TestProxySwap(t *testing.T) {
	p := proxied(t, proxy4, proxy6)
	above(p)
	s := newScene(t, p, func(s *testkit.Setup) { s.Rate = 400e9 })
	maps := []*proxy.Senders{behind(t, "0.0.0.0/0", proxy4), behind(t, "198.18.0.0/16", proxy6), nil}
	stop, swapper := make(chan struct{}), sync.WaitGroup{}
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				s.Plane.SetProxies(maps[i%len(maps)])
			}
		}
	})
	for range 900 { // fewer than a worker has records
		s.arrive(data(false, 0).Frame())
		s.Advance(100_000)
	}
	close(stop)
	swapper.Wait()
	notes := s.finish()
	if len(notes) == 0 {
		t.Fatal("no notification")
	}
	for _, n := range notes {
		_, q := kindOf(n)
		d := decoded(t, n)
		switch {
		case q.Dst == address(sender4) && d.Kind == packet.LongHaulCNP:
		case (q.Dst == address(proxy4) || q.Dst == address(proxy6)) && d.Kind == packet.ProxyNotification && d.Proxy.Src == address(sender4) && d.Proxy.Inner.DestQP == 100:
		default:
			t.Fatalf("%v to %v", d.Kind, q.Dst.Netip())
		}
	}
}

// TestProxyKeepsCE: a packet that arrives with CE keeps it although the proxy was notified: the gateway doesn't know what the proxy did.
func TestProxyKeepsCE(t *testing.T) {
	for _, toProxy := range []bool{false, true} {
		p := notifying(byAnything...)
		if toProxy {
			p = proxied(t, proxy4, proxy6)
		}
		p.Ports[wan].OnArrival, p.Ports[wan].ClearCE = true, true
		s := newScene(t, p, nil)
		f := data(false, 0)
		f.ECN = packet.CE
		s.fill(3, f)
		if cleared := s.Count(fabric, counters.CECleared); (cleared == 0) != toProxy {
			t.Errorf("proxy %v: CE of %d packets cleared", toProxy, cleared)
		}
		if notes := s.finish(); len(notes) == 0 {
			t.Errorf("proxy %v: no notification", toProxy)
		}
	}
}
