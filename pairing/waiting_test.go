package pairing

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/cm"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// storm is many connections that are set up, used and released at once, between eight pairs of hosts.
type storm struct {
	*gateway
	workers int
	held    *store.Lock // which another worker holds during every third burst
	bursts  int
	now     int64
}

const stormFrames = 64 // a burst

// frame is one frame of a storm: from a side, of a connection.
type stormFrame func(l *Learner, k *flowtable.Key, side int, conn uint32)

// burst passes a frame of each connection from a side, in bursts.
func (s *storm) burst(side, conns int, f stormFrame) {
	w := s.gateway.workers[side%s.workers]
	for at := 0; at < conns; at += stormFrames {
		s.now += 5000
		s.bursts++
		held := s.held != nil && s.bursts%3 == 0 && s.held.Try()
		w.StartBurst()
		for i := at; i < min(at+stormFrames, conns); i++ {
			k := s.key(side, i)
			f(w.Learner, &k, side, uint32(i))
		}
		for _, w := range s.gateway.workers {
			w.Sweep(s.now)
		}
		if held {
			s.held.Release()
		}
	}
}

func (s *storm) key(side, conn int) flowtable.Key {
	k := flowtable.Key{Src: packet.Addr{Lo: alice.Lo + uint64(conn%8)<<8}, Dst: packet.Addr{Lo: bob.Lo + uint64(conn%8)<<8}, Port: uint16(side)}
	if side == 1 {
		k.Src, k.Dst = k.Dst, k.Src
	}
	return k
}

// message is a REQ from side 0, a REP from side 1, or a DREQ.
func (s *storm) message(a packet.CMAttribute) stormFrame {
	return func(l *Learner, k *flowtable.Key, side int, conn uint32) {
		m := packet.CM{Attribute: a, LocalComm: stormComm(side, conn), RemoteComm: stormComm(1-side, conn), QPN: stormQP(side, conn), PSN: stormPSN(side, conn)}
		switch a {
		case packet.CMREQ:
			m.RemoteComm, m.LocalGID, m.RemoteGID = 0, k.Src, k.Dst
		case packet.CMDREQ:
			m.QPN = stormQP(1-side, conn)
		}
		mad := make([]byte, packet.MADLen)
		m.Put(mad)
		p := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.UDSendOnly, DestQP: packet.GSIQP, SourceQP: packet.GSIQP}
		l.Observe(flowtable.None, k, &p, mad, s.now)
	}
}

// data passes a packet of a connection's only message to worker and flow.
func (s *storm) data(op packet.Opcode) stormFrame {
	return func(_ *Learner, k *flowtable.Key, side int, conn uint32) {
		k.DestQP = stormQP(1-side, conn)
		w := s.gateway.workers[side%s.workers]
		var x [1]flowtable.Ref
		w.lookup([]flowtable.Key{*k}, s.now, x[:])
		p := packet.Parsed{Kind: packet.RoCEv2, Opcode: op, DestQP: k.DestQP, PSN: stormPSN(1, conn), SrcPort: 7}
		w.observe(x[0].Index, k, &p, make([]byte, 64), s.now)
	}
}

func stormComm(side int, conn uint32) uint32 { return 0xc0000000 | uint32(side)<<16 | conn }
func stormQP(side int, conn uint32) uint32   { return 1000 + uint32(side)*0x10000 + conn }

// stormPSN is where requests to a side's QP begin. All differ by more than the slack.
func stormPSN(side int, conn uint32) uint32 {
	return (0x100000 + uint32(side)*0x400000 + conn*200) & packet.PSNMask
}

// TestConnectionsAtOnce: of many connections that are set up, used and released at once, RDMA-CM confirms each, and each DREQ closes its
// flows: with one worker or with two, with or without another worker that holds a lock, and if the data comes before the messages are read.
func TestConnectionsAtOnce(t *testing.T) {
	for _, conns := range []int{100, 1000} {
		for _, workers := range []int{1, 2} {
			for _, held := range []string{"no lock", "the messages' lock", "the allocation lock"} {
				t.Run(fmt.Sprintf("%d by %d, %s held", conns, workers, held), func(t *testing.T) {
					s := &storm{gateway: newGateway(t, 1<<14), workers: workers, now: synthEpoch}
					s.held = map[string]*store.Lock{"the messages' lock": &s.pairing.cmLock, "the allocation lock": &s.pairing.store.Lock}[held]
					s.burst(0, conns, s.message(packet.CMREQ))
					s.burst(1, conns, s.message(packet.CMREP))
					for range 200 { // without waiting for the messages
						s.burst(0, conns, s.data(packet.RCSendOnly))
						s.burst(1, conns, s.data(packet.RCAcknowledge))
					}
					s.count(t, conns, "confirmed by RDMA-CM", func(a Answer) bool { return a.Usable() && a.Evidence() == EvidenceCM })
					s.burst(0, conns/2, s.message(packet.CMDREQ))
					s.burst(1, conns, s.message(packet.CMDREQ))
					for range conns {
						s.burst(0, 1, func(*Learner, *flowtable.Key, int, uint32) {})
					}
					s.count(t, conns, "closed", func(a Answer) bool { return a.Ended() == EndedDREQ })
				})
			}
		}
	}
}

// count checks that all flows are as they should be.
func (s *storm) count(t *testing.T, conns int, what string, is func(Answer) bool) {
	t.Helper()
	for side := range 2 {
		n := 0
		for i := range conns {
			k := s.key(side, i)
			k.DestQP = stormQP(1-side, uint32(i))
			if a, _ := s.gateway.workers[side%s.workers].find(&k); is(a) {
				n++
			}
		}
		if n != conns {
			t.Errorf("from side %d: %d of %d are %s", side, n, conns, what)
		}
	}
}

// TestMessageWaits: messages that wait keep their order, also across workers, and their time. So a DREQ that arrives after the REP closes the
// connection, and data that comes before the REP is read is learned with it.
func TestMessageWaits(t *testing.T) {
	for name, read := range map[string]func(w *wire){
		"at once":         func(w *wire) { w.sweep() },
		"the DREQ first":  func(w *wire) { w.workers[0].readWaiting(); w.workers[1].readWaiting(); w.workers[0].readWaiting() },
		"at the next one": func(w *wire) { w.send(1, 7, packet.RCAcknowledge, 5, 7); w.send(0, 7, packet.RCSendOnly, 5, 7) },
	} {
		w := newWire(t)
		w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: commA, QPN: 100, PSN: psnA})
		w.pairing.cmLock.Try()
		w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: commB, RemoteComm: commA, QPN: 200, PSN: psnB})
		w.now += 20e6
		w.talk(100, 200, psnB, 1000, 7)
		w.is(0, 200, 0, 0)
		w.pairing.cmLock.Release()
		w.sweep()
		w.talk(100, 200, psnB+1000, 1100, 7)
		if a := w.view(0, 200); !a.Usable() || a.Evidence() != EvidenceCM || a.SourceQP() != 100 {
			t.Errorf("%s: after a REP that has waited: %v", name, a)
		}
		w.cm(0, packet.CM{Attribute: packet.CMREQ, LocalComm: 0xccc, QPN: 101, PSN: psnA})
		w.pairing.cmLock.Try()
		w.cm(1, packet.CM{Attribute: packet.CMREP, LocalComm: 0xddd, RemoteComm: 0xccc, QPN: 201, PSN: psnB})
		w.cm(0, packet.CM{Attribute: packet.CMDREQ, LocalComm: 0xccc, RemoteComm: 0xddd, QPN: 201})
		w.cm(0, packet.CM{Attribute: packet.CMDREQ, LocalComm: commA, RemoteComm: commB, QPN: 200})
		w.pairing.cmLock.Release()
		read(w)
		w.sweep()
		if v := w.view(0, 200); v.Ended() != EndedDREQ {
			t.Errorf("%s: after a DREQ that has waited: %v", name, v)
		}
		key := w.key(0, 201)
		g, side := w.pairing.groupOf(&key)
		if w.pairing.cm.Claim(w.pairing.hashOf(&g), side, 201, 101) != nil {
			t.Errorf("%s: a claim about a connection that was released", name)
		}
	}
}

// TestFloodOfMessages: messages of one pair of hosts get half of the common space at most. The next ones are dropped and counted. Whoever
// floods the queue, 64 messages of any other share of the groups wait. Each Sweep reads four messages.
func TestFloodOfMessages(t *testing.T) {
	w := newWire(t)
	l := w.workers[0].Learner
	w.pairing.cmLock.Try()
	message := func(group uint64) {
		l.receiveCM(&cm.Message{Group: group, Time: w.now, Attribute: packet.CMREQ, QPN: 100})
	}
	flood := func(group uint64) {
		for range cm.MaxWaiting {
			message(group)
		}
	}
	flood(1)
	const half = (cm.MaxWaiting-cm.WaitingShares*cm.OwnWaiting)/2 + cm.OwnWaiting
	if n := l.waiting.Len(); n != half || l.counts.CMDropped != cm.MaxWaiting-half {
		t.Errorf("%d messages of the flood wait and %d were dropped, want %d and %d", n, l.counts.CMDropped, half, cm.MaxWaiting-half)
	}
	for group := range uint64(cm.WaitingShares - 2) {
		for range cm.MaxWaiting {
			message(2 + group)
		}
	}
	dropped := l.counts.CMDropped
	for range cm.OwnWaiting {
		message(cm.WaitingShares)
	}
	if l.counts.CMDropped != dropped || l.waiting.Len() > cm.MaxWaiting {
		t.Errorf("floods between others fill the space of a pair of hosts: %d dropped", l.counts.CMDropped-dropped)
	}
	w.pairing.cmLock.Release()
	before := l.waiting.Len()
	l.Sweep()
	if n := before - l.waiting.Len(); n != 4 {
		t.Errorf("a Sweep reads %d messages, want 4", n)
	}
	for range cm.MaxWaiting {
		l.Sweep()
	}
	if l.waiting.Len() != 0 || l.waiting.oldest.Load() != 0 {
		t.Errorf("%d messages wait still", l.waiting.Len())
	}
	if s := l.Stats(); s.CMDropped != l.counts.CMDropped || s.CMDropped == 0 {
		t.Errorf("%d dropped messages are published, want %d", s.CMDropped, l.counts.CMDropped)
	}
	w.pairing.cmLock.Try()
	for group := range uint64(cm.WaitingShares) { // all space is free again
		w.now++
		flood(group)
		if n := l.waiting.Len(); group == 0 && n != half {
			t.Errorf("%d messages of a second flood wait, want %d", n, half)
		}
	}
}
