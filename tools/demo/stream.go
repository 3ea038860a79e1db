package main

import (
	"bytes"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// stream is what one endpoint sent to the other, as captured before and after the gateway.
type stream struct {
	frames     []fate // in the order in which they were sent
	arrived    int
	strangers  int // arrived, but don't match a sent frame in order
	ceMarked   int // marked CE by the gateway
	ceOnNotECT int // marked CE though not ECN-capable; part of ceMarked
	wrongICRC  int // arrived with a wrong ICRC
}

// fate is the fate of a frame. Times count from the run's first frame.
type fate struct {
	sent, arrived time.Duration
	lost          bool
	bytes         int // on the line
	payload       int // payload that the receiver accepts: only packets in sequence
}

// newStream compares both captures. Arrived frames must be the sent ones in the same order, with gaps where frames were dropped, and may
// differ only in CE.
func newStream(sent, arrived []captured, start int64) *stream {
	s := &stream{frames: make([]fate, len(sent)), arrived: len(arrived)}
	for i, f := range sent {
		s.frames[i] = fate{sent: time.Duration(f.at - start), lost: true, bytes: len(f.data) + endpoint.EthernetOverhead}
	}
	at, expected := 0, map[uint32]uint32{}
	for _, f := range arrived {
		p := f.parse()
		found := at
		for found < len(sent) && !sameButCE(sent[found].data, f.data, &p) {
			found++
		}
		if found == len(sent) {
			s.strangers++
			continue
		}
		at = found + 1
		s.frames[found].lost, s.frames[found].arrived = false, time.Duration(f.at-start)
		s.frames[found].payload = taken(expected, f.data, &p)
		s.check(&sent[found], &f, &p)
	}
	return s
}

// check counts marks and wrong checksums.
func (s *stream) check(sent, arrived *captured, p *packet.Parsed) {
	if before := sent.parse(); p.ECN == packet.CE && before.ECN != packet.CE {
		s.ceMarked++
		if before.ECN == packet.NotECT {
			s.ceOnNotECT++
		}
	}
	if !packet.VerifyICRC(arrived.data, p) {
		s.wrongICRC++
	}
}

// taken is how many bytes of a packet's payload a receiver accepts. expected is the PSN that it expects, by QP.
func taken(expected map[uint32]uint32, frame []byte, p *packet.Parsed) int {
	const psnMask, padShift, padMask = 1<<24 - 1, 4, 3
	want, known := expected[p.DestQP]
	if !p.Opcode.HasPayload() || known && p.PSN != want {
		return 0
	}
	expected[p.DestQP] = (p.PSN + 1) & psnMask
	pad := int(frame[p.BTH+1] >> padShift & padMask)
	return int(p.ICRC) - int(p.BTH) - packet.BTHLen - p.Opcode.HeadersLen() - pad
}

// sameButCE compares two IPv6 frames; p describes the second. If the second has CE, the first may have another codepoint.
func sameButCE(a, b []byte, p *packet.Parsed) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if p.ECN != packet.CE || len(a) != len(b) || p.Family != 6 {
		return false
	}
	l3, l4 := int(p.L3), int(p.L4)
	if !bytes.Equal(a[l4:], b[l4:]) {
		return false
	}
	head := slices.Clone(a[:l4])
	head[l3+1] |= packet.CE << 4
	return bytes.Equal(head, b[:l4])
}

// lost is how many of the frames sent between two times were lost.
func (s *stream) lost(from, to time.Duration) (n int) {
	for i := range s.frames {
		if f := &s.frames[i]; f.lost && f.sent >= from && f.sent < to {
			n++
		}
	}
	return n
}

// rates are the rates sent and arrived on the line between two times, in bit/s.
func (s *stream) rates(from, to time.Duration) (sent, arrived float64) {
	in, out := 0, 0
	for i := range s.frames {
		f := &s.frames[i]
		if f.sent >= from && f.sent < to {
			in += f.bytes
		}
		if !f.lost && f.arrived >= from && f.arrived < to {
			out += f.bytes
		}
	}
	return perSecond(in, to-from), perSecond(out, to-from)
}

// portRate is the rate of the WAN port's line between two times, and the goodput, in bit/s. The time counts from the first to the last
// frame that arrived, so the rate is exact if the line is busy.
func (s *stream) portRate(from, to time.Duration) (line, goodput float64) {
	first, last, sum, payload := time.Duration(-1), time.Duration(0), 0, 0
	for i := range s.frames {
		f := &s.frames[i]
		if f.lost || f.arrived < from || f.arrived >= to {
			continue
		}
		if last = f.arrived; first < 0 {
			first = last
			continue
		}
		sum, payload = sum+f.bytes, payload+f.payload
	}
	return perSecond(sum, last-first), perSecond(payload, last-first)
}

// usualRate is the usual rate of the WAN port's line: the median over pieces of 50 ms. If the port's worker loses its core once, the other
// pieces still show the port's rate.
func (s *stream) usualRate(from, to time.Duration) float64 {
	const piece = 50 * time.Millisecond
	rates := []float64{0}
	for at := from; at+piece <= to; at += piece {
		rate, _ := s.portRate(at, at+piece)
		rates = append(rates, rate)
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

func perSecond(bytes int, length time.Duration) float64 {
	const bits = 8
	if length <= 0 {
		return 0
	}
	return float64(bytes*bits) / length.Seconds()
}
