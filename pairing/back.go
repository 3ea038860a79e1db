package pairing

import (
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing/store"
)

// What brings a flow's frames to the receiver need not bring a frame to the sender: a label belongs to one direction, and the VLAN of the other
// direction may be another one. The frames of the peer flow show what does.

// notePath records what the packet's frame has before its IP header, if that isn't the other direction's with the MAC addresses exchanged. Headers
// of an IP tunnel aren't recorded: a frame with the same ones would need their lengths and checksums changed.
func (f *flow) notePath(p *arrival) {
	f.flags &^= apart
	if !p.Encapsulated() && !f.slot.Group().Joins() {
		return
	}
	if p.Encapsulated() || f.slot.Link() != 0 {
		f.flags |= apart
	}
	head := p.frame[:0]
	if p.Outer == p.L3 && int(p.L3) <= len(p.frame) {
		head = p.frame[:p.L3]
	}
	f.slot.Group().Path(f.slot.Side()).Set(f.l.table.Key(f.index).Scope(), head)
}

// Apart reports whether a frame to the flow's sender needs what Back returns before its IP header. Otherwise the flow is in no tunnel, and has no
// peer flow in another VLAN: then a frame needs the Ethernet header of one of the flow's, with the MAC addresses exchanged.
func (l *Learner) Apart(x flowtable.Index) bool { return l.trackOf(x).flags&apart != 0 }

// Back copies to head what a frame to the flow's sender must have before its IP header, and returns its length in bytes; 0 if it isn't known.
func (l *Learner) Back(x flowtable.Index, head *[store.PathLen]byte) int {
	slot, ok := l.slotOf(x)
	if !ok {
		return 0
	}
	peer, ok := slot.LinkedPeer(slot.Link())
	if !ok {
		return 0
	}
	t, y, state, ok := l.pairing.answers.find(peer.Ref())
	if !ok {
		return 0
	}
	k, ok := t.KeyAt(y, state)
	if !ok {
		return 0
	}
	return peer.Group().Path(peer.Side()).Get(k.Scope(), head)
}
