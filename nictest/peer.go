package nictest

import (
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Peer measures the first sender that sends data to an endpoint, by a Session. It is a runner.Probe. It also answers ARP and Neighbor Solicitations for the
// endpoint's address, as no kernel has it.
type Peer struct {
	c       Config
	addr    packet.Addr
	mac     packet.MAC
	session *Session
	qp      uint32 // of the endpoint, to which the data goes; 0: none yet
	err     error
	stopped bool

	begin   int64
	heard   bool // any frame for the endpoint's address came
	silence int64
	now     int64
	answer  []byte // of ARP or Neighbor Discovery, to be sent
	parsed  packet.Parsed
	from    packet.Addr // the sender, before data
	counts  [256]struct{ qp, packets uint32 }
	buffer  [packet.EthernetLen + 2*packet.VLANTagLen + packet.IPv6Len + packet.NeighborAdvertisementLen]byte
}

// enough is how many data packets of a QP make it the one that is measured: more than the exchange of parameters has.
const enough = 64

// NewPeer makes a Peer of an endpoint with these addresses, which waits as long as silence for data, at the beginning and later.
func NewPeer(c Config, addr packet.Addr, mac packet.MAC, silence int64) (*Peer, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("nictest: %w", err)
	}
	return &Peer{c: c, addr: addr, mac: mac, silence: silence, begin: -1}, nil
}

// Session is the measurement; nil before data comes.
func (p *Peer) Session() *Session { return p.session }

// Err is why the measurement ended early.
func (p *Peer) Err() error { return p.err }

// Stop ends the measurement; what was measured stays.
func (p *Peer) Stop() { p.stopped = true }

// Done reports whether the measurement has ended.
func (p *Peer) Done() bool { return p.stopped || p.err != nil || p.session != nil && p.session.Done() }

// Look notes the time, and ends the measurement of a silent sender.
func (p *Peer) Look(now int64) {
	if p.begin < 0 {
		p.begin = now
	}
	p.now = now
	switch s := p.session; {
	case p.Done():
	case s != nil && now-s.LastData() > p.silence:
		p.err = fmt.Errorf("%v sent nothing for %d s in trial %q (%d of %d are complete): its program may have ended, or the NIC stopped; run it longer, "+
			"such as ib_write_bw -R -D 600", p.session.sender.Addr.Netip(), p.silence/second, s.Current(), len(s.results), len(s.c.Plan))
	case s == nil && now-p.begin > p.silence && !p.heard:
		p.err = fmt.Errorf("nothing came for %v in %d s: check that the sender runs, with this address, and that the cable, the VLAN and the interface are right",
			p.addr.Netip(), p.silence/second)
	case s == nil && now-p.begin > p.silence:
		p.err = fmt.Errorf("%v sent packets but no data in %d s: check that it runs ib_write_bw -R, rping, or has these QP numbers, and that its path MTU is --mtu",
			p.from.Netip(), p.silence/second)
	}
}

// Received sees a frame.
func (p *Peer) Received(now int64, h *endpoint.Host, frame []byte, length int) {
	p.Look(now)
	x := &p.parsed
	packet.Parse(frame, uint32(length), x)
	if x.Kind != packet.RoCEv2 {
		p.neighbor(frame, x)
		return
	}
	if x.Dst != p.addr || x.Encapsulated() {
		return
	}
	p.heard, p.from = true, x.Src
	if !x.Opcode.HasPayload() || x.DestQP == packet.GSIQP {
		return
	}
	switch {
	case p.session != nil:
		if x.DestQP == p.qp && x.Src == p.session.sender.Addr {
			p.session.Data(now, length)
		}
	case p.busy(x.DestQP):
		p.start(now, h, frame, x)
	}
}

// busy counts a data packet, and reports whether its QP has had enough. QPs with the same last octet share a count.
func (p *Peer) busy(qp uint32) bool {
	c := &p.counts[uint8(qp)]
	if c.qp != qp {
		c.qp, c.packets = qp, 0
	}
	c.packets++
	return c.packets >= enough
}

// start begins the session.
func (p *Peer) start(now int64, h *endpoint.Host, frame []byte, x *packet.Parsed) {
	to, port, ok := h.Peer(x.DestQP)
	if !ok || p.Done() {
		return
	}
	s := Sender{Addr: x.Src, Peer: p.addr, MAC: packet.SourceMAC(frame), FromMAC: p.mac, QP: to.QP, PeerQP: x.DestQP, SrcPort: port}
	p.qp = x.DestQP
	p.session, p.err = NewSession(now, p.c, s)
}

// Due is when Next has something to send.
func (p *Peer) Due() (at int64, any bool) {
	switch {
	case p.answer != nil:
		return p.now, true
	case p.session != nil && !p.Done():
		return p.session.Due()
	}
	return 0, false
}

// Next writes the next frame.
func (p *Peer) Next(now int64, out []byte) int {
	if p.answer != nil {
		n := copy(out, p.answer)
		p.answer = nil
		return n
	}
	if p.session == nil || p.Done() {
		return 0
	}
	return p.session.Next(now, out)
}

// neighbor answers an ARP request or a Neighbor Solicitation for the endpoint's address.
func (p *Peer) neighbor(frame []byte, x *packet.Parsed) {
	l3 := packet.EthernetLen + packet.VLANTagLen*int(x.Tags)
	if len(frame) < l3 {
		return
	}
	out := p.buffer[:]
	if binary.BigEndian.Uint16(frame[l3-2:]) == packet.EtherTypeARP {
		asked, ok := packet.DecodeARP(frame[l3:])
		if !ok || asked.Operation != packet.ARPRequest || asked.TargetIP != p.addr || !asked.SenderMAC.Unicast() {
			return
		}
		packet.PutEthernet(out, frame, x, p.mac, asked.SenderMAC)
		reply := packet.ARP{Operation: packet.ARPReply, SenderMAC: p.mac, SenderIP: p.addr, TargetMAC: asked.SenderMAC, TargetIP: asked.SenderIP}
		reply.Put(out[l3:])
		p.answer = out[:l3+packet.ARPLen]
		return
	}
	asked, ok := packet.DecodeNeighborSolicitation(frame, x)
	if !ok || asked.Target != p.addr || asked.Probing || !asked.Link.Unicast() {
		return
	}
	to := x.Src
	packet.PutEthernet(out, frame, x, p.mac, asked.Link)
	packet.PutIPv6(out[l3:], packet.NeighborAdvertisementLen, cnpDSCP<<2, packet.ProtoICMPv6, packet.NeighborHopLimit, &p.addr, &to)
	claim := packet.NeighborAdvertisement{Solicited: true, Target: p.addr, Link: p.mac}
	claim.Put(out[l3+packet.IPv6Len:], p.addr, to)
	p.answer = out[:l3+packet.IPv6Len+packet.NeighborAdvertisementLen]
}
