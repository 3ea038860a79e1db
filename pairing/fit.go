package pairing

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// fit classifies how a packet fits its flow.
type fit uint8

const (
	fits       fit = iota // the connection can have sent it
	unexpected            // the packet before it was not, or does not go with it
	another               // the second one in a row unexpected, and it goes with the first: both are another connection's
)

const (
	// Two packets unexpected go together if they are at most this many PSNs apart.
	requestsApart  = 1 << 10
	responsesApart = 1 << 12
)

// fit compares the current packet with its flow. own: the flow may use the packet's PSN.
func (f *flow) fit(p *arrival, own bool, apart uint32) fit {
	if p.SrcPort != f.port && f.slot.Link().OwnPort() {
		own = false // the port results from the connection's QPs, so it never changes
	}
	if own && (p.SrcPort == f.port || !f.steady()) {
		f.unexpected = 0
		return fits
	}
	again := f.unexpected != 0
	together := (p.PSN-f.unexpected+apart)&psnMask <= 2*apart && f.unexpectedPort == p.SrcPort
	f.unexpected, f.unexpectedPort = p.PSN|noteBit, p.SrcPort
	switch {
	case again && together:
		return another
	case again && own: // a third UDP source port in a row: this sender changes its port all the time
		f.unexpected = 0
		return fits
	}
	return unexpected
}

const (
	steadyPackets  = 64 // packets in a row with one UDP source port, after which the port is steady
	maxPortChanges = 3  // changes of the port that count; each one quadruples steadyPackets
)

// steady reports whether the flow has had its UDP source port long enough for another port to mean another connection.
func (f *flow) steady() bool {
	since := f.packets
	if f.moved != 0 {
		since = (f.packets - f.moved) &^ noteBit
	}
	return since >= steadyPackets<<(2*f.portChanges)
}

// changePort records that the flow's UDP source port has changed. From then on the port doesn't distinguish the flow's connection from
// others. It reports whether the change is unusual: it is until the port has changed maxPortChanges times.
func (f *flow) changePort(p *arrival) (unusual bool) {
	unusual = f.portChanges < maxPortChanges
	f.notePort(p.SrcPort)
	if f.lock() {
		f.slot.SetIdentity(f.identity(p.DestQP))
		f.unlock()
	}
	return unusual
}

// notePort records a packet's port as the flow's. If another flow has the slot by now, that flow is only checked more
// strictly.
func (f *flow) notePort(port uint16) {
	f.moved = f.packets | noteBit
	f.port = port
	f.portChanges = min(f.portChanges+1, maxPortChanges)
	if l := f.slot.Link(); l.OwnPort() {
		f.slot.ChangeLink(l, l.SharedPort())
	}
}

// identity is the flow's identity with its present UDP source port.
func (f *flow) identity(qp uint32) store.Identity {
	return store.MakeIdentity(qp, f.port, f.moved != 0 && !f.steady(), f.flags&unreliable != 0)
}

// within reports whether the flow's requests may use a PSN. A sender may go back to any PSN that it has used (maxSpan at most), but not skip
// more than maxGap. UC never retransmits, so its PSNs go back only by reordering.
func (f *flow) within(psn uint32) bool {
	const reordering = 1 << 10
	if f.flags&unreliable != 0 && !atMost((f.high-reordering)&psnMask, psn) {
		return false
	}
	return (psn-f.first+firstSlack)&psnMask <= (f.high-f.first)&psnMask+firstSlack+maxGap
}

// noteService records whether the packet's transport service, and so the flow's, is UC.
func (f *flow) noteService(p *arrival) {
	f.flags &^= unreliable
	if isUC(p.Opcode) {
		f.flags |= unreliable
	}
}

// ofService reports whether the packet's transport service is the flow's (UC or not): a QP has only one service.
func (f *flow) ofService(p *arrival) bool { return isUC(p.Opcode) == (f.flags&unreliable != 0) }

func isUC(o packet.Opcode) bool { return o>>5 == packet.UCSendOnly>>5 }

// atMost reports whether PSN a is b or comes before it, modulo 2^24.
func atMost(a, b uint32) bool { return (b-a)&psnMask < psnHalf }
