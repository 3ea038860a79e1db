package dataplane

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file implements the gateway's part in STAMP (RFC 8762, unauthenticated mode): a Session-Sender on each WAN port that has a peer, and
// a stateless Session-Reflector for the peers that the operator names.

const (
	outstanding  = 16  // outstanding test packets
	stampTTL     = 255 // so that the peer's reply shows the number of hops
	dynamicPorts = 0xc000
)

// session is a port's STAMP session with its peer. Any worker may send a test packet and receive its reply.
type session struct {
	due   atomic.Int64 // when the next test packet is sent, ns
	next  atomic.Uint32
	tests [outstanding]test // by Sequence Number

	answered atomic.Int64  // when the last reply came, ns; 0: none
	by       atomic.Uint32 // the worker whose test packet it was about
}

// answeredIntervals is the number of intervals after a reply during which only the worker whose test packet was answered sends them, with the same
// Ethernet header.
const answeredIntervals = 3

// answers reports whether the peer answers the test packets of a worker.
func (s *session) answers(now, interval int64) (by uint32, ok bool) {
	last := s.answered.Load()
	return s.by.Load(), last != 0 && now-last <= answeredIntervals*interval
}

// test is a test packet that was sent.
type test struct {
	timestamp atomic.Uint64 // in the packet; 0: the reply has come
	sent      atomic.Int64  // ns
	by        atomic.Uint32 // the worker
}

// senderPort is the UDP source port of a port's test packets, a dynamic one (RFC 8762 4.1, RFC 6335 6). An attacker off path doesn't know
// it.
func (d *Dataplane) senderPort(port int) uint16 {
	const odd, odder = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9 // so that it doesn't disclose the seed
	return dynamicPorts | uint16(keyhash.Fold(d.seed^odd, odder+2*uint64(port))&(1<<16-1-dynamicPorts))
}

// ntp converts a time of the workers' clock to an NTP timestamp.
func (d *Dataplane) ntp(now int64) uint64 { return packet.NTPTime(now + d.wallClock.Load()) }

// own returns the gateway's address of the same family.
func (w *Worker) own(a packet.Addr) (packet.Addr, bool) {
	g := &w.policy.Build
	if a.Is4() {
		return g.IPv4, g.HasIPv4
	}
	return g.IPv6, g.HasIPv6
}

// sendTest sends a port's next test packet if it is due. Nothing is sent before a data packet has shown the Ethernet header towards the
// peer, nor while the line is busy: the packet must leave at the time of its timestamp.
func (w *Worker) sendTest(port int, to *STAMPSession) {
	s, t := &w.plane.paths[port].session, &w.trackers[port]
	due := s.due.Load()
	if w.now < due || t.linkLen == 0 || w.batch.Drain {
		return
	}
	if by, ok := s.answers(w.now, to.Interval); ok && by != uint32(w.id) {
		return
	}
	q, spares := &w.egress[port], len(w.batch.Spare)
	src, ok := w.own(to.Peer)
	if !ok || q.line.busy(w.now) || !s.due.CompareAndSwap(due, w.now+to.Interval) {
		return
	}
	if q.notifications.full() || spares == 0 {
		w.counters.add(port, STAMPNoPlace, 1)
		return
	}
	frame := stampFrame(w.batch.Bytes(w.batch.Spare[spares-1]), t.link[:t.linkLen], src)
	if frame == nil {
		w.counters.add(port, STAMPNoPlace, 1)
		return
	}
	stamp := packet.STAMPTest{Sequence: s.next.Add(1) - 1, Timestamp: w.plane.ntp(w.now), Error: packet.STAMPError}
	sent := &s.tests[stamp.Sequence%outstanding]
	sent.timestamp.Store(0) // a reply to the earlier test of this slot must not match this one
	sent.sent.Store(w.now)
	sent.by.Store(uint32(w.id))
	sent.timestamp.Store(stamp.Timestamp)
	stamp.Put(frame[len(frame)-packet.STAMPLen:])
	packet.PutUDPDatagram(frame, t.linkLen, src, to.Peer, w.policy.Build.DSCP, stampTTL, w.plane.senderPort(port), packet.STAMPPort)
	w.originate(port, len(frame), tagTest)
}

// stampFrame returns the part of a buffer for a STAMP packet with this Ethernet header; nil if it doesn't fit.
func stampFrame(out, link []byte, src packet.Addr) []byte {
	size := len(link) + packet.IPHeaderLen(src) + packet.UDPLen + packet.STAMPLen
	if size > len(out) {
		return nil
	}
	copy(out, link)
	return out[:size]
}

// takesSTAMP reports whether a UDP packet is a STAMP packet for the gateway, and processes it: a test packet from a peer gets a reply, and
// a reply is matched with the gateway's own test packet. They arrive on WAN ports only. Any other packet is forwarded.
func (w *Worker) takesSTAMP(port int, data []byte, p *packet.Parsed) bool {
	if w.ports[port].Role != WAN {
		return false
	}
	switch {
	case p.DstPort == packet.STAMPPort && w.reflectsTo(p):
		stamp, ok := w.stampOf(data, p)
		if ok {
			w.reflect(port, data, p, stamp)
		}
		return ok
	case p.SrcPort == packet.STAMPPort && p.Src == w.policy.Ports[port].STAMP.Peer && p.DstPort == w.plane.senderPort(port):
		stamp, ok := w.stampOf(data, p)
		return ok && w.matchReply(port, packet.DecodeSTAMPReply(stamp))
	}
	return false
}

// stampOf returns the payload of a UDP packet to the gateway's own address, if it is complete, its checksum is right, and it can be STAMP.
func (w *Worker) stampOf(data []byte, p *packet.Parsed) ([]byte, bool) {
	if own, ok := w.own(p.Dst); !ok || own != p.Dst || impostor(p) || int(p.L4) == 0 {
		return nil, false
	}
	at := int(p.L4)
	h := packet.DecodeUDP(data[at:])
	end := at + int(h.Length)
	if end > int(p.IPEnd) || end > len(data) || int(h.Length) < packet.UDPLen+packet.STAMPLen {
		return nil, false
	}
	if (h.Checksum != 0 || p.Family == 6) && h.Checksum != packet.UDPChecksum(p.Src, p.Dst, data[at:end]) {
		return nil, false
	}
	return data[at+packet.UDPLen : end], true
}

// reflectsTo reports whether a sender's test packets get replies. One from the reflectors' port doesn't: two reflectors would answer each
// other.
func (w *Worker) reflectsTo(p *packet.Parsed) bool {
	if p.SrcPort == packet.STAMPPort || p.SrcPort == 0 {
		return false
	}
	for i := range w.policy.Reflects {
		if w.policy.Reflects[i] == p.Src {
			return true
		}
	}
	return false
}

// reflect replies to a test packet, by its ingress port (RFC 8762 4.3). The reply leaves in this step if the line is free, so both its
// receive and its send time are the time of the step.
func (w *Worker) reflect(port int, data []byte, p *packet.Parsed, stamp []byte) {
	spares := len(w.batch.Spare)
	if spares == 0 || w.egress[port].notifications.full() {
		w.counters.add(port, STAMPNoPlace, 1)
		return
	}
	if !w.mayAnswer(port, stampAnswer, p) {
		w.counters.add(port, STAMPReplyLimit, 1)
		return
	}
	frame := stampFrame(w.batch.Bytes(w.batch.Spare[spares-1]), data[:p.L3], p.Dst)
	if frame == nil {
		w.counters.add(port, STAMPNoPlace, 1)
		return
	}
	packet.ReplyEthernet(frame, data, p)
	test, now := packet.DecodeSTAMPTest(stamp), w.plane.ntp(w.now)
	reply := packet.STAMPReply{
		Sequence: test.Sequence, Timestamp: now, Error: packet.STAMPError, Received: now, Test: test, TTL: timeToLive(data, p),
	}
	reply.Put(frame[len(frame)-packet.STAMPLen:])
	packet.PutUDPDatagram(frame, int(p.L3), p.Dst, p.Src, w.policy.Build.DSCP, stampTTL, packet.STAMPPort, p.SrcPort)
	w.originate(port, len(frame), tagReply)
}

// timeToLive is a packet's TTL or Hop Limit.
func timeToLive(data []byte, p *packet.Parsed) uint8 {
	const ttl, hopLimit = 8, 7 // offsets in the headers
	if p.Family == 4 {
		return data[int(p.L3)+ttl]
	}
	return data[int(p.L3)+hopLimit]
}

// matchReply measures the round-trip time by the reply to an outstanding test packet, minus the peer's processing time (RFC 8762 4.2). It
// returns false if no test packet matches.
func (w *Worker) matchReply(port int, r packet.STAMPReply) bool {
	path := &w.plane.paths[port]
	t := &path.session.tests[r.Test.Sequence%outstanding]
	sent, by := t.sent.Load(), t.by.Load()
	if r.Test.Timestamp == 0 || !t.timestamp.CompareAndSwap(r.Test.Timestamp, 0) {
		return false
	}
	if there, elapsed := packet.NTPSince(r.Timestamp, r.Received), w.now-sent; there >= 0 {
		path.probed(elapsed - there)
		path.session.by.Store(by)
		path.session.answered.Store(w.now)
	}
	return true
}
