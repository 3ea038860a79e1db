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
	if !p.Encapsulated() && !f.slot.Group().Joins() {
		return
	}
	head := p.frame[:0]
	if p.Outer == p.L3 && int(p.L3) <= len(p.frame) {
		head = p.frame[:p.L3]
	}
	f.slot.Group().Path(f.slot.Side()).Set(f.l.table.Key(f.index).Scope(), head)
}

// Back copies to head what a frame to the flow's sender must have before its IP header, and returns its length in bytes; 0 if it isn't known.
// It is needed unless both directions of the connection are in one VLAN, outside any tunnel: then it is the Ethernet header of a frame of the
// flow, with the MAC addresses exchanged.
func (l *Learner) Back(x flowtable.Index, head *[store.PathLen]byte) (n int, needed bool) {
	needed = l.table.Key(x).Encapsulated()
	slot, ok := l.slotOf(x)
	if !ok || !needed && !slot.Group().Joins() {
		return 0, needed
	}
	peer, ok := slot.LinkedPeer(slot.Link())
	if !ok {
		return 0, needed
	}
	t, y, state, ok := l.pairing.answers.find(peer.Ref())
	if !ok {
		return 0, true
	}
	k, ok := t.KeyAt(y, state)
	if !ok {
		return 0, true
	}
	return peer.Group().Path(peer.Side()).Get(k.Scope(), head), true
}
