package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/internal/virtual"
)

// SwitchConfig describes the switches. Sizes are bytes.
type SwitchConfig struct {
	Buffer int64 // shared by all ports of a switch
	// Alpha bounds the data that a port with PFC may store: Alpha times the free part of the buffer. It applies to ports as slow as the
	// slowest of the switch; if AlphaByRate, faster ports may store more, in proportion to their rate.
	Alpha       float64
	AlphaByRate bool
	// EgressAlpha bounds in the same way the length of a queue that data from a port without PFC may enter.
	EgressAlpha float64
	ECN         []ECN // by rate, the slowest first; empty: no port marks
}

// ECN describes how ports of at least a rate mark packets: with probability 0 at a queue of KMin, PMax at KMax, and 1 above KMax (RED as
// DCQCN uses it, SIGCOMM 2015, figure 5). The queue is the data waiting when the packet leaves.
type ECN struct {
	Rate       uint64 // bit/s
	KMin, KMax int64
	PMax       float64
}

func (c *SwitchConfig) validate() error {
	for _, alpha := range []float64{c.Alpha, c.EgressAlpha} {
		if c.Buffer < 1 || !(alpha > 0 && alpha <= maxAlpha) {
			return fmt.Errorf("a buffer of %d bytes and an alpha of %v: expected at least 1 byte, and more than 0 and at most %d",
				c.Buffer, alpha, maxAlpha)
		}
	}
	for i, e := range c.ECN {
		if e.KMin < 0 || e.KMin > e.KMax || !(e.PMax >= 0 && e.PMax <= 1) || i > 0 && e.Rate <= c.ECN[i-1].Rate {
			return fmt.Errorf("ECN thresholds from %d bit/s on: K_min %d, K_max %d, P_max %v: expected K_min up to K_max, a probability, and rates that go up",
				e.Rate, e.KMin, e.KMax, e.PMax)
		}
	}
	return nil
}

const (
	maxAlpha   = 128
	alphaUnits = 1024 // of ingress.alpha
	// resumeGap is how far below the threshold a port's data must fall before the other end may resume, bytes.
	resumeGap = 3000
	// pauseQuanta is how long a PFC frame stops the other end: 65,535 times 512 bit times (IEEE 802.1Q 36). It is repeated before that time
	// ends.
	pauseQuanta    = 0xffff
	pauseQuantumNs = 512e9
)

// ecn is a port's thresholds, and its random numbers for marking.
type ecn struct {
	on         bool
	kMin, kMax int64
	slope      uint64 // probability for each byte above kMin, in 2^-64
	random     splitmix.Rand
}

// newECN picks the thresholds for a port's rate.
func newECN(rows []ECN, rate uint64, random splitmix.Rand) (e ecn) {
	for _, row := range rows {
		if rate >= row.Rate {
			e = ecn{on: true, kMin: row.KMin, kMax: row.KMax, random: random}
			if row.KMax > row.KMin {
				e.slope = uint64(math.Ldexp(row.PMax, 63) / float64(row.KMax-row.KMin) * 2)
			}
		}
	}
	return e
}

// marks decides whether to mark a packet that leaves a queue of this many bytes, itself included.
func (e *ecn) marks(queue int64) bool {
	switch {
	case !e.on || queue <= e.kMin:
		return false
	case queue > e.kMax:
		return true
	}
	overflow, p := bits.Mul64(uint64(queue-e.kMin), e.slope)
	return overflow != 0 || e.random.Next() < p
}

// ingress is what a switch has stored of the data that a port received.
type ingress struct {
	pfc         bool
	stopping    bool  // the other end was asked to stop
	alpha       int64 // in 1/alphaUnits
	egressAlpha int64 // of the port's own queue, in the same unit
	stored      int64 // bytes in the shared buffer
	headroom    int64 // bytes for data that arrives after the other end was asked to stop
	above       int64 // bytes in the headroom
	repeat      int64 // ns between two PFC frames while the other end is to stop
	buffer      *buffer
}

// buffer is a switch's memory.
type buffer struct {
	shared int64 // bytes, without the headroom
	used   int64
}

// threshold is how many bytes of the buffer a port may use now.
func (b *buffer) threshold(alpha int64) int64 { return max(b.shared-b.used, 0) * alpha / alphaUnits }

// initSwitch divides the buffer of a switch among its ports.
func (l *lines) initSwitch(node int, ports []int32) error {
	c := l.network.switchOf(node)
	b := &buffer{shared: c.Buffer}
	slowest := uint64(math.MaxUint64)
	for _, n := range ports {
		slowest = min(slowest, l.ports[n].rate)
	}
	for _, n := range ports {
		p := &l.ports[n]
		in := &p.ingress
		in.buffer = b
		in.alpha = int64(math.Round(c.Alpha * alphaUnits))
		in.egressAlpha = int64(math.Round(c.EgressAlpha * alphaUnits))
		if c.AlphaByRate {
			in.alpha = int64(float64(in.alpha) * float64(p.rate) / float64(slowest))
		}
		if in.pfc {
			in.headroom = headroom(p.rate, p.delay, l.network.MaxFrame)
			b.shared -= in.headroom
			in.repeat = int64(pauseQuanta*pauseQuantumNs/float64(p.rate)) / 2
		}
		p.ecn = newECN(c.ECN, p.rate, splitmix.New(l.network.Seed, purposeECN+uint64(n)))
	}
	if b.shared <= 0 {
		return fmt.Errorf("switch %s: its links with PFC need headroom of %d bytes, more than its buffer of %d: give it a larger buffer, or PFC to shorter links only",
			l.network.Nodes[node].Name, c.Buffer-b.shared, c.Buffer)
	}
	return nil
}

// headroom is the data that can still arrive after a port has decided to stop the other end: what the link holds in both directions, a
// longest frame already started at each end, the one that goes above, and the PFC frame itself.
func headroom(rate uint64, delay int64, longest int) int64 {
	onTheLink := float64(rate) * float64(2*delay) / 8e9
	return int64(onTheLink) + 3*int64(longest) + minFrame
}

const minFrame = 60 // bytes of the shortest Ethernet frame without FCS

// toSwitch queues a frame that arrived by a port for the port by which it leaves.
func (l *lines) toSwitch(in, f int32, now int64) {
	frame := l.store.at(f)
	if frame.class == classControl {
		l.obeyPFC(in, f, now)
		return
	}
	out, ok := l.routes.next(l.ports[in].node, frame.to, frame.hash)
	if !ok {
		l.unroutable++
		l.store.release(f)
		return
	}
	p := &l.ports[out]
	frame.in = in
	if !l.admit(in, p, frame) {
		p.stats.Dropped.add(frame.length)
		l.store.release(f)
		return
	}
	class := frame.class
	p.queues[class].push(&l.store, f)
	if class == classData {
		p.stats.Peak = max(p.stats.Peak, p.queues[classData].bytes)
	}
	if q := &l.ports[in].ingress; q.pfc && class == classData && !q.stopping &&
		(q.above > 0 || q.stored >= q.buffer.threshold(q.alpha)) {
		l.sendPFC(in, true, now)
	}
	l.wake(out, now)
}

// admit reserves buffer for a frame that arrived by a port and leaves by p.
func (l *lines) admit(in int32, p *port, f *frame) bool {
	q := &l.ports[in].ingress
	size := int64(f.length)
	switch {
	case f.class == classHigh:
		if q.buffer.used+size > q.buffer.shared {
			return false
		}
	case q.pfc:
		if q.above > 0 || q.stored+size > q.buffer.threshold(q.alpha) {
			if q.above+size > q.headroom {
				return false
			}
			q.above += size
			return true
		}
		q.stored += size
	case p.queues[classData].bytes+size > q.buffer.threshold(p.ingress.egressAlpha):
		return false
	}
	q.buffer.used += size
	return true
}

// leave removes the next frame of a class from a port's queue. Ports of hosts and gateways have nothing in these queues.
func (l *lines) leave(p *port, class int) int32 {
	queued := p.queues[class].bytes
	f := p.queues[class].pop(&l.store)
	frame := l.store.at(f)
	q := &l.ports[frame.in].ingress
	size := int64(frame.length)
	if class == classData && q.pfc {
		above := min(q.above, size)
		q.above -= above
		size -= above
		q.stored -= size
	}
	q.buffer.used -= size
	if class != classData {
		return f
	}
	if l.network.IOAM {
		l.trace(f, &endpoint.Hop{Node: uint32(p.node), Time: l.now, Queue: uint32(p.queues[classData].bytes), Sent: p.stats.Sent.Bytes, Rate: int64(p.rate)})
	}
	if frame.ect && p.ecn.marks(queued) {
		l.store.markCE(f)
		p.stats.Marked++
	}
	if q.stopping && q.above == 0 && (q.stored == 0 || q.stored+resumeGap <= q.buffer.threshold(q.alpha)) {
		l.sendPFC(frame.in, false, l.now)
	}
	return f
}

// sendPFC stops the data of the other end of a port, or lets it resume.
func (l *lines) sendPFC(n int32, stop bool, now int64) {
	p := &l.ports[n]
	p.ingress.stopping = stop
	quanta, repeat := uint16(0), virtual.Never
	if stop {
		quanta, repeat = pauseQuanta, now+p.ingress.repeat
		p.stats.Pauses++
	} else {
		p.stats.Resumes++
	}
	l.agenda.Set(l.repeatOf(n), repeat)
	var b [minFrame]byte
	copy(b[:], packet.MACControlAddr[:])
	binary.BigEndian.PutUint16(b[atEtherType:], packet.EtherTypeMACControl)
	pfc := packet.PFC{Enabled: 1 << DataPriority}
	pfc.Time[DataPriority] = quanta
	pfc.Put(b[packet.EthernetLen:])
	if f := l.store.put(b[:], minFrame); f != none {
		p.queues[classControl].push(&l.store, f)
		l.wake(n, now)
	}
}

// obeyPFC processes a PFC frame that a switch's port received: the port sends no data for the given time.
func (l *lines) obeyPFC(n, f int32, now int64) {
	b := l.store.bytes(f)
	l.store.release(f)
	if len(b) < packet.EthernetLen+packet.PFCLen || binary.BigEndian.Uint16(b[packet.EthernetLen:]) != packet.MACControlPFC {
		return
	}
	pfc := packet.DecodePFC(b[packet.EthernetLen:])
	if pfc.Enabled>>DataPriority&1 == 0 {
		return
	}
	p := &l.ports[n]
	until := now + int64(float64(pfc.Time[DataPriority])*pauseQuantumNs/float64(p.rate))
	p.stats.StoppedFor += until - max(p.stoppedTo, now)
	p.stoppedTo = until
	l.wake(n, now)
}
