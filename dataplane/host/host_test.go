package host

import (
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

func address(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

var (
	own, neighbor, peer = address("192.0.2.1"), address("192.0.2.9"), address("192.0.2.2")
	neighborMAC         = packet.MAC{2, 0, 0, 0, 0, 9}
)

// gateway is a frame at the WAN port of a gateway that answers the peer's STAMP packets, and is a proxy.
func gateway(data []byte) *Frame {
	f := &Frame{
		WAN: true, Address: packet.MAC{2, 1}, Now: 1, Gateway: &cnpgen.Gateway{IPv4: own, HasIPv4: true, Code: packet.DefaultCodePoints},
		Session: &STAMPSession{Peer: peer, Interval: 1000}, Reflects: []packet.Addr{peer}, Data: data, Parsed: new(packet.Parsed), Out: make([]byte, 200),
		Proxy: NewProxy(netip.MustParseAddr("192.0.2.1"), netip.Addr{}, netip.Addr{}, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, 0, 0),
	}
	packet.Parse(data, uint32(len(data)), f.Parsed)
	return f
}

func newStage(t *testing.T) *Stage {
	t.Helper()
	s, err := New(1, 1, func(bytes int) ([]byte, error) { return make([]byte, bytes), nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func arpFor(operation uint16, sender, target packet.Addr) []byte {
	b := make([]byte, packet.EthernetLen+packet.ARPLen)
	packet.PutEthernet(b, b, new(packet.Parsed), neighborMAC, packet.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	b[12], b[13] = 8, 6
	m := packet.ARP{Operation: operation, SenderMAC: neighborMAC, SenderIP: sender, TargetIP: target}
	m.Put(b[packet.EthernetLen:])
	return b
}

func udpFrom(src packet.Addr, srcPort, dstPort uint16) []byte {
	b := make([]byte, packet.EthernetLen+packet.IPv4Len+packet.UDPLen+packet.STAMPLen)
	packet.PutEthernet(b, b, new(packet.Parsed), neighborMAC, packet.MAC{2, 1})
	packet.PutUDPDatagram(b, packet.EthernetLen, src, own, 0, 64, srcPort, dstPort)
	return b
}

// fromGroup gives a frame a group's source MAC address.
func fromGroup(b []byte) []byte {
	b[6] |= 1
	return b
}

// TestReceive: each frame has a verdict, and the length of its reply or the reason why there is none. Nothing allocates.
func TestReceive(t *testing.T) {
	const stamp = packet.EthernetLen + packet.IPv4Len + packet.UDPLen + packet.STAMPLen
	for _, c := range []struct {
		name  string
		frame []byte
		out   int // bytes of the buffer
		want  Result
	}{
		{"ARP request", arpFor(packet.ARPRequest, neighbor, own), 60, Result{Verdict: ARP, Size: 60}},
		{"ARP request, no buffer", arpFor(packet.ARPRequest, neighbor, own), 0, Result{Verdict: ARP, Event: AnswerNoPlace}},
		{"ARP request, short buffer", arpFor(packet.ARPRequest, neighbor, own), 59, Result{Verdict: ARP, Event: AnswerNoPlace}},
		{"ARP request from a group", fromGroup(arpFor(packet.ARPRequest, neighbor, own)), 60, Result{Verdict: ARP, Event: AnswerNoPlace}},
		{"ARP request for another address", arpFor(packet.ARPRequest, neighbor, peer), 60, Result{}},
		{"ARP with the gateway's address", arpFor(packet.ARPRequest, own, neighbor), 60, Result{Event: AddressConflict}},
		{"STAMP test packet", udpFrom(peer, 5000, packet.STAMPPort), 200, Result{Verdict: STAMP, Size: stamp}},
		{"STAMP test packet, no buffer", udpFrom(peer, 5000, packet.STAMPPort), 0, Result{Verdict: STAMP, Event: STAMPNoPlace}},
		{"STAMP test packet from a group", fromGroup(udpFrom(peer, 5000, packet.STAMPPort)), 200, Result{Verdict: STAMP, Event: STAMPNoPlace}},
		{"STAMP test packet of a stranger", udpFrom(neighbor, 5000, packet.STAMPPort), 200, Result{Verdict: Unwanted}},
		{"UDP", udpFrom(neighbor, 5000, 53), 200, Result{Verdict: Unwanted}},
		{"notification to a proxy", udpFrom(neighbor, 5000, packet.DefaultCodePoints.ProxyPort), 200, Result{Verdict: Notification}},
	} {
		s, f := newStage(t), gateway(c.frame)
		f.Out = f.Out[:c.out]
		if got := s.Receive(f); got != c.want {
			t.Errorf("%s: %+v, expected %+v", c.name, got, c.want)
		}
		if n := testing.AllocsPerRun(10, func() { s.Receive(f) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// TestProbe: the peer's reply to a test packet, 400 ns later, is a sample of the round-trip time, and only one. No other worker sends test packets
// while the peer answers.
func TestProbe(t *testing.T) {
	s, far := newStage(t), newStage(t)
	f := gateway(udpFrom(peer, 1, 1))
	link := f.Data[:packet.EthernetLen]
	r := s.Probe(f, 3, link)
	if r.Size == 0 || s.Probe(f, 3, link) != (Result{}) {
		t.Fatalf("%+v", r)
	}
	at := gateway(f.Out[:r.Size])
	at.Gateway, at.Reflects = &cnpgen.Gateway{IPv4: peer, HasIPv4: true}, []packet.Addr{own}
	r = far.Receive(at)
	if r.Verdict != STAMP || r.Size == 0 {
		t.Fatalf("the peer: %+v", r)
	}
	reply := gateway(at.Out[:r.Size])
	reply.Now = f.Now + 400
	if r = s.Receive(reply); r != (Result{Verdict: STAMP, RTT: 400}) {
		t.Errorf("the reply: %+v", r)
	}
	if r = s.Receive(reply); r.RTT != 0 {
		t.Errorf("the reply again: %+v", r)
	}
	if !s.Due(0, 3, 1001, 1000) || s.Due(0, 2, 1001, 1000) || s.Due(0, 3, 999, 1000) || !s.Due(0, 2, 1001+AnsweredIntervals*1000, 1000) {
		t.Error("another worker sends test packets")
	}
}

// TestRequests: the requests of a set are bounded, each ends once, and a VLAN with many makes way for another one.
func TestRequests(t *testing.T) {
	s := &Requests{}
	of := func(n int, scope packet.Scope) Request {
		return Request{Flow: flowtable.Ref{Index: flowtable.Index(1 + n*requestSets), Generation: 1}, In: uint8(n), Level: uint8(n % 8), Scope: scope, Until: int64(100 + n)}
	}
	for _, c := range []struct {
		request Request
		now     int64
		lost    Lost
		in      uint8
		waiting int
	}{
		{of(0, 0), 100, FlowSilent, 0, 0}, {of(0, 0), 0, NotLost, 0, 1}, {of(0, 0), 1, Repeated, 0, 1}, {of(1, 0), 0, NotLost, 0, 2}, {of(2, 0), 0, NotLost, 0, 3},
		{of(3, 0), 0, NotLost, 0, 4}, {of(4, 0), 0, NotLost, 0, 5}, {of(5, 0), 0, NotLost, 0, 6}, {of(6, 0), 0, NotLost, 0, 7}, {of(7, 0), 0, NotLost, 0, 8},
		{of(8, 0), 0, NoSlot, 8, 8}, {of(9, 1), 0, NoSlot, 0, 8},
	} {
		if lost, in := s.Put(c.request, c.now); lost != c.lost || in != c.in || s.N != c.waiting {
			t.Errorf("%+v: %d lost at port %d, %d wait", c.request, lost, in, s.N)
		}
	}
	if level, ok := s.Take(of(9, 1).Flow); !ok || level != 1 || s.N != 7 || !s.May(of(9, 1).Flow) {
		t.Errorf("level %d, %v", level, ok)
	}
	if _, ok := s.Take(of(9, 1).Flow); ok {
		t.Error("a request is taken twice")
	}
	silent := 0
	for range 2 * requestSets * requestWays {
		if lost, _ := s.Sweep(105); lost == FlowSilent {
			silent++
		}
	}
	if silent != 5 || s.N != 2 { // 1 to 5, as 0 has made way
		t.Errorf("%d are given up, %d wait", silent, s.N)
	}
}
