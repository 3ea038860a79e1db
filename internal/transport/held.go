package transport

// HeldPSNs is how far after a gap a responder with SelectiveRepeat keeps packets, and so how many PSNs a requester may have in flight: 64
// MiB with an MTU of 1024.
const HeldPSNs = 1 << 16

const wordBits = 64

// heldPackets records which packets have arrived after a gap, and which of them end a message. Bit s%HeldPSNs is for sequence number s.
type heldPackets struct {
	arrived, last [HeldPSNs / wordBits]uint64
	count         int // of arrived
}

// keep records a packet after the gap at expect.
func (k *heldPackets) keep(expect, sequence uint64, last bool) {
	if sequence-expect >= HeldPSNs {
		return
	}
	word, bit := sequence%HeldPSNs/wordBits, uint64(1)<<(sequence%wordBits)
	if k.arrived[word]&bit == 0 {
		k.count++
	}
	k.arrived[word] |= bit
	if last {
		k.last[word] |= bit
	}
}

// forget clears a range of sequence numbers that starts at expect.
func (k *heldPackets) forget(expect, end uint64) {
	for sequence := expect; k.count > 0 && sequence < min(end, expect+HeldPSNs); sequence++ {
		word, bit := sequence%HeldPSNs/wordBits, uint64(1)<<(sequence%wordBits)
		if k.arrived[word]&bit != 0 {
			k.arrived[word] &^= bit
			k.last[word] &^= bit
			k.count--
		}
	}
}

// release moves expect past the packets that have arrived. It returns how many of them end a message, and whether more packets have arrived
// after another gap.
func (k *heldPackets) release(expect *uint64) (ended uint32, more bool) {
	for k.count > 0 {
		word, bit := *expect%HeldPSNs/wordBits, uint64(1)<<(*expect%wordBits)
		if k.arrived[word]&bit == 0 {
			break
		}
		if k.last[word]&bit != 0 {
			ended++
		}
		k.arrived[word] &^= bit
		k.last[word] &^= bit
		k.count--
		*expect++
	}
	return ended, k.count > 0
}
