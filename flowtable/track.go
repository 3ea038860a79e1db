package flowtable

import "unsafe"

// track is what the owner reads and writes for each packet of a flow: half a cache line. Most packets say nothing new of source QPs; to
// see that one doesn't, it is enough to look here.
type track struct {
	packets uint32 // and bytes: what the account doesn't have
	bytes   uint32
	known   uint32 // the low half of the entry's state as it was when a packet was observed last; 0, which no flow's is, before the first
	exact   uint32 // highest PSN that a request carried, with unsettled where that is not all
	acked   uint32 // PSN that a confirmed flow's responses have come to, with ackedBit
	slot    uint32 // the flow's place in the pairing, 0 for none
	port    uint16 // UDP source port
	due     uint16 // number of the packet, modulo 2^16, that is to be observed in any case

	flags     uint8
	pace      uint8 // exponents of two: bits 0-3 of the pause between judgements, 4-7 of that between looks at responses
	transport uint8 // opcode >> 5 of the last packet that was observed
}

var _ [lineSize / 2]byte = [unsafe.Sizeof(track{})]byte{}

const (
	unsettled = 1 << 31 // in exact: the flow has sent no request yet, or a READ has taken PSNs beyond this one
	ackedBit  = 1 << 31 // in acked
	noHurry   = 1 << 14 // packets until one is observed in any case, where nothing waits for that
	// carried is what goes to the account once packets or bytes have come so far: noHurry packets of longFrame octets fit on top.
	carried   = 1 << 31
	longFrame = 1 << 16
)

// take counts a packet.
func (k *track) take(octets uint32) {
	k.packets++
	k.bytes += octets
}

// tally counts a packet, and brings the high part of the flow's numbers to its account. They come so far seldom, and are seen before they
// overflow: some packet in noHurry is observed, and each that is longer than any on a wire.
func (t *Table) tally(x Index, octets uint32) {
	k := &t.tracks[x]
	if octets >= longFrame {
		t.Account(x).bytes += uint64(octets)
		octets = 0
	}
	if k.take(octets); (k.packets|k.bytes)&carried == 0 {
		return
	}
	a := t.Account(x)
	a.packets += uint64(k.packets & carried)
	a.bytes += uint64(k.bytes & carried)
	k.packets &^= carried
	k.bytes &^= carried
}

// left is how many packets there are until the one that is due, 0 or less if that was the last one or has gone by.
func (k *track) left() int16 { return int16(k.due - uint16(k.packets)) }

// wait has the n-th packet from now on observed, 0 for the one at hand.
func (k *track) wait(n uint16) { k.due = uint16(k.packets) + n }

// psn is the highest PSN that a request carried.
func (k *track) psn() uint32 { return k.exact & psnMask }
