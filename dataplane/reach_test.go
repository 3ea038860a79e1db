package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// The gateway's addresses as a proxy, and a neighbor's.
const (
	own4, own6           = "192.0.2.1", "2001:db8::1"
	neighbor4, neighbor6 = "192.0.2.9", "fe80::9"
)

var neighborMAC = packet.MAC{2, 0, 0, 0, 0, 9}

// portMAC is the MAC address of a port whose device has none.
func portMAC(port int) packet.MAC { return packet.MAC{2, 'c', 'n', 'p', 0, byte(port)} }

// proxying makes the gateway of a policy a proxy for all sources.
func proxying(p *dataplane.Policy) *dataplane.Policy {
	p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.MustParseAddr(own6), netip.Addr{}, prefixes("0.0.0.0/0", "::/0"), 0, 0)
	return p
}

func prefixes(p ...string) (out []netip.Prefix) {
	for _, s := range p {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// linkTo is an Ethernet header from the neighbor with VLAN tags, each TPID and TCI.
func linkTo(to packet.MAC, etherType uint16, tags ...uint32) []byte {
	b := append(bytes.Clone(to[:]), neighborMAC[:]...)
	for _, t := range tags {
		b = binary.BigEndian.AppendUint32(b, t)
	}
	return binary.BigEndian.AppendUint16(b, etherType)
}

var broadcast = packet.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// arp is an ARP frame from the neighbor.
func arp(operation uint16, sender, target string, tags ...uint32) []byte {
	b := linkTo(broadcast, packet.EtherTypeARP, tags...)
	m := packet.ARP{Operation: operation, SenderMAC: neighborMAC, SenderIP: address(sender), TargetIP: address(target)}
	at := len(b)
	b = append(b, make([]byte, packet.ARPLen)...)
	m.Put(b[at:])
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

// icmpv6 is an ICMPv6 packet from the neighbor, with its checksum.
func icmpv6(to packet.MAC, src, dst string, hops uint8, message []byte, tags ...uint32) []byte {
	b := linkTo(to, packet.EtherTypeIPv6, tags...)
	l3 := len(b)
	b = append(append(b, make([]byte, packet.IPv6Len)...), message...)
	from, target := address(src), address(dst)
	packet.PutIPv6(b[l3:], uint16(len(message)), 0, packet.ProtoICMPv6, hops, &from, &target)
	message = b[l3+packet.IPv6Len:]
	binary.BigEndian.PutUint16(message[2:], packet.ICMPv6Checksum(from, target, message))
	return b
}

// solicitation is a Neighbor Solicitation's message with options.
func solicitation(target string, options ...byte) []byte {
	b := make([]byte, 24, 64)
	b[0] = 135
	address(target).Put16(b[8:])
	return append(b, options...)
}

// advertisement is a Neighbor Advertisement's message.
func advertisement(target string) []byte {
	b := solicitation(target)
	b[0] = 136
	return b
}

const solicitedNode = "ff02::1:ff00:1"

var (
	solicitedMAC = packet.MAC{0x33, 0x33, 0xff, 0, 0, 1}
	sourceLink   = []byte{1, 1, 2, 0, 0, 0, 0, 0x77}
)

// ping4 is an ICMP Echo from the neighbor with so many octets of payload.
func ping4(src, dst string, payload int) []byte {
	b := linkTo(portMAC(0), packet.EtherTypeIPv4)
	b = append(b, make([]byte, packet.IPv4Len+packet.ICMPLen+payload)...)
	packet.PutIPv4(b[14:], uint16(len(b)-14), 46<<2|packet.ECT0, 63, packet.ProtoICMP, uint32(address(src).Lo), uint32(address(dst).Lo))
	m := b[34:]
	copy(m, []byte{8, 0, 0, 0, 0x12, 0x34, 0, 7})
	for i := range payload {
		m[8+i] = byte(i)
	}
	binary.BigEndian.PutUint16(m[2:], onesComplement(m))
	return b
}

// onesComplement is the checksum of RFC 1071, computed word by word.
func onesComplement(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i]) << 8
		if i+1 < len(b) {
			sum += uint32(b[i+1])
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// ping6 is an ICMPv6 Echo Request from the neighbor.
func ping6(src, dst string, payload int) []byte {
	m := append([]byte{128, 0, 0, 0, 0x12, 0x34, 0, 7}, bytes.Repeat([]byte{0x5a}, payload)...)
	return icmpv6(portMAC(0), src, dst, 64, m)
}

// answered is what the gateway sends back for a frame, and what it forwards.
type answered struct {
	*testkit.Rig
	port          int
	back, through []testkit.Sent
}

func answerOf(t *testing.T, p *dataplane.Policy, port int, frame []byte) answered {
	t.Helper()
	r := testkit.New(t, testkit.Setup{Policy: p})
	r.Inject(t, port, frame)
	r.Drain()
	a := answered{r, port, r.Take(port), r.Take(port ^ 1)}
	r.Close(t)
	return a
}

// mustForward fails the test unless the frame was forwarded unchanged.
func (a *answered) mustForward(t *testing.T, frame []byte) {
	t.Helper()
	if len(a.back) != 0 || len(a.through) != 1 || !bytes.Equal(a.through[0].Octets, frame) {
		t.Errorf("%d frames back and %d forwarded, expected the frame to be forwarded", len(a.back), len(a.through))
	}
}

// mustAnswer fails the test unless the frame was consumed as the counter says and got one answer, which it returns.
func (a *answered) mustAnswer(t *testing.T, consumed, sent counters.Counter) []byte {
	t.Helper()
	if len(a.back) != 1 || len(a.through) != 0 || a.Count(a.port, consumed) != 1 || a.Count(a.port, sent) != 1 {
		t.Fatalf("%d frames back, %d forwarded, %d consumed, %d answers counted", len(a.back), len(a.through), a.Count(a.port, consumed), a.Count(a.port, sent))
	}
	return a.back[0].Octets
}

// TestARP: requests and probes for the gateway's address are answered with the MAC address of the port that they arrive by, in their VLAN.
// All other ARP frames are forwarded.
func TestARP(t *testing.T) {
	cut := arp(packet.ARPRequest, neighbor4, own4)[:40]
	otherHardware := arp(packet.ARPRequest, neighbor4, own4)
	otherHardware[15] = 6
	groupSender := arp(packet.ARPRequest, neighbor4, own4)
	groupSender[22] |= 1
	for _, c := range []struct {
		name      string
		frame     []byte
		want      string // of the answer by the WAN port, hexadecimal; "": it is forwarded
		conflicts uint64
	}{
		{"request", arp(1, neighbor4, own4), "020000000009" + "02636e700001" + "0806" + "0001080006040002" + "02636e700001c0000201" + "020000000009c0000209", 0},
		{"request with a VLAN tag", arp(1, neighbor4, own4, 0x81006064),
			"020000000009" + "02636e700001" + "81006064" + "0806" + "0001080006040002" + "02636e700001c0000201" + "020000000009c0000209", 0},
		{"request with two tags", arp(1, neighbor4, own4, 0x88a80007, 0x81006064),
			"020000000009" + "02636e700001" + "88a80007" + "81006064" + "0806" + "0001080006040002" + "02636e700001c0000201" + "020000000009c0000209", 0},
		{"probe", arp(1, "0.0.0.0", own4), "020000000009" + "02636e700001" + "0806" + "0001080006040002" + "02636e700001c0000201" + "02000000000900000000", 0},
		{"request for another address", arp(1, neighbor4, "192.0.2.2"), "", 0},
		{"probe for another address", arp(1, "0.0.0.0", "192.0.2.2"), "", 0},
		{"announcement of another address", arp(1, neighbor4, neighbor4), "", 0},
		{"announcement of the gateway's address", arp(1, own4, own4), "", 1},
		{"gratuitous reply for the gateway's address", arp(2, own4, own4), "", 1},
		{"reply to the gateway", arp(2, neighbor4, own4), "", 0},
		{"another operation", arp(8, neighbor4, own4), "", 0},
		{"cut", cut, "", 0},
		{"another hardware type", otherHardware, "", 0},
		{"from a group address", groupSender, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := answerOf(t, proxying(testkit.DefaultPolicy(2)), wan, c.frame)
			if n := a.Count(wan, counters.AddressConflicts); n != c.conflicts {
				t.Errorf("%d conflicts, expected %d", n, c.conflicts)
			}
			if c.want == "" {
				a.mustForward(t, c.frame)
				return
			}
			got := a.mustAnswer(t, counters.ConsumedARP, counters.AnswersSentFirst)
			want, _ := hex.DecodeString(c.want)
			if want = append(want, make([]byte, 60-len(want))...); !bytes.Equal(got, want) {
				t.Errorf("answer % x,\nexpected % x", got, want)
			}
			plain := answerOf(t, testkit.DefaultPolicy(2), wan, c.frame)
			plain.mustForward(t, c.frame)
		})
	}
}

// TestNeighborDiscovery: Neighbor Solicitations for the gateway's address are answered as RFC 4861 7.2.4 says. Those that 7.1.1 forbids to
// process, and all other messages of Neighbor Discovery, are forwarded.
func TestNeighborDiscovery(t *testing.T) {
	const body = "20010db8000000000000000000000001" + "0201" + "02636e700000"
	unicast := icmpv6(portMAC(0), neighbor6, own6, 255, solicitation(own6, sourceLink...))
	wrong := bytes.Clone(unicast)
	wrong[len(wrong)-1] ^= 1
	code := solicitation(own6, sourceLink...)
	code[1] = 1
	for _, c := range []struct {
		name      string
		frame     []byte
		mac, dst  string // of the answer; "": it is forwarded
		tags      string
		flags     byte
		conflicts uint64
	}{
		{"to the solicited-node address", icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation(own6, sourceLink...)),
			"020000000077", neighbor6, "", 0x60, 0},
		{"unicast", unicast, "020000000077", neighbor6, "", 0x60, 0},
		{"without a link-layer address", icmpv6(portMAC(0), neighbor6, own6, 255, solicitation(own6)), "020000000009", neighbor6, "", 0x60, 0},
		{"with another option in front", icmpv6(portMAC(0), neighbor6, own6, 255, solicitation(own6, append([]byte{14, 1, 1, 2, 3, 4, 5, 6}, sourceLink...)...)),
			"020000000077", neighbor6, "", 0x60, 0},
		{"with a VLAN tag", icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation(own6, sourceLink...), 0x81000005),
			"020000000077", neighbor6, "81000005", 0x60, 0},
		{"from a global address", icmpv6(solicitedMAC, "2001:db8::9", solicitedNode, 255, solicitation(own6, sourceLink...)), "020000000077", "2001:db8::9", "", 0x60, 0},
		{"Duplicate Address Detection", icmpv6(solicitedMAC, "::", solicitedNode, 255, solicitation(own6)), "333300000001", "ff02::1", "", 0x20, 0},
		{"Duplicate Address Detection with a link-layer address", icmpv6(solicitedMAC, "::", solicitedNode, 255, solicitation(own6, sourceLink...)), "", "", "", 0, 0},
		{"for another address", icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation("2001:db8:5::1", sourceLink...)), "", "", "", 0, 0},
		{"for the gateway's IPv4 address", icmpv6(packet.MAC{0x33, 0x33, 0xff, 0, 2, 1}, neighbor6, "ff02::1:ff00:201", 255,
			solicitation("::ffff:"+own4, sourceLink...)), "", "", "", 0, 0},
		{"an advertisement of the gateway's IPv4 address", icmpv6(packet.AllNodesMAC, neighbor6, "ff02::1", 255, advertisement("::ffff:"+own4)), "", "", "", 0, 0},
		{"to another multicast address", icmpv6(packet.AllNodesMAC, neighbor6, "ff02::1", 255, solicitation(own6, sourceLink...)), "", "", "", 0, 0},
		{"of a multicast target", icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation(solicitedNode, sourceLink...)), "", "", "", 0, 0},
		{"an advertisement of another address", icmpv6(packet.AllNodesMAC, neighbor6, "ff02::1", 255, advertisement(neighbor6)), "", "", "", 0, 0},
		{"an advertisement of the gateway's address", icmpv6(packet.AllNodesMAC, own6, "ff02::1", 255, advertisement(own6)), "", "", "", 0, 1},
		{"a Router Solicitation", icmpv6(packet.MAC{0x33, 0x33, 0, 0, 0, 2}, neighbor6, "ff02::2", 255, []byte{133, 0, 0, 0, 0, 0, 0, 0}), "", "", "", 0, 0},
		{"from behind a router", icmpv6(solicitedMAC, neighbor6, solicitedNode, 254, solicitation(own6, sourceLink...)), "", "", "", 0, 0},
		{"with a code", icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, code), "", "", "", 0, 0},
		{"with an option of length 0", icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation(own6, 1, 0, 2, 0, 0, 0, 0, 9)), "", "", "", 0, 0},
		{"with an option that is cut", icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation(own6, 14, 2, 2, 0, 0, 0, 0, 9)), "", "", "", 0, 0},
		{"with a group address as link-layer address", icmpv6(solicitedMAC, neighbor6, solicitedNode, 255, solicitation(own6, 1, 1, 3, 0, 0, 0, 0, 9)), "", "", "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := answerOf(t, proxying(testkit.DefaultPolicy(2)), fabric, c.frame)
			if n := a.Count(fabric, counters.AddressConflicts); n != c.conflicts {
				t.Errorf("%d conflicts, expected %d", n, c.conflicts)
			}
			if c.mac == "" {
				a.mustForward(t, c.frame)
				return
			}
			got := a.mustAnswer(t, counters.ConsumedND, counters.AnswersNDSent)
			var p packet.Parsed
			packet.Parse(got, uint32(len(got)), &p)
			m := got[p.L4:]
			if hex.EncodeToString(got[:p.L3]) != c.mac+"02636e700000"+c.tags+"86dd" || p.Src != address(own6) || p.Dst != address(c.dst) || got[int(p.L3)+7] != 255 ||
				!bytes.Equal(m[:2], []byte{136, 0}) || !bytes.Equal(m[4:8], []byte{c.flags, 0, 0, 0}) || hex.EncodeToString(m[8:]) != body ||
				binary.BigEndian.Uint16(m[2:]) != packet.ICMPv6Checksum(p.Src, p.Dst, m) {
				t.Errorf("answer % x", got)
			}
			plain := answerOf(t, testkit.DefaultPolicy(2), fabric, c.frame)
			plain.mustForward(t, c.frame)
		})
	}
	for name, frame := range map[string][]byte{ // to the gateway's own address, so for nobody else
		"with a wrong checksum": wrong, "Duplicate Address Detection by unicast": icmpv6(portMAC(0), "::", own6, 255, solicitation(own6)),
	} {
		a := answerOf(t, proxying(testkit.DefaultPolicy(2)), wan, frame)
		if len(a.back)+len(a.through) != 0 || a.Count(wan, counters.DroppedToGateway) != 1 {
			t.Errorf("%s: %d frames back, %d forwarded", name, len(a.back), len(a.through))
		}
	}
}

// TestEcho: echo requests to the gateway's addresses are answered with their payload.
func TestEcho(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame []byte
	}{
		{"IPv4", ping4(neighbor4, own4, 56)},
		{"IPv4, no payload", ping4(neighbor4, own4, 0)},
		{"IPv4, odd payload", ping4(neighbor4, own4, 57)},
		{"IPv4, as long as a frame may be", ping4(neighbor4, own4, 1472)},
		{"IPv6", ping6("2001:db8::9", own6, 56)},
		{"IPv6 from a link-local address", ping6(neighbor6, own6, 56)},
	} {
		for port := range 2 {
			a := answerOf(t, proxying(testkit.DefaultPolicy(2)), port, c.frame)
			got := a.mustAnswer(t, counters.ConsumedEcho, counters.AnswersEchoSent)
			var p, q packet.Parsed
			packet.Parse(got, uint32(len(got)), &p)
			packet.Parse(c.frame, uint32(len(c.frame)), &q)
			asked, reply := c.frame[q.L4:q.IPEnd], got[p.L4:p.IPEnd]
			if !bytes.Equal(got[:6], neighborMAC[:]) || packet.SourceMAC(got) != portMAC(port) || p.Src != q.Dst || p.Dst != q.Src || p.DSCP != q.DSCP || p.ECN != packet.NotECT ||
				!bytes.Equal(reply[4:], asked[4:]) || len(got) < 60 {
				t.Errorf("%s: answer % x", c.name, got)
			}
			switch {
			case p.Family == 4 && (reply[0] != 0 || onesComplement(reply) != 0 || !packet.IPv4ChecksumOK(got, &p)):
				t.Errorf("%s: type %d, checksums of % x", c.name, reply[0], got)
			case p.Family == 6 && (reply[0] != 129 || binary.BigEndian.Uint16(reply[2:]) != packet.ICMPv6Checksum(p.Src, p.Dst, reply)):
				t.Errorf("%s: type %d, checksum of % x", c.name, reply[0], got)
			}
			plain := answerOf(t, testkit.DefaultPolicy(2), port, c.frame)
			plain.mustForward(t, c.frame)
		}
	}
}

// TestToGateway: what is for a gateway's address and has no use there is dropped and counted, and gets no answer. The same to other addresses is
// forwarded.
func TestToGateway(t *testing.T) {
	fragment := ping4(neighbor4, own4, 56)
	fragment[20] |= 0x20
	packet.PutIPv4(fragment[14:], uint16(len(fragment)-14), 0, 63, packet.ProtoICMP, uint32(address(neighbor4).Lo), uint32(address(own4).Lo))
	fragment[20] = 0x20
	wrong := ping4(neighbor4, own4, 56)
	wrong[40] ^= 1
	wrong6 := ping6(neighbor6, own6, 56)
	wrong6[60] ^= 1
	short := ping4(neighbor4, own4, 56)
	short[17] = 24 // octets of IP, four of them ICMP
	cnp := testkit.RoCE{Src: neighbor4, Dst: own4, Opcode: packet.CNP, DestQP: 7}.Frame()
	groupMAC := ping4(neighbor4, own4, 56)
	for name, frame := range map[string][]byte{
		"TCP":                                    other(neighbor4, own4, packet.ProtoTCP, 100),
		"TCP over IPv6":                          other("2001:db8::9", own6, packet.ProtoTCP, 100),
		"UDP to any port":                        stampPacket(address(neighbor4), address(own4), 5000, 53, 100),
		"a test packet that nobody answers":      stampPacket(address(neighbor4), address(own4), 5000, packet.STAMPPort, packet.STAMPLen),
		"a fragment of an echo request":          fragment,
		"an echo request that is damaged":        wrong,
		"an ICMPv6 echo request that is damaged": wrong6,
		"an echo request that is cut":            short,
		"an echo request from multicast":         ping4("224.0.0.9", own4, 56),
		"an echo request from broadcast":         ping4("255.255.255.255", own4, 56),
		"an echo request from loopback":          ping4("127.0.0.1", own4, 56),
		"an echo request from itself":            ping4(own4, own4, 56),
		"an ICMPv6 echo request from ::":         ping6("::", own6, 56),
		"a CNP":                                  cnp,
	} {
		for port := range 2 {
			a := answerOf(t, proxying(testkit.DefaultPolicy(2)), port, frame)
			if len(a.back)+len(a.through) != 0 || a.Count(port, counters.DroppedToGateway) != 1 {
				t.Errorf("%s from port %d: %d frames back, %d forwarded, %d counted", name, port, len(a.back), len(a.through), a.Count(port, counters.DroppedToGateway))
			}
			plain := answerOf(t, testkit.DefaultPolicy(2), port, frame)
			plain.mustForward(t, frame)
		}
	}
	groupMAC[6] |= 1
	if a := answerOf(t, proxying(testkit.DefaultPolicy(2)), wan, groupMAC); len(a.back) != 0 || a.Count(wan, counters.AnswersNoPlace) != 1 {
		t.Errorf("an echo request from a group's MAC address: %d frames back", len(a.back))
	}
	elsewhere := ping4(neighbor4, "192.0.2.2", 56)
	a := answerOf(t, proxying(testkit.DefaultPolicy(2)), wan, elsewhere)
	a.mustForward(t, elsewhere)
}

// TestAnswerLimits: at most 1000 echo replies a second leave by a port, and they don't use up the limit of ARP replies.
func TestAnswerLimits(t *testing.T) {
	r := testkit.New(t, testkit.Setup{Policy: proxying(testkit.DefaultPolicy(2)), Rate: 10e9})
	for range 2000 {
		r.Inject(t, wan, ping4(neighbor4, own4, 56))
		r.Settle()
		r.Advance(ms / 2)
	}
	sent, limited := r.Count(wan, counters.AnswersEchoSent), r.Count(wan, counters.AnswersLimited)
	if sent < 1000 || sent > 1010 || sent+limited != 2000 || r.Count(wan, counters.ConsumedEcho) != 2000 {
		t.Errorf("%d echo replies, %d beyond the limit", sent, limited)
	}
	for range 10 {
		r.Inject(t, wan, ping4(neighbor4, own4, 56), arp(1, neighbor4, own4))
	}
	r.Drain()
	if n := r.Count(wan, counters.AnswersSentFirst); n != 10 {
		t.Errorf("%d ARP replies beside too many echo requests, expected 10", n)
	}
	r.Close(t)
}

// TestAnswerLimitsByScope: a flood of requests in one VLAN doesn't keep the gateway from answering in another one, or without a tag.
func TestAnswerLimitsByScope(t *testing.T) {
	p := probing(address(own4), west4, 0)
	r := testkit.New(t, testkit.Setup{Policy: proxying(p), Rate: 10e9})
	sent := func() (n [3]uint64) {
		return [3]uint64{r.Count(wan, counters.AnswersSentFirst), r.Count(wan, counters.AnswersEchoSent), r.Count(wan, counters.STAMPReplySent)}
	}
	requests := func(vid uint32) [][]byte {
		return [][]byte{vlan(arp(1, neighbor4, own4), vid), vlan(ping4(neighbor4, own4, 56), vid),
			vlan(stampPacket(west4, address(own4), 5000, packet.STAMPPort, packet.STAMPLen), vid)}
	}
	for range 4000 {
		r.Inject(t, wan, requests(10)...)
		r.Settle()
		r.Advance(ms / 4)
	}
	for kind, n := range sent() {
		if n < 1000 || n > 1011 {
			t.Errorf("%d answers of kind %d in the flood", n, kind)
		}
	}
	before := sent()
	for _, vid := range []uint32{20, 30, 0} {
		r.Inject(t, wan, requests(vid)...)
	}
	r.Drain()
	for kind, n := range sent() {
		if n -= before[kind]; n != 3 {
			t.Errorf("%d of 3 answers of kind %d in other scopes", n, kind)
		}
	}
	r.Close(t)
}

// TestAnswersThatDontLeave: a request is consumed and counted if the queue for its answer is full, and an answer that never leaves is counted.
func TestAnswersThatDontLeave(t *testing.T) {
	p := proxying(notifying(byAnything...))
	above(p)
	s := newScene(t, p, nil)
	s.arrive(arp(1, neighbor4, own4))
	s.fill(300, data(true, 0)) // each causes a notification, and the queue takes 256 frames
	s.arrive(arp(1, neighbor4, own4))
	if n := s.Count(fabric, counters.AnswersNoPlace); n != 1 {
		t.Errorf("%d answers had no place, expected 1", n)
	}
	s.Close(t)
	if n := s.Count(fabric, counters.AnswersNotSent); n != 1 || s.Count(fabric, counters.ConsumedARP) != 2 {
		t.Errorf("%d answers were not sent, expected 1", n)
	}
}

// TestPortAddress: a port whose device has a MAC address answers with that one.
func TestPortAddress(t *testing.T) {
	mac := packet.MAC{0x0c, 1, 2, 3, 4, 5}
	r := testkit.New(t, testkit.Setup{Policy: proxying(testkit.DefaultPolicy(2)), Change: func(c *dataplane.Config) { c.Ports[wan].Address = mac }})
	r.Inject(t, wan, arp(1, neighbor4, own4))
	r.Drain()
	if got := r.Take(wan); len(got) != 1 || packet.SourceMAC(got[0].Octets) != mac || !bytes.Equal(got[0].Octets[22:28], mac[:]) {
		t.Errorf("answers %v", got)
	}
	r.Close(t)
}

// TestConsumedInBurst: the other frames of a burst from which some are consumed are forwarded in order, as far as they fit, and the queue counts their bytes.
func TestConsumedInBurst(t *testing.T) {
	for _, c := range []struct {
		name     string
		capacity uint64
		pattern  string // d: data, a: ARP for the gateway
		want     int    // data frames that fit
	}{
		{"one in the middle", 1 << 20, "ddadd", 4}, {"the first", 1 << 20, "addd", 3}, {"the last", 1 << 20, "ddda", 3}, {"every other", 1 << 20, "adadadad", 4},
		{"all", 1 << 20, "aaa", 0}, {"a whole burst but one", 1 << 20, strings.Repeat("d", 31) + "a" + strings.Repeat("d", 32), 63}, {"more than fits", 3500, "dadadadd", 3},
	} {
		s := newScene(t, proxyFor(packet.StandardCNP), func(s *testkit.Setup) { s.Capacity, s.Burst = c.capacity, 64 })
		data0, n := data(false, 0), 0
		for _, kind := range c.pattern {
			if kind == 'a' {
				s.Inject(t, fabric, arp(1, neighbor4, own4))
				continue
			}
			data0.PSN = uint32(n)
			s.Inject(t, fabric, data0.Frame())
			n++
		}
		s.Settle()
		if p := s.Plane.Port(wan); p.Depth[0] != uint64(1000*c.want) || p.Frames[0] != int64(c.want) || p.Watermark[0] != uint64(max(1000*c.want, 60)) { // 60: the frame on the line of the scene
			t.Errorf("%s: %d bytes and %d frames queued, at most %d bytes", c.name, p.Depth[0], p.Frames[0], p.Watermark[0])
		}
		s.Drain()
		got := s.Take(wan)
		if len(got) != c.want || s.Count(wan, counters.DroppedQueueOctets) != uint64(n-c.want) {
			t.Errorf("%s: %d data frames forwarded, expected %d", c.name, len(got), c.want)
		}
		for i, f := range got {
			if _, p := kindOf(f); p.PSN != uint32(i) {
				t.Errorf("%s: PSN %d at place %d", c.name, p.PSN, i)
			}
		}
		s.Close(t)
	}
}
