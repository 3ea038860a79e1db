package health

import "github.com/cnpgate/cnpgate/internal/packet"

// Half is one end's requests, and the responses to them.
type Half struct {
	Counts
	// Window is the most packets that were sent and not acknowledged at any time, and the bytes of payload in them.
	Window      uint32
	WindowBytes uint64
	timing
	Lead    int64 // ns: how much earlier than its reason something was recorded, at most; of a copy, also if that was corrected
	Stalled int64 // ns for which the sender waited for an ACK with a full window
	Begun   int64 // time of the first request, and of the last one
	Ended   int64

	mtu       uint32 // payload of a full packet, once known
	mtus      mtus
	largest   uint32 // payload of any
	next      uint32 // after the highest PSN sent
	most      int32  // packets that were outstanding at any time, also before any answer was seen
	base      uint32 // the first PSN that was followed
	loose     uint32 // how much farther next may be: a READ whose number of responses isn't known
	read      Packet // the last READ request
	flags     uint16
	dscp      [2]uint8 // of the latest request, and response
	holes     holes
	unsure    holes // the PSNs between a READ and the next request: until the MTU is known, the READ may take them, or they are missing
	recent    recent
	probes    probes
	answers   answers
	early     early
	own       ownDrops
	sends     answers // when PSNs were sent for the first time
	ids       ids
	hops      hops
	pending   pending
	copied    [2]copies // requests, and responses
	concluded Cause     // of the latest episode that was
	repeat    repeat
	doubts    doubts
	reads     reads
	big       big
	sent      int64 // time of the last request
	newest    int64 // time of the last one with a new PSN
	grown     uint32
	after     int64  // ns between the beginnings of the QPs' connection before and of this one; 0: there was none, or it isn't known
	msn       uint32 // the latest that the responder has sent, plus 1; 0: none
	fell      int64  // when it was less than the one before
	unpaged   uint64 // RNR NAKs to READs
}

const (
	started   = 1 << iota
	oneWay    // UC: nothing is ever sent again
	answered  // a response was seen
	blocked   // the sender waits with a full window
	blind     // whether an answer is an ACK or a NAK can't be read
	partial   // requests before the first one that was followed may be outstanding
	unheard   // the requester went on after it had sent something again
	mayBegin  // the next request may begin another connection
	sequel    // a request has followed the one before it
	unasked   // the responder acknowledges packets that did not ask for it
	goesBackN // the requester sends again what follows a packet, too
	noRead    // the responder has refused a READ or ATOMIC
	noOther   // or another request
	midway    // it has waited for the answer to all that it had sent within a message
)

const (
	maxGap  = 1 << 16 // packets: a larger step of PSNs begins anew, unless it goes back over what was on its way
	minimum = 256     // the smallest path MTU, and the largest
	maximum = 4096
)

// request follows a packet of the requester.
func (h *Half) request(p *Packet) {
	h.Requests.add(p.Len)
	h.dscp[0] = p.DSCP
	if p.CE {
		h.CE++
	}
	if p.NotECT {
		h.notECT++
	}
	if h.flags&started == 0 {
		h.begin(p)
		return
	}
	if h.pending.set {
		h.settle(p)
	}
	h.learnMTU(p, &h.mtus.requester)
	switch d := ahead(p.PSN, h.next); {
	case d >= 0 && d <= maxGap:
		start := h.flags&partial != 0 && d < inFlight || h.flags&sequel == 0 // until one has followed another, each may have been sent again alone, and those between before
		if uint32(d) <= h.loose {
			h.flags |= sequel
			if d > 0 {
				h.repeat.ends(h.next, p.PSN)
				h.unsure.add(h.next, uint32(d), p.Time, start)
			}
		} else {
			h.holes.add(h.next+h.loose, uint32(d)-h.loose, p.Time, start)
		}
		if h.early.at != 0 {
			h.early.overtaken(h, p)
		}
		h.fresh(p)
	case d < 0 && d >= -h.reach():
		if ahead(p.PSN, h.base) < 0 {
			h.earlier(p)
			break
		}
		h.behind(p)
	default:
		h.restart()
		h.begin(p)
	}
	h.sent, h.Ended = p.Time, p.Time
}

// reach is how far a requester goes back at most: on a long path, more than maxGap may be on its way.
func (h *Half) reach() int32 { return max(maxGap, h.most) }

// begin follows from a packet on. What was sent before it isn't known.
func (h *Half) begin(p *Packet) {
	h.flags |= started | partial
	if p.Opcode>>5 == transportUC {
		h.flags |= oneWay
	}
	if h.Begun == 0 {
		h.Begun = p.Time
	}
	h.base, h.next = p.PSN, p.PSN
	h.answers.begin(p.PSN)
	h.fresh(p)
	h.sent, h.Ended = p.Time, p.Time
}

// restart forgets PSNs: the QP has another connection, or packets weren't followed for a while.
func (h *Half) restart() {
	h.finish()
	h.flags &= oneWay | answered | blind | unheard
	h.holes, h.unsure, h.early, h.sends = holes{}, holes{}, early{}, answers{}
	h.recent, h.probes, h.repeat, h.reads, h.answers, h.mtus = recent{}, probes{}, repeat{}, reads{}, answers{}, mtus{}
	h.loose = 0
}

// fresh is a request with the next PSN.
func (h *Half) fresh(p *Packet) {
	h.Goodput += uint64(p.Data)
	h.hops.next(p, h.Requests.Packets)
	h.count(p)
	h.copied[0].end(&h.Counts, &h.AgainRequests, h.next)
	late := h.ids.older(p.ID)
	h.ids.next(p.ID)
	if r := &h.repeat; r.active && !late {
		r.active = false
		h.flags |= unheard
		r.goesOn(h.next)
	}
	outstanding := ahead(h.next, h.answers.acked)
	if h.flags&oneWay == 0 && h.flags&answered != 0 {
		h.resumed(p, outstanding)
	}
	if h.read.Time != 0 {
		h.mtus.readFollowed(h, p)
	}
	h.loose, h.newest = 0, p.Time
	h.next = (p.PSN + h.spanOf(p)) & packet.PSNMask
	h.sends.add(h.next, p.Time, max((p.Time-h.answers.at)/int64(len(h.sends.marks)-2), ms/16), 0)
	h.recent.add(p)
	h.big.outstanding(p.PSN, sizeOf(p, h.mtu))
	if asks(p) {
		h.probes.add(p, p.Opcode.Role() == packet.ReadRequest)
	}
	h.most = max(h.most, ahead(h.next, h.answers.acked))
	if w := ahead(h.next, h.answers.acked); w > int32(h.Window) && h.flags&answered != 0 && (w < maxGap || h.answers.at != 0) {
		h.Window, h.turn = uint32(w), span{} // those before took longer than it seemed
	}
	if h.flags&answered != 0 {
		h.WindowBytes = max(h.WindowBytes, uint64(h.Window)*h.Goodput/h.Requests.Packets)
	}
}

// resumed measures how long the requester takes to go on after the last ACK, if it had sent nothing since.
func (h *Half) resumed(p *Packet, outstanding int32) {
	acked := h.answers.at
	if acked < h.newest {
		return
	}
	alone := p.Opcode.Role() != packet.ReadRequest || h.Window <= h.psnsOf(p) // of READs, one at a time
	switch {
	case outstanding == 0 && alone && h.repeat.clear(p.PSN-1):
		h.turn.add(p.Time - acked)
		if placeOf(p.Opcode)&first == 0 {
			h.flags |= midway
		}
	case outstanding == 0 || h.flags&blocked != 0:
		opened := (p.PSN - h.Window + h.psnsOf(p) - 1) & packet.PSNMask
		at, ok := h.answers.since(opened) // the ACK that opened the window
		if ok && h.repeat.clear(opened) && h.reads.filled < at && h.reads.holes.n == 0 {
			h.turn.add(p.Time - at)
		}
	}
	// It stopped with a full window, and goes on as soon as an ACK came.
	if h.flags&blocked != 0 && p.Time-h.newest > h.clean.mean/4 {
		h.Stalled += p.Time - h.newest
	}
	h.flags &^= blocked
}

// psnsOf is how many PSNs a request that is sent again takes.
func (h *Half) psnsOf(p *Packet) uint32 {
	if p.Opcode.Role() == packet.ReadRequest && h.mtu != 0 {
		return responsesTo(p.Message, h.mtu)
	}
	return 1
}

// spanOf is how many PSNs a request takes.
func (h *Half) spanOf(p *Packet) uint32 {
	if returnsData(p.Opcode) {
		h.reads.ask(p)
	}
	if p.Opcode.Role() != packet.ReadRequest {
		return 1
	}
	h.read = *p
	if p.Cut { // how many responses it asks for isn't known
		h.loose = maxGap - 1
		return 1
	}
	if h.mtu == 0 {
		h.loose = max((p.Message+minimum-1)/minimum, 1) - 1
		return 1
	}
	return responsesTo(p.Message, h.mtu)
}

func responsesTo(bytes, mtu uint32) uint32 {
	return min(max((bytes+mtu-1)/max(mtu, 1), 1), packet.PSNHalf-1)
}

// learnMTU: all packets of a message but the last have the path MTU of the end that sends it. A READ's end is known with it.
func (h *Half) learnMTU(p *Packet, of *uint32) {
	if *of != 0 || placeOf(p.Opcode)&last != 0 || p.Data == 0 {
		return
	}
	if *of = p.Data; h.mtu != 0 {
		return
	}
	h.mtu = p.Data
	if h.loose != 0 && !h.read.Cut {
		was := h.next
		h.next = (h.read.PSN + responsesTo(h.read.Message, h.mtu)) & packet.PSNMask
		h.loose = 0
		h.repeat.ends(was, h.next)
	}
}

// count counts messages, by their first packets, and sizes.
func (h *Half) count(p *Packet) {
	o := operationOf(p.Opcode)
	h.largest = max(h.largest, p.Data)
	at := placeOf(p.Opcode)
	if at&first != 0 {
		h.Messages[o]++
	}
	switch {
	case p.Message > 0 && at&first != 0:
		h.Sizes.add(uint64(p.Message))
	case o == Send:
		h.grown += p.Data
		if at&first != 0 {
			h.grown = p.Data
		}
		if at&last != 0 {
			h.Sizes.add(uint64(h.grown))
		}
	}
}
