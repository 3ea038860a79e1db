package rdmanet

import "github.com/cnpgate/cnpgate/internal/packet"

// responder is the state of the end that answers.
type responder struct {
	exp     int64             // the PSN that it expects
	asked   bool              // it has sent a NAK or RNR NAK for it
	notYet  bool              // that was an RNR NAK
	have    map[int64]*Packet // behind a gap, of a selective NIC
	askedOf int64             // PSN+1 of the latest NAK of a selective NIC
	msn     uint32
	pending *Packet // the request for which an ACK is due
	answers int64   // when the latest answer leaves
	broken  bool    // after a NAK that is an error

	Receives  float64 // buffers at the start; negative: as many as needed
	Supply    float64 // buffers that are posted a second
	supplied  int64
	RefuseAt  int64 // PSN+1 of the request that is refused; 0: none
	RefuseHow uint8 // the NAK's code

	sent []*Packet // all of requester and responder
}

// request receives a request.
func (h *Half) request(p *Packet) {
	if h.broken {
		return
	}
	nic := h.Conn.NIC
	seq := h.unwrap(p.wire(), h.exp)
	switch {
	case seq == h.exp:
		h.accept(p)
	case seq < h.exp:
		h.duplicate(p)
	case nic.Selective && !h.notYet:
		if h.have == nil {
			h.have = map[int64]*Packet{}
		}
		h.have[seq] = p
		h.gap(p)
	case !nic.Selective && !h.asked:
		h.asked = true
		h.reply(p, h.exp, 3<<5, h.exp)
	}
}

// gap asks for what is missing, if it isn't only late.
func (h *Half) gap(p *Packet) {
	nic := h.Conn.NIC
	if nic.Tolerance < 0 || h.askedOf == h.exp+1 || len(h.have) == 0 {
		return
	}
	exp := h.exp
	ask := func() {
		if h.exp == exp && h.askedOf != exp+1 {
			h.askedOf = exp + 1
			h.reply(p, exp, 3<<5, exp)
		}
	}
	if nic.Tolerance == 0 {
		ask()
		return
	}
	h.Net.at(h.Net.now+nic.Tolerance, ask)
}

// accept executes the request that is expected, and those that came before it.
func (h *Half) accept(p *Packet) {
	for q := p; q != nil; q = h.have[h.exp] {
		if !h.execute(q, p) {
			return
		}
		delete(h.have, q.Seq)
	}
	h.gap(p)
}

// execute executes a request. by is the one that has made it the next: it is what the answer answers.
func (h *Half) execute(p, by *Packet) bool {
	if h.RefuseAt == p.Seq+1 {
		h.broken = true
		h.reply(by, h.exp, 3<<5|h.RefuseHow, h.exp)
		return false
	}
	if !h.buffer(p) {
		h.asked, h.notYet = true, true
		h.reply(by, h.exp, 1<<5|h.Conn.NIC.RNRTimer, h.exp)
		return false
	}
	h.asked, h.notYet = false, false
	h.exp = p.Seq + p.PSNs
	if ends(p.Opcode) {
		h.msn++
	}
	switch {
	case p.Opcode == packet.RCReadRequest, p.Opcode == packet.RCFetchAdd:
		h.pending = nil
		h.serve(p, by)
	case p.AckReq || h.Conn.NIC.AckEach:
		h.acknowledge(by)
	}
	return true
}

func ends(o packet.Opcode) bool {
	switch o {
	case packet.RCSendFirst, packet.RCSendMiddle, packet.RCWriteFirst, packet.RCWriteMiddle:
		return false
	}
	return true
}

// buffer takes a receive buffer for a SEND.
func (h *Half) buffer(p *Packet) bool {
	if h.Receives < 0 || p.Opcode != packet.RCSendFirst && p.Opcode != packet.RCSendOnly {
		return true
	}
	h.Receives = min(h.Receives+h.Supply*float64(h.Net.now-h.supplied)/1e9, 16)
	h.supplied = h.Net.now
	if h.Receives < 1 {
		return false
	}
	h.Receives--
	return true
}

// duplicate answers a request that was executed before (IBTA 9.7.5.1.4).
func (h *Half) duplicate(p *Packet) {
	switch {
	case p.Opcode == packet.RCReadRequest, p.Opcode == packet.RCFetchAdd:
		h.serve(p, p)
	case p.AckReq || h.Conn.NIC.AckEach:
		h.acknowledge(p)
	}
}

// acknowledge sends an ACK for all that was executed, or does so soon.
func (h *Half) acknowledge(p *Packet) {
	wait := h.Conn.NIC.AckDelay
	if wait == 0 {
		h.reply(p, h.exp-1, 0x1f, h.exp)
		return
	}
	if h.pending != nil {
		return
	}
	h.pending = p
	h.Net.at(h.Net.now+wait, func() {
		if h.pending == p {
			h.pending = nil
			h.reply(p, h.exp-1, 0x1f, h.exp)
		}
	})
}

// reply sends an ACK or NAK.
func (h *Half) reply(p *Packet, seq int64, syndrome uint8, acked int64) {
	if syndrome>>5 != 0 {
		h.pending = nil // it acknowledges what came before, too
	}
	h.respond(&Packet{
		Half: h, From: h.End ^ 1, Kind: Response, Opcode: packet.RCAcknowledge, Seq: seq, Syndrome: syndrome, Acked: acked, MSN: h.msn, Trigger: p,
	})
}

// serve sends the responses to a READ or ATOMIC request.
func (h *Half) serve(p, by *Packet) {
	o := Packet{Half: h, From: h.End ^ 1, Kind: Response, Syndrome: 0x1f, MSN: h.msn, Trigger: by}
	for i := range p.PSNs {
		q := o
		q.Seq, q.Acked = p.Seq+i, p.Seq+i+1
		q.Opcode = packet.RCReadRespMiddle
		q.Payload = min(h.Conn.NIC.MTU, p.Length-int(i)*h.Conn.NIC.MTU)
		switch {
		case p.Opcode == packet.RCFetchAdd:
			q.Opcode, q.Payload = packet.RCAtomicAcknowledge, 0
		case p.PSNs == 1:
			q.Opcode = packet.RCReadRespOnly
		case i == 0:
			q.Opcode = packet.RCReadRespFirst
		case i == p.PSNs-1:
			q.Opcode = packet.RCReadRespLast
		}
		q.Again = p.Again
		h.respond(&q)
	}
}

// respond sends an answer, in the order of the answers.
func (h *Half) respond(p *Packet) {
	h.answers = max(h.answers+1, h.Net.now+h.Conn.NIC.Turn)
	h.Net.at(h.answers, func() {
		h.note(p)
		h.Net.transmit(p)
	})
}
