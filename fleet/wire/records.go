package wire

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// A body of records is a list of records of one size, which the kind gives. The scope in a record is packet.Scope.Named: boxes number their
// ports each in its own way.

// ErrRecord is a body whose records are no multiple of their size, or out of bounds.
var ErrRecord = errors.New("a record has another size, or values out of bounds")

// Hosts are the two ends of flows of one direction, in their scope.
type Hosts struct {
	From, To packet.Addr
	Scope    packet.Scope
}

// Wanted asks for the flows from one host to another.
type Wanted struct {
	Hosts
	Again bool // also for those that were sent: the sender lacks some
}

// Bits of Flow.Flags.
const (
	Requests   = 1 << iota // First and High are valid
	Responses              // Acked is valid
	Unreliable             // UC
	Steady                 // the UDP source port hasn't changed lately
	flagsEnd
)

// Flow is what a gateway sees of a flow.
type Flow struct {
	Hosts
	QP          uint32 // destination QP
	Port        uint16 // UDP source port
	Flags       uint8
	First, High uint32 // PSNs of its requests
	Acked       uint32 // highest PSN of its responses
}

// Pair is a flow with a confirmed source QP. With QPs 0 it is withdrawn.
type Pair struct {
	Hosts
	QP, SourceQP uint32
	Port         uint16 // UDP source port
	Evidence     uint8  // pairing.Evidence
	Unreliable   bool
}

// Notice is that a sender was notified.
type Notice struct {
	Hosts
	QP        uint32 // destination QP of the flow
	Kind      uint8  // packet.Notification
	Action    uint8  // congestion.Action
	Parameter uint16
	Age       uint32  // microseconds before the message was sent
	Rate      float32 // F there, bytes/ns; 0: there is none
}

// Arrival is what arrives at one member of a shared bottleneck.
type Arrival struct {
	Bottleneck uint64 // hash of its name
	Class      uint8
	Flows      uint64  // bytes of flows that obey the fair rate F, divided by F, ns since the sender's start: its growth is their number
	Depth      uint64  // bytes queued
	Largest    float32 // largest rate of a flow, bytes/ns
	Line       float32 // rate of its line, bytes/ns
}

// Part precedes the pairs in a part of a snapshot: which pairs these are, of how many.
type Part struct{ First, Total uint32 }

// Append adds the head to a body.
func (p Part) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, p.First), p.Total)
}

// ReadPart reads the head of a body, and returns the pairs.
func ReadPart(body []byte) (p Part, pairs []byte, err error) {
	if len(body) < 8 {
		return p, nil, ErrRecord
	}
	return Part{binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])}, body[8:], nil
}

// Delay is the delay of the control loop that a gateway has measured at a queue.
type Delay struct {
	Queue uint64 // hash of its port's name, or of its bottleneck's
	Class uint8
	Loop  uint64 // ns
}

const hostsSize = 40

// Sizes of the records, bytes.
const (
	WantedSize  = hostsSize + 1
	FlowSize    = hostsSize + 3 + 2 + 1 + 3 + 3 + 3
	PairSize    = hostsSize + 3 + 3 + 2 + 1
	NoticeSize  = hostsSize + 3 + 1 + 1 + 2 + 4 + 4
	ArrivalSize = 8 + 1 + 8 + 8 + 4 + 4
	DelaySize   = 8 + 1 + 8
)

func (h *Hosts) put(b []byte) []byte {
	n := len(b)
	b = append(b, make([]byte, hostsSize)...)
	h.From.Put16(b[n:])
	h.To.Put16(b[n+16:])
	binary.BigEndian.PutUint64(b[n+32:], uint64(h.Scope.Named()))
	return b
}

func (h *Hosts) read(b []byte) bool {
	h.From, h.To = packet.AddrFrom16(b), packet.AddrFrom16(b[16:])
	h.Scope = packet.Scope(binary.BigEndian.Uint64(b[32:]))
	return h.Scope == h.Scope.Named()
}

func put24(b []byte, v uint32) []byte { return append(b, uint8(v>>16), uint8(v>>8), uint8(v)) }
func read24(b []byte) uint32          { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// Append adds the record to a body.
func (w *Wanted) Append(b []byte) []byte {
	again := uint8(0)
	if w.Again {
		again = 1
	}
	return append(w.put(b), again)
}

// Append adds the record to a body.
func (f *Flow) Append(b []byte) []byte {
	b = put24(f.put(b), f.QP)
	b = binary.BigEndian.AppendUint16(b, f.Port)
	b = append(b, f.Flags)
	return put24(put24(put24(b, f.First), f.High), f.Acked)
}

// Append adds the record to a body.
func (p *Pair) Append(b []byte) []byte {
	b = put24(put24(p.put(b), p.QP), p.SourceQP)
	b = binary.BigEndian.AppendUint16(b, p.Port)
	e := p.Evidence
	if p.Unreliable {
		e |= 0x80
	}
	return append(b, e)
}

// Append adds the record to a body.
func (n *Notice) Append(b []byte) []byte {
	b = append(put24(n.put(b), n.QP), n.Kind, n.Action)
	b = binary.BigEndian.AppendUint16(b, n.Parameter)
	return appendFloat(binary.BigEndian.AppendUint32(b, n.Age), n.Rate)
}

// Append adds the record to a body.
func (a *Arrival) Append(b []byte) []byte {
	b = append(binary.BigEndian.AppendUint64(b, a.Bottleneck), a.Class)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, a.Flows), a.Depth)
	return appendFloat(appendFloat(b, a.Largest), a.Line)
}

// Append adds the record to a body.
func (d *Delay) Append(b []byte) []byte {
	b = append(binary.BigEndian.AppendUint64(b, d.Queue), d.Class)
	return binary.BigEndian.AppendUint64(b, d.Loop)
}

// EachWanted calls f with each record of a body.
func EachWanted(body []byte, f func(*Wanted)) error {
	return each(body, WantedSize, func(b []byte, w *Wanted) bool {
		ok, again := w.read(b), b[hostsSize]
		w.Again = again == 1
		return ok && again <= 1
	}, f)
}

// EachFlow calls f with each record of a body.
func EachFlow(body []byte, f func(*Flow)) error {
	return each(body, FlowSize, func(b []byte, r *Flow) bool {
		ok := r.read(b)
		b = b[hostsSize:]
		r.QP, r.Port, r.Flags = read24(b), binary.BigEndian.Uint16(b[3:]), b[5]
		r.First, r.High, r.Acked = read24(b[6:]), read24(b[9:]), read24(b[12:])
		return ok && r.Flags < flagsEnd && packet.ConnectionQP(r.QP)
	}, f)
}

// EachPair calls f with each record of a body.
func EachPair(body []byte, f func(*Pair)) error {
	return each(body, PairSize, func(b []byte, r *Pair) bool {
		ok := r.read(b)
		b = b[hostsSize:]
		r.QP, r.SourceQP, r.Port = read24(b), read24(b[3:]), binary.BigEndian.Uint16(b[6:])
		r.Evidence, r.Unreliable = b[8]&0x7f, b[8]&0x80 != 0
		return ok && packet.ConnectionQP(r.QP) && (r.SourceQP == 0 || packet.ConnectionQP(r.SourceQP)) && r.Evidence < 16
	}, f)
}

// EachNotice calls f with each record of a body.
func EachNotice(body []byte, f func(*Notice)) error {
	return each(body, NoticeSize, func(b []byte, r *Notice) bool {
		ok := r.read(b)
		b = b[hostsSize:]
		r.QP, r.Kind, r.Action = read24(b), b[3], b[4]
		r.Parameter, r.Age, r.Rate = binary.BigEndian.Uint16(b[5:]), binary.BigEndian.Uint32(b[7:]), readFloat(b[11:])
		return ok && r.Rate >= 0
	}, f)
}

// EachArrival calls f with each record of a body.
func EachArrival(body []byte, f func(*Arrival)) error {
	return each(body, ArrivalSize, func(b []byte, r *Arrival) bool {
		r.Bottleneck, r.Class = binary.BigEndian.Uint64(b), b[8]
		r.Flows, r.Depth = binary.BigEndian.Uint64(b[9:]), binary.BigEndian.Uint64(b[17:])
		r.Largest, r.Line = readFloat(b[25:]), readFloat(b[29:])
		return r.Class < 8 && r.Largest >= 0 && r.Line >= 0 && r.Largest < 1e6 && r.Line < 1e6 // NaN fails, too
	}, f)
}

// EachDelay calls f with each record of a body.
func EachDelay(body []byte, f func(*Delay)) error {
	return each(body, DelaySize, func(b []byte, r *Delay) bool {
		r.Queue, r.Class, r.Loop = binary.BigEndian.Uint64(b), b[8], binary.BigEndian.Uint64(b[9:])
		return r.Class < 8 && r.Loop < 10e9
	}, f)
}

// each reads a body before it calls f, so that a body with a bad record has no effect.
func each[T any](body []byte, size int, read func([]byte, *T) bool, f func(*T)) error {
	if len(body)%size != 0 || len(body) > MaxBody {
		return ErrRecord
	}
	var r T
	for i := 0; i < len(body); i += size {
		if !read(body[i:i+size], &r) {
			return ErrRecord
		}
	}
	for i := 0; i < len(body); i += size {
		read(body[i:i+size], &r)
		f(&r)
	}
	return nil
}

func appendFloat(b []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(b, math.Float32bits(v))
}

func readFloat(b []byte) float32 { return math.Float32frombits(binary.BigEndian.Uint32(b)) }
