package packet

import "encoding/binary"

// Opcodes of MAC control frames (IEEE 802.3 31A).
const (
	MACControlPause = 0x0001
	MACControlPFC   = 0x0101
)

const (
	// PauseLen is the length in octets of a PAUSE after the Ethernet header, without the padding to a whole frame.
	PauseLen = 4
	// PFCLen is the length in octets of a PFC frame after the Ethernet header, without the padding to a whole frame.
	PFCLen = 20
	// PFCClasses is the number of priorities of PFC.
	PFCClasses = 8
)

// MACControlAddr is the destination of PAUSE and PFC frames (IEEE 802.3 31B.1, IEEE 802.1Q 36.1.3.2): a bridge never forwards it.
var MACControlAddr = [6]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}

// PFC is a Priority-based Flow Control frame (IEEE 802.1Qbb, now IEEE 802.1Q 36 and IEEE 802.3 31D) behind EtherType 0x8808:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        Opcode = 0x0101        |   Reserved    | e7 ...     e0 |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|            time[0]            |            time[1]            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  time[2] to time[7]                                           ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type PFC struct {
	Reserved uint8              // senders put 0, receivers ignore it
	Enabled  uint8              // bit n: Time[n] counts
	Time     [PFCClasses]uint16 // quanta of 512 bit times for which priority n stops; 0: resume
}

// Put writes 20 octets.
func (f *PFC) Put(b []byte) {
	b = b[:PFCLen]
	binary.BigEndian.PutUint16(b, MACControlPFC)
	b[2], b[3] = f.Reserved, f.Enabled
	for i, t := range f.Time {
		binary.BigEndian.PutUint16(b[4+2*i:], t)
	}
}

// DecodePFC reads 20 octets, of which the first two are known to be MACControlPFC.
func DecodePFC(b []byte) PFC {
	b = b[:PFCLen]
	f := PFC{Reserved: b[2], Enabled: b[3]}
	for i := range f.Time {
		f.Time[i] = binary.BigEndian.Uint16(b[4+2*i:])
	}
	return f
}

// Pause is a PAUSE (IEEE 802.3 31B) behind EtherType 0x8808:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        Opcode = 0x0001        |          pause_time           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Pause struct {
	Time uint16 // quanta of 512 bit times for which all frames stop; 0: resume
}

// Put writes 4 octets.
func (f Pause) Put(b []byte) { binary.BigEndian.PutUint32(b, MACControlPause<<16|uint32(f.Time)) }

// DecodePause reads 4 octets, of which the first two are known to be MACControlPause.
func DecodePause(b []byte) Pause { return Pause{uint16(binary.BigEndian.Uint32(b))} }
