package endpoint

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Hop is a node's data about the link by which a packet leaves it: node data of an IOAM trace (RFC 9197 4.4.2).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Hop_Lim     |              node_id                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       timestamp seconds                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 timestamp fraction, nanoseconds               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      queue depth, bytes                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     link rate, 10 Mb/s (24 bits)              |               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+               +
//	|           bytes sent by the link (40 bits)                    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The last two words are namespace-specific data in wide format, whose meaning each domain defines.
type Hop struct {
	Node  uint32 // 24 bits
	Time  int64  // ns
	Queue uint32 // bytes waiting for the link
	Sent  uint64 // bytes that the link has sent, low 40 bits
	Rate  int64  // bit/s
}

// since is the time from an earlier hop's data to this one's, ns; negative if the other one's is later. The seconds of both have 32 bits.
func (h *Hop) since(earlier *Hop) int64 {
	const period = second << 32
	d := (h.Time - earlier.Time) % period
	switch {
	case d > period/2:
		d -= period
	case d < -period/2:
		d += period
	}
	return d
}

const (
	hopLen     = 24 // bytes
	hopWords   = hopLen / wordLen
	traceType  = 1<<23 | 1<<21 | 1<<20 | 1<<17 | 1<<13 // bits 0, 2, 3, 6 and 10 of the IOAM-Trace-Type (RFC 9197 4.4.1)
	rateUnit   = 10_000_000                            // bit/s
	sentBits   = 40
	sentMask   = 1<<sentBits - 1
	nodeMask   = 1<<24 - 1
	traceOuter = packet.OptionHeaderLen + 2 + packet.IOAMTraceHeaderLen // option header, reserved octet, IOAM-Opt-Type, fixed part
)

// traceOption builds the Hop-by-Hop Options header with an empty trace that data packets carry; nil if none is configured, and over IPv4.
func (c *HPCCConfig) traceOption(to packet.Addr) []byte {
	if c.Hops == 0 || to.Is4() {
		return nil
	}
	const (
		unit = 8 // of extension headers (RFC 8200 4.3)
		padN = 2
	)
	option := traceOuter + c.Hops*hopLen
	length := (2 + padN + option + unit - 1) / unit * unit
	b := make([]byte, length)
	b[0], b[1] = packet.ProtoUDP, uint8(length/unit-1)
	b[2] = packet.OptionPadN // the trace starts on a 4-octet boundary (RFC 9486 3)
	at := 2 + padN
	b[at], b[at+1], b[at+3] = packet.OptionIOAMChanges, uint8(option-packet.OptionHeaderLen), packet.IOAMPreallocatedTrace
	(&packet.IOAMTraceHeader{NodeLen: hopWords, RemainingLen: uint8(c.Hops * hopWords), TraceType: traceType}).Put(b[at+4:])
	if rest := length - at - option; rest > 1 {
		b[at+option], b[at+option+1] = packet.OptionPadN, uint8(rest-packet.OptionHeaderLen)
	}
	return b
}

// PutHop adds a hop to the trace of a parsed packet, as a node on its path does. It returns false if the packet has no trace of this form
// or no free entry. A Host's ICRC doesn't cover the trace.
func PutHop(frame []byte, p *packet.Parsed, h *Hop) bool {
	trace := packet.FindIOAMTrace(frame, p).Data
	if trace == nil {
		return false
	}
	header := packet.DecodeIOAMTraceHeader(trace)
	places := len(trace) - packet.IOAMTraceHeaderLen
	at := (int(header.RemainingLen) - hopWords) * wordLen
	if header.TraceType != traceType || header.NodeLen != hopWords || at < 0 || at+hopLen > places {
		return false
	}
	header.RemainingLen -= hopWords
	header.Put(trace)
	b := trace[packet.IOAMTraceHeaderLen+at:]
	binary.BigEndian.PutUint32(b, h.Node&nodeMask)
	binary.BigEndian.PutUint32(b[4:], uint32(h.Time/second))
	binary.BigEndian.PutUint32(b[8:], uint32(h.Time%second))
	binary.BigEndian.PutUint32(b[12:], h.Queue)
	binary.BigEndian.PutUint64(b[16:], uint64(h.Rate/rateUnit)<<sentBits|h.Sent&sentMask)
	return true
}

// decodeTrace reads the hops of an IOAM trace, the last hop on the path first. ok is false if it doesn't have the form that HPCC needs.
func decodeTrace(t *packet.IOAMTrace, hops *[maxHops]Hop) (n int, ok bool) {
	header := packet.DecodeIOAMTraceHeader(t.Data)
	list := t.Data[packet.IOAMTraceHeaderLen:]
	if t.Type == packet.IOAMPreallocatedTrace {
		list = list[min(len(list), int(header.RemainingLen)*wordLen):]
	}
	if header.TraceType != traceType || header.NodeLen != hopWords || len(list) == 0 || len(list)%hopLen != 0 || len(list) > maxHops*hopLen {
		return 0, false
	}
	for ; len(list) > 0; n++ {
		wide := binary.BigEndian.Uint64(list[16:])
		fraction := binary.BigEndian.Uint32(list[8:])
		h := Hop{
			Node:  binary.BigEndian.Uint32(list) & nodeMask,
			Time:  int64(binary.BigEndian.Uint32(list[4:]))*second + int64(fraction),
			Queue: binary.BigEndian.Uint32(list[12:]),
			Sent:  wide & sentMask,
			Rate:  int64(wide>>sentBits) * rateUnit,
		}
		if h.Rate == 0 || fraction >= second {
			return 0, false
		}
		hops[n] = h
		list = list[hopLen:]
	}
	return n, true
}
