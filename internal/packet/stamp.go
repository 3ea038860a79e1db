package packet

import "encoding/binary"

// Ports and lengths of STAMP, the Simple Two-way Active Measurement Protocol, in unauthenticated mode (RFC 8762).
const (
	STAMPPort = 862 // UDP port of reflectors (RFC 8762 4.1)
	STAMPLen  = 44  // octets of a test packet and of a reply after the UDP header; longer ones have extensions
)

// The Error Estimate of a clock without known synchronization: S 0, Z 0 (NTP timestamps), and 1 * 2^(22-32) seconds, about a
// millisecond (RFC 8762 4.2.1, RFC 4656 4.1.2: the multiplier is never 0).
const (
	stampScale      = 22
	stampMultiplier = 1
	STAMPError      = stampScale<<8 | stampMultiplier
)

// STAMPTest is a Session-Sender's test packet (RFC 8762 4.2.1, figure 2), whose other octets are 0:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Sequence Number                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                           Timestamp                           |
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Error Estimate        |            MBZ (30)           ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type STAMPTest struct {
	Sequence  uint32
	Timestamp uint64 // time of sending, NTPTime
	Error     uint16 // Error Estimate: S, Z, Scale (6 bits), Multiplier (8 bits)
}

// Put writes 44 octets.
func (t *STAMPTest) Put(b []byte) {
	b = b[:STAMPLen]
	clear(b)
	binary.BigEndian.PutUint32(b, t.Sequence)
	binary.BigEndian.PutUint64(b[4:], t.Timestamp)
	binary.BigEndian.PutUint16(b[12:], t.Error)
}

// DecodeSTAMPTest reads at least 44 octets.
func DecodeSTAMPTest(b []byte) STAMPTest {
	b = b[:STAMPLen]
	return STAMPTest{binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint16(b[12:])}
}

// STAMPReply is a Session-Reflector's packet (RFC 8762 4.3.1, figure 5):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Sequence Number                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                           Timestamp                           |
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Error Estimate        |              MBZ              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Receive Timestamp                       |
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 Session-Sender Sequence Number                |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                   Session-Sender Timestamp                    |
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Session-Sender Error Estimate |              MBZ              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|Ses-Sender TTL |                      MBZ                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type STAMPReply struct {
	Sequence  uint32 // of a stateless reflector, the test packet's
	Timestamp uint64 // time of sending the reply, NTPTime
	Error     uint16
	Received  uint64    // when the test packet arrived, NTPTime
	Test      STAMPTest // as it arrived
	TTL       uint8     // TTL or Hop Limit at arrival
}

// Put writes 44 octets.
func (r *STAMPReply) Put(b []byte) {
	b = b[:STAMPLen]
	clear(b)
	binary.BigEndian.PutUint32(b, r.Sequence)
	binary.BigEndian.PutUint64(b[4:], r.Timestamp)
	binary.BigEndian.PutUint16(b[12:], r.Error)
	binary.BigEndian.PutUint64(b[16:], r.Received)
	binary.BigEndian.PutUint32(b[24:], r.Test.Sequence)
	binary.BigEndian.PutUint64(b[28:], r.Test.Timestamp)
	binary.BigEndian.PutUint16(b[36:], r.Test.Error)
	b[40] = r.TTL
}

// DecodeSTAMPReply reads at least 44 octets.
func DecodeSTAMPReply(b []byte) STAMPReply {
	b = b[:STAMPLen]
	return STAMPReply{
		Sequence: binary.BigEndian.Uint32(b), Timestamp: binary.BigEndian.Uint64(b[4:]), Error: binary.BigEndian.Uint16(b[12:]),
		Received: binary.BigEndian.Uint64(b[16:]),
		Test:     STAMPTest{binary.BigEndian.Uint32(b[24:]), binary.BigEndian.Uint64(b[28:]), binary.BigEndian.Uint16(b[36:])},
		TTL:      b[40],
	}
}

// NTPSince is the time from one NTP timestamp to a later one in nanoseconds, rounded to the nearest; negative if the other one is later.
// The timestamps may be up to 68 years apart.
func NTPSince(later, earlier uint64) int64 {
	const nanos, half = 1e9, 1 << 31
	d := int64(later - earlier)
	return d>>32*nanos + (d&(1<<32-1)*nanos+half)>>32
}
