package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// observed is what the two captures show, whatever the gateway says of itself: dc.pcap on the data-centre hosts' side of the
// fabric port, wan.pcap on the far side of the WAN port.
type observed struct {
	flows         []*flow
	sent          int // frames of the hosts
	forwarded     []captured
	notifications []notification
	strangers     int   // frames on the WAN side that no host sent, in that order
	ceMarked      int   // got CE on the way
	ceOnNotECT    int   // of those, by frames that weren't ECN-capable
	badSums       int   // forwarded frames with a wrong IPv4 checksum or ICRC
	leaked        int   // frames of the gateway's own on the WAN side
	first         int64 // when a host first sent, nanoseconds since 1970
}

// flow is one flow as the captures show it.
type flow struct {
	src, dst netip.Addr
	destQP   uint32
	sourceQP uint32 // the true one, from the notes beside the captures
	host     string
	accepts  string
	ect      bool

	transport       string
	sent, forwarded int
	ce              int
	told            map[string]int // notifications by kind
}

func observe(hosts []host, dir string) (*observed, error) {
	dc, err := readPcap(dir + "/dc.pcap")
	if err != nil {
		return nil, err
	}
	wan, err := readPcap(dir + "/wan.pcap")
	if err != nil {
		return nil, err
	}
	o := &observed{}
	var sent []captured
	for _, f := range dc {
		var p packet.Parsed
		packet.Parse(f.data, uint32(len(f.data)), &p)
		if fromGateway(&p) {
			o.notifications = append(o.notifications, notification{captured: f, parsed: p})
			continue
		}
		if p.Kind != packet.RoCEv2 {
			return nil, fmt.Errorf("dc.pcap holds a frame that is neither a host's nor the gateway's: %x", f.data[:min(64, len(f.data))])
		}
		sent = append(sent, f)
		fl := o.flow(hosts, &p)
		fl.sent++
	}
	if len(sent) == 0 {
		return nil, fmt.Errorf("dc.pcap holds no frame that a host sent")
	}
	o.sent, o.first = len(sent), sent[0].at
	o.match(hosts, sent, wan)
	for i := range o.notifications {
		o.assign(hosts, &o.notifications[i])
	}
	return o, nil
}

func fromGateway(p *packet.Parsed) bool {
	return p.Src == packet.AddrFrom(gateway4) || p.Src == packet.AddrFrom(gateway6)
}

// flow finds or adds the flow that a host's packet belongs to.
func (o *observed) flow(hosts []host, p *packet.Parsed) *flow {
	src, dst := p.Src.Netip(), p.Dst.Netip()
	for _, f := range o.flows {
		if f.src == src && f.dst == dst && f.destQP == p.DestQP {
			return f
		}
	}
	f := &flow{src: src, dst: dst, destQP: p.DestQP, transport: p.Opcode.Transport(), ect: p.ECN != packet.NotECT, told: map[string]int{}}
	for _, h := range hosts {
		if h.addr != src {
			continue
		}
		f.host, f.accepts = h.name, h.accepts
		for _, pair := range h.pairs {
			if pair.receiver == dst && pair.peerQP == p.DestQP {
				f.sourceQP = pair.qp
			}
		}
	}
	o.flows = append(o.flows, f)
	return f
}

// match walks both captures together. What was forwarded must be what was sent, in that order and with gaps where frames were
// dropped, and differ in nothing but CE (and with it the IPv4 header checksum).
func (o *observed) match(hosts []host, sent, wan []captured) {
	at := 0
	for _, w := range wan {
		var p packet.Parsed
		packet.Parse(w.data, uint32(len(w.data)), &p)
		if fromGateway(&p) {
			o.leaked++
			continue
		}
		o.forwarded = append(o.forwarded, w)
		found := at
		for found < len(sent) && !sameButCE(sent[found].data, w.data, &p) {
			found++
		}
		if found == len(sent) {
			o.strangers++
			continue
		}
		at = found + 1
		o.count(hosts, sent[found].data, w.data, &p)
	}
}

func (o *observed) count(hosts []host, sent, got []byte, p *packet.Parsed) {
	var before packet.Parsed
	packet.Parse(sent, uint32(len(sent)), &before)
	f := o.flow(hosts, p)
	f.forwarded++
	if p.ECN == packet.CE && before.ECN != packet.CE {
		f.ce++
		o.ceMarked++
		if before.ECN == packet.NotECT {
			o.ceOnNotECT++
		}
	}
	if !packet.VerifyICRC(got, p) || p.Family == 4 && checksum(got[p.L3:p.L4]) != 0 {
		o.badSums++
	}
}

// sameButCE compares two frames; p is of the second. Where that has CE, the first may have another codepoint and, for IPv4, another
// header checksum.
func sameButCE(a, b []byte, p *packet.Parsed) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if p.ECN != packet.CE || len(a) != len(b) || p.Family == 0 {
		return false
	}
	l3, l4 := int(p.L3), int(p.L4)
	if !bytes.Equal(a[l4:], b[l4:]) {
		return false
	}
	a, b = slices.Clone(a[:l4]), slices.Clone(b[:l4])
	if p.Family == 4 {
		a[l3+1] |= packet.CE
		a[l3+10], a[l3+11], b[l3+10], b[l3+11] = 0, 0, 0, 0
	} else {
		a[l3+1] |= packet.CE << 4
	}
	return bytes.Equal(a, b)
}
