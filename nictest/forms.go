package nictest

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Sender is whom to notify, and the connection that it is notified about.
type Sender struct {
	Addr, Peer   packet.Addr // of the sender, and of this host
	MAC, FromMAC [6]byte     // next hop to the sender, and this host's MAC address
	QP, PeerQP   uint32      // of the sender, and of this host
	SrcPort      uint16      // UDP source port of the data
}

// Addresses are addresses that a Session may use besides those of the connection.
type Addresses struct {
	Gateway4, Gateway6 packet.Addr // sources of a gateway's notifications
	// Other and OtherPeer are the sender's and this host's address of the other IP version; zero: not known.
	Other, OtherPeer packet.Addr
	Priority         uint8 // class of the data, for PFC
}

// form is one form of notification.
type form struct {
	name, about string
	needs       string // what the sender insists on if it ignores this form
	only        int    // IP version; 0: both
	other       bool   // over the other IP version
	link        bool   // flow control of the link
	quick       bool   // part of the quick plan
	build       func(b *builder) int
}

// builder builds notifications of all forms to one sender.
type builder struct {
	s    Sender
	a    Addresses
	out  []byte
	gw   cnpgen.Gateway
	tags []byte // VLAN tag
	flip bool   // the other IP version
	qp   uint32
}

func newBuilder(s Sender, a Addresses) *builder {
	return &builder{s: s, a: a, qp: s.QP, gw: cnpgen.Gateway{
		IPv4: a.Gateway4, IPv6: a.Gateway6, HasIPv4: true, HasIPv6: true, DSCP: cnpDSCP, Code: packet.DefaultCodePoints, ICRCExtensionHeaders: true,
	}}
}

const (
	cnpDSCP, cnpTTL = 48, 64
	foreignQP       = 0x5a5a5a
	foreignPKey     = 0x9234
	limitedPKey     = 0x7fff
)

// target describes the sender and its flow to the builders of package cnpgen.
func (b *builder) target() (t cnpgen.Target) {
	t.Src, t.Dst, t.Family = b.s.Addr, b.s.Peer, 6
	if b.flip {
		t.Src, t.Dst = b.a.Other, b.a.OtherPeer
	}
	if t.Src.Is4() {
		t.Family = 4
	}
	copy(t.Link[:], b.s.MAC[:])
	copy(t.Link[6:], b.s.FromMAC[:])
	t.Tags = uint8(len(b.tags) / packet.VLANTagLen)
	copy(t.Link[12:], b.tags)
	t.SrcPort, t.PKey, t.DestQP = b.s.SrcPort, packet.DefaultPKey, b.s.PeerQP
	return t
}

// cnp builds a standard CNP with these fields, has change alter the BTH and what follows it up to the ICRC, and makes the ICRC right again.
func (b *builder) cnp(fields cnpgen.CNPFields, change func(bth []byte)) int {
	t := b.target()
	b.gw.CNP = fields
	n := cnpgen.StandardCNP(b.out, &t, &b.gw, b.qp)
	if n == 0 || change == nil {
		return n
	}
	l3 := packet.EthernetLen + len(b.tags)
	bth := n - packet.ICRCLen - packet.CNPReservedLen - packet.BTHLen
	change(b.out[bth : n-packet.ICRCLen])
	packet.PutICRC(b.out, l3, bth, n-packet.ICRCLen, true)
	return n
}

// own are fields with a traffic class and TTL.
func own(dscp, ecn, ttl uint8) cnpgen.CNPFields {
	return cnpgen.CNPFields{Own: true, Class: dscp<<2 | ecn, HopLimit: ttl}
}

// flags sets octet 4 of the BTH.
func flags(v byte) func([]byte) { return func(bth []byte) { bth[4] = v } }

// pKey sets the partition key.
func pKey(key uint16) func([]byte) {
	return func(bth []byte) { bth[2], bth[3] = byte(key>>8), byte(key) }
}

func fields(f cnpgen.CNPFields) func(*builder) int {
	return func(b *builder) int { return b.cnp(f, nil) }
}

func altered(change func([]byte)) func(*builder) int {
	return func(b *builder) int { return b.cnp(cnpgen.CNPFields{}, change) }
}

func tagged(vid byte) func(*builder) int {
	return func(b *builder) int {
		const priority = 6 << 5
		b.tags = []byte{0x81, 0, priority, vid}
		return b.cnp(cnpgen.CNPFields{}, nil)
	}
}

// longHaul is the request of Long-haul CNPs: 30 percent less.
var longHaul = cnpgen.LongHaul{Level: 180, Action: cnpgen.RateReduce, Parameter: 30}

// forms are all forms. "standard-cnp" is what a gateway sends by default; each other form of a standard CNP differs from it in one field.
var forms = []form{
	{name: baseForm, about: "source address of the receiver, DSCP 48, Not-ECT, Don't Fragment, TTL 64, P_Key 0xFFFF, BECN", quick: true,
		build: fields(cnpgen.CNPFields{})},
	{name: "source-gateway", about: "source address of a gateway", needs: "the receiver's address as source", quick: true, build: fields(cnpgen.CNPFields{FromGateway: true})},
	{name: "dscp-0", about: "DSCP 0", needs: "a DSCP other than 0", build: fields(own(0, packet.NotECT, cnpTTL))},
	{name: "dscp-26", about: "DSCP 26", build: fields(own(26, packet.NotECT, cnpTTL))},
	{name: "ect-0", about: "ECT(0)", build: fields(own(cnpDSCP, packet.ECT0, cnpTTL))},
	{name: "ce", about: "CE", build: fields(own(cnpDSCP, packet.CE, cnpTTL))},
	{name: "no-df", about: "without Don't Fragment", needs: "Don't Fragment", only: 4, build: fields(cnpgen.CNPFields{MayFragment: true})},
	{name: "ttl-1", about: "TTL 1", needs: "a TTL above 1", build: fields(own(cnpDSCP, packet.NotECT, 1))},
	{name: "ttl-255", about: "TTL 255", build: fields(own(cnpDSCP, packet.NotECT, 255))},
	{name: "port-0", about: "UDP source port 0", needs: "the flow's UDP source port", build: fields(cnpgen.CNPFields{OwnPort: true})},
	{name: "p-key-limited", about: "P_Key 0x7FFF", needs: "full membership in the P_Key", build: altered(pKey(limitedPKey))},
	{name: "p-key-foreign", about: "P_Key 0x9234", needs: "the flow's P_Key", build: altered(pKey(foreignPKey))},
	{name: "no-becn", about: "neither BECN nor FECN", needs: "BECN", build: altered(flags(0))},
	{name: "fecn", about: "FECN instead of BECN", build: altered(flags(packet.FECN))},
	{name: "fecn-becn", about: "FECN and BECN", build: altered(flags(packet.FECN | packet.BECN))},
	{name: "icrc-wrong", about: "wrong ICRC", needs: "a right ICRC", quick: true, build: func(b *builder) int {
		n := b.cnp(cnpgen.CNPFields{}, nil)
		if n > 0 {
			b.out[n-1] ^= 0x5a
		}
		return n
	}},
	{name: foreignForm, about: "DestQP that the sender doesn't have", needs: "the QP's number", quick: true, build: func(b *builder) int {
		b.qp = foreignQP
		return b.cnp(cnpgen.CNPFields{}, nil)
	}},
	{name: "body", about: "reserved octets not 0", needs: "zeros in the reserved octets", build: altered(func(bth []byte) {
		for i := packet.BTHLen; i < len(bth); i++ {
			bth[i] = 0xa5
		}
	})},
	{name: "tag-priority", about: "VLAN tag with VID 0, PCP 6", needs: "no priority tag", build: tagged(0)},
	{name: "tag-foreign", about: "VLAN tag with VID 99", needs: "the flow's VLAN", build: tagged(99)},
	{name: "other-ip-version", about: "over the other IP version", other: true, build: func(b *builder) int {
		b.flip = true
		return b.cnp(cnpgen.CNPFields{}, nil)
	}},
	{name: "fast-cnp", about: "Fast CNP", only: 6, quick: true, build: func(b *builder) int {
		t := b.target()
		n, _ := cnpgen.FastCNP(b.out, &t, &b.gw, packet.IOAMTrace{})
		return n
	}},
	{name: "long-haul-cnp", about: "Long-haul CNP, rate reduced by 30 %", quick: true, build: func(b *builder) int {
		t, l := b.target(), longHaul
		l.SourceQP = b.qp
		return cnpgen.LongHaulCNP(b.out, &t, &b.gw, &l, nil)
	}},
	{name: "long-haul-cnp-icmpv6", about: "Long-haul CNP as ICMPv6", only: 6, build: func(b *builder) int {
		t, l := b.target(), longHaul
		l.SourceQP = b.qp
		return cnpgen.LongHaulCNPICMPv6(b.out, &t, &b.gw, &l, nil)
	}},
	{name: "ppfc", about: "PPFC, pause of 200 us", quick: true, build: func(b *builder) int {
		const pause = 200 // us
		t := b.target()
		return cnpgen.PPFCNotification(b.out, &t, &b.gw, &cnpgen.PPFC{Port: 1, Duration: pause})
	}},
	{name: "pfc", about: "PFC for the data's priority, of 65535 quanta", link: true, quick: true, build: func(b *builder) int {
		f := packet.PFC{Enabled: 1 << b.a.Priority}
		f.Time[b.a.Priority] = 0xffff
		return b.control(f.Put)
	}},
	{name: "pause", about: "PAUSE of 65535 quanta", link: true, build: func(b *builder) int { return b.control(packet.Pause{Time: 0xffff}.Put) }},
}

// foreignForm is a form that no sender obeys.
const foreignForm = "qp-foreign"

// control builds a MAC control frame.
func (b *builder) control(put func([]byte)) int {
	const least = 60 // bytes of a frame without FCS
	out := b.out[:least]
	clear(out)
	copy(out, packet.MACControlAddr[:])
	copy(out[6:], b.s.FromMAC[:])
	out[12], out[13] = packet.EtherTypeMACControl>>8, packet.EtherTypeMACControl&0xff
	put(out[packet.EthernetLen:])
	return least
}

// formOf returns a form by name; nil if there is none.
func formOf(name string) *form {
	for i := range forms {
		if forms[i].name == name {
			return &forms[i]
		}
	}
	return nil
}

// About describes a form.
func About(name string) string {
	if f := formOf(name); f != nil {
		return f.about
	}
	return name
}

// build writes a notification of a form to out, and returns its length, 0 if it can't be built.
func (b *builder) build(f *form, out []byte) int {
	b.out, b.tags, b.flip, b.qp = out, nil, false, b.s.QP
	return f.build(b)
}

// trusted are the addresses that a session's notifications may come from, besides the peer.
func trusted(a Addresses) (all []netip.Prefix) {
	for _, x := range []packet.Addr{a.Gateway4, a.Gateway6} {
		if x != (packet.Addr{}) {
			all = append(all, netip.PrefixFrom(x.Netip(), x.Netip().BitLen()))
		}
	}
	return all
}
