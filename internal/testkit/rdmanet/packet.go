package rdmanet

import "github.com/cnpgate/cnpgate/internal/packet"

// Kind is what a packet is for.
type Kind uint8

// Kinds.
const (
	Request      Kind = iota
	Response          // ACK, NAK, READ and ATOMIC responses
	Notification      // CNP
)

// Fate is what became of a packet.
type Fate uint8

// Fates. Before and behind are seen from the capture.
const (
	InFlight Fate = iota
	Delivered
	LostBefore
	LostBehind
	CorruptedBefore // its receiver drops it
	CorruptedBehind
	Ignored // by a host that is down
)

func (f Fate) String() string {
	return [...]string{"in flight", "delivered", "lost before", "lost behind", "corrupted before", "corrupted behind", "ignored"}[f%7]
}

// Packet is one transmission of a packet.
type Packet struct {
	Half     *Half // the requests that it belongs to
	From     int   // the end that sends it
	Kind     Kind
	Opcode   packet.Opcode
	Seq      int64 // the PSN, counted on where that wraps, from 0
	PSNs     int64 // of a request
	Payload  int   // bytes
	Length   int   // of a RETH, bytes
	AckReq   bool
	Syndrome uint8 // of an AETH
	Acked    int64 // of a response: all before are acknowledged
	MSN      uint32
	CE       bool

	Sent, Passed, Arrived int64 // ns; Passed: at the capture. Each is never if it didn't happen
	Fate                  Fate
	Again                 *Episode // because of which it is sent again; nil: it is the first transmission
	Trigger               *Packet  // of a response: the request that it answers
	CopyOf                *Packet  // of a copy that the network has made

	order int    // of transmission
	id    uint16 // IP identification
}

// wire is a packet's PSN.
func (p *Packet) wire() uint32 { return (p.Half.First + uint32(p.Seq)) & packet.PSNMask }

// unwrap is the number, nearest to another one, of a PSN.
func (h *Half) unwrap(psn uint32, near int64) int64 {
	d := int32((psn-h.First-uint32(near))<<8) >> 8 // 24 bits, signed
	return near + int64(d)
}

// data reports whether a packet carries data or asks for it: it is no ACK, NAK or CNP.
func (p *Packet) data() bool {
	return p.Kind == Request || p.Kind == Response && p.Opcode != packet.RCAcknowledge
}

// nak reports whether a packet is a NAK, with which code.
func (p *Packet) nak() (code uint8, ok bool) {
	return p.Syndrome & 31, p.Kind == Response && p.Opcode == packet.RCAcknowledge && p.Syndrome>>5 == 3
}

func (p *Packet) rnr() bool { return p.Kind == Response && p.Syndrome>>5 == 1 }

// lost reports whether a packet did not come to its receiver intact.
func (p *Packet) lost() bool { return p.Fate >= LostBefore && p.Fate <= CorruptedBehind }
