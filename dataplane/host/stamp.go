package host

import (
	"slices"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file implements the gateway's part in STAMP (RFC 8762, unauthenticated mode): a Session-Sender on each WAN port that has a peer, and
// a stateless Session-Reflector for the peers that the operator names.

const (
	outstanding  = 16  // outstanding test packets
	stampTTL     = 255 // so that the peer's reply shows the number of hops
	dynamicPorts = 0xc000
)

// STAMPSession has the peer of a port's STAMP probes. The zero STAMPSession: none.
type STAMPSession struct {
	Peer     packet.Addr
	Interval int64 // between test packets, ns; 0: none is sent
}

// session is a port's STAMP session with its peer. Any worker may send a test packet and receive its reply.
type session struct {
	source uint16       // UDP port, a dynamic one (RFC 8762 4.1, RFC 6335 6): an attacker off path doesn't know it
	due    atomic.Int64 // when the next test packet is sent, ns
	next   atomic.Uint32
	tests  [outstanding]test // by Sequence Number

	answered atomic.Int64  // when the last reply came, ns; 0: none
	by       atomic.Uint32 // the worker whose test packet it was about
}

// test is a test packet that was sent.
type test struct {
	timestamp atomic.Uint64 // in the packet; 0: the reply has come
	sent      atomic.Int64  // ns
	by        atomic.Uint32 // the worker
}

// AnsweredIntervals is the number of intervals after a reply during which only the worker whose test packet was answered sends them, with the same
// Ethernet header.
const AnsweredIntervals = 3

// Answers reports whether a port's peer answers the test packets of a worker.
func (s *Stage) Answers(port int, now, interval int64) (by uint32, ok bool) {
	x := &s.ports[port].session
	last := x.answered.Load()
	return x.by.Load(), last != 0 && now-last <= AnsweredIntervals*interval
}

// Due reports whether a worker should send a port's next test packet.
func (s *Stage) Due(port int, worker uint32, now, interval int64) bool {
	if now < s.ports[port].session.due.Load() {
		return false
	}
	by, ok := s.Answers(port, now, interval)
	return !ok || by == worker
}

// Probe writes a port's next test packet, behind an Ethernet header that leads to the peer, if no other worker has.
func (s *Stage) Probe(f *Frame, worker uint32, link []byte) (r Result) {
	x, to := &s.ports[f.Port].session, f.Session.Peer
	src, ok := f.Gateway.IPv6, f.Gateway.HasIPv6
	if to.Is4() {
		src, ok = f.Gateway.IPv4, f.Gateway.HasIPv4
	}
	due := x.due.Load()
	if !ok || f.Now < due || !x.due.CompareAndSwap(due, f.Now+f.Session.Interval) {
		return r
	}
	size := stampSize(len(link), src)
	if size > len(f.Out) {
		r.Event = STAMPNoPlace
		return r
	}
	copy(f.Out, link)
	stamp := packet.STAMPTest{Sequence: x.next.Add(1) - 1, Timestamp: packet.NTPTime(f.Now + f.Ahead), Error: packet.STAMPError}
	sent := &x.tests[stamp.Sequence%outstanding]
	sent.timestamp.Store(0) // a reply to the earlier test of this slot must not match this one
	sent.sent.Store(f.Now)
	sent.by.Store(worker)
	sent.timestamp.Store(stamp.Timestamp)
	stamp.Put(f.Out[size-packet.STAMPLen : size])
	packet.PutUDPDatagram(f.Out[:size], len(link), src, to, f.Gateway.DSCP, stampTTL, x.source, packet.STAMPPort)
	r.Size = size
	return r
}

// stampSize is the length of a STAMP packet behind an Ethernet header of this length.
func stampSize(link int, src packet.Addr) int {
	return link + packet.IPHeaderLen(src) + packet.UDPLen + packet.STAMPLen
}

// stamp reports whether a UDP packet is a STAMP packet for the gateway, and processes it: a test packet from a peer gets a reply, and
// a reply is matched with the gateway's own test packet. A test packet from the reflectors' port gets none: two reflectors would answer each
// other.
func (s *Stage) stamp(f *Frame, r *Result) bool {
	p := f.Parsed
	switch {
	case p.DstPort == packet.STAMPPort && p.SrcPort != packet.STAMPPort && p.SrcPort != 0 && slices.Contains(f.Reflects, p.Src):
		stamp, ok := stampOf(f)
		if ok {
			s.reflect(f, r, packet.DecodeSTAMPTest(stamp))
		}
		return ok
	case p.SrcPort == packet.STAMPPort && p.Src == f.Session.Peer && p.DstPort == s.ports[f.Port].session.source:
		stamp, ok := stampOf(f)
		return ok && s.match(f, r, packet.DecodeSTAMPReply(stamp))
	}
	return false
}

// stampOf returns the payload of a UDP packet to the gateway's own address, if it is complete, its checksum is right, and it can be STAMP.
func stampOf(f *Frame) ([]byte, bool) {
	p, at := f.Parsed, int(f.Parsed.L4)
	if !f.Gateway.Owns(p.Dst) || p.IPv4Mapped() || at == 0 {
		return nil, false
	}
	h := packet.DecodeUDP(f.Data[at:])
	end := at + int(h.Length)
	if end > int(p.IPEnd) || end > len(f.Data) || int(h.Length) < packet.UDPLen+packet.STAMPLen {
		return nil, false
	}
	if (h.Checksum != 0 || p.Family == 6) && h.Checksum != packet.UDPChecksum(p.Src, p.Dst, f.Data[at:end]) {
		return nil, false
	}
	return f.Data[at+packet.UDPLen : end], true
}

// reflect replies to a test packet, by its ingress port (RFC 8762 4.3). The reply leaves in this step if the line is free, so both its
// receive and its send time are the time of the step.
func (s *Stage) reflect(f *Frame, r *Result, test packet.STAMPTest) {
	p := f.Parsed
	l3 := int(p.L3)
	out := s.answer(f, r, STAMP, stampSize(l3, p.Dst))
	if out == nil {
		r.Event += STAMPLimited - AnswerLimited
		return
	}
	packet.ReplyEthernet(out, f.Data, p)
	now := packet.NTPTime(f.Now + f.Ahead)
	reply := packet.STAMPReply{
		Sequence: test.Sequence, Timestamp: now, Error: packet.STAMPError, Received: now, Test: test, TTL: timeToLive(f.Data, p),
	}
	reply.Put(out[len(out)-packet.STAMPLen:])
	packet.PutUDPDatagram(out, l3, p.Dst, p.Src, f.Gateway.DSCP, stampTTL, packet.STAMPPort, p.SrcPort)
}

// timeToLive is a packet's TTL or Hop Limit.
func timeToLive(data []byte, p *packet.Parsed) uint8 {
	const ttl, hopLimit = 8, 7 // offsets in the headers
	if p.Family == 4 {
		return data[int(p.L3)+ttl]
	}
	return data[int(p.L3)+hopLimit]
}

// match measures the round-trip time by the reply to an outstanding test packet, minus the peer's processing time (RFC 8762 4.2). It
// returns false if no test packet matches.
func (s *Stage) match(f *Frame, r *Result, reply packet.STAMPReply) bool {
	x := &s.ports[f.Port].session
	t := &x.tests[reply.Test.Sequence%outstanding]
	sent, by := t.sent.Load(), t.by.Load()
	if reply.Test.Timestamp == 0 || !t.timestamp.CompareAndSwap(reply.Test.Timestamp, 0) {
		return false
	}
	if there, elapsed := packet.NTPSince(reply.Timestamp, reply.Received), f.Now-sent; there >= 0 {
		r.RTT = elapsed - there
		x.by.Store(by)
		x.answered.Store(f.Now)
	}
	return true
}
