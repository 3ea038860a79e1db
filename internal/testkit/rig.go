package testkit

import (
	"bytes"
	"math"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Epoch is the time a Rig begins at (ns); not 0, which in a flow means never.
const Epoch = 1e9

// Setup says what dataplane a Rig runs. What is left zero is ordinary.
type Setup struct {
	Workers  int    // 1
	Pairs    int    // 1; of pair i the fabric port is 2i, the WAN port 2i+1
	Burst    int    // 32
	Room     int    // octets of a buffer; 2048
	Buffers  int    // of each worker; 2048
	Rate     uint64 // of every port, bit/s; 10 Gbps
	Capacity uint64 // of a class, octets; 1 MiB
	Frames   int    // of a class; 1024
	Flows    int    // of each worker; 1024
	Static   *pairing.QPMap
	Policy   *dataplane.Policy // DefaultPolicy
	Forget   bool              // don't record what is sent
	// Sent takes what a worker sends, in place of recording it. It is called on the worker's goroutine.
	Sent func(worker int, s inmem.Sent)
	// Change has the last word.
	Change func(*dataplane.Config)
}

// Sent is a frame that left.
type Sent struct {
	Port   int
	Octets []byte
	Length uint32
	Built  bool // by the worker: a notification
	Now    int64
}

// Rig is a dataplane on in-memory backends, with one clock for all.
type Rig struct {
	Plane    *dataplane.Dataplane
	Backends []*inmem.Backend
	Sent     [][]Sent // by worker, in order
	Now      int64    // ns

	ports    int
	injected atomic.Uint64
}

// DefaultPolicy tells nobody and never marks.
func DefaultPolicy(ports int) *dataplane.Policy {
	p := &dataplane.Policy{
		Ports: make([]dataplane.PortPolicy, ports), Who: &congestion.Policy{},
		Build: cnpgen.Gateway{Code: packet.DefaultCodePoints},
	}
	for i := range p.Ports {
		p.Ports[i].Thresholds = congestion.Thresholds{KMin: math.MaxUint64 - 1, KMax: math.MaxUint64}
	}
	return p
}

// New makes a Rig.
func New(t T, s Setup) *Rig {
	t.Helper()
	s.fill()
	r := &Rig{ports: 2 * s.Pairs, Sent: make([][]Sent, s.Workers)}
	c := dataplane.Config{Flows: s.Flows, Paired: 64 * s.Flows, Aging: 60e9, Seed: 7, Static: s.Static, Policy: s.Policy, Allocate: Heap}
	for i := range r.ports {
		c.Ports = append(c.Ports, dataplane.PortConfig{
			Role: dataplane.Role(i % 2), Peer: i ^ 1, Rate: s.Rate, Capacity: s.Capacity, Frames: s.Frames, Classes: 1,
		})
	}
	for i := range s.Workers {
		memory, _ := Heap(s.Room * s.Buffers)
		b, err := inmem.New(inmem.Config{Ports: r.ports, Burst: s.Burst, Room: s.Room, Memory: memory, Sent: r.recorder(i, &s)})
		if err != nil {
			t.Fatalf("%v", err)
		}
		r.Backends = append(r.Backends, b)
		c.Backends = append(c.Backends, burst.Backend(b))
	}
	if s.Change != nil {
		s.Change(&c)
	}
	var err error
	if r.Plane, err = dataplane.New(c); err != nil {
		t.Fatalf("%v", err)
	}
	r.Advance(Epoch)
	return r
}

func (s *Setup) fill() {
	or := func(v *int, ordinary int) {
		if *v == 0 {
			*v = ordinary
		}
	}
	or(&s.Workers, 1)
	or(&s.Pairs, 1)
	or(&s.Burst, 32)
	or(&s.Room, 2048)
	or(&s.Buffers, 2048)
	or(&s.Frames, 1024)
	or(&s.Flows, 1024)
	if s.Rate == 0 {
		s.Rate = 10e9
	}
	if s.Capacity == 0 {
		s.Capacity = 1 << 20
	}
	if s.Policy == nil {
		s.Policy = DefaultPolicy(2 * s.Pairs)
	}
}

func (r *Rig) recorder(worker int, s *Setup) func(inmem.Sent) {
	if take := s.Sent; take != nil {
		return func(s inmem.Sent) { take(worker, s) }
	}
	if s.Forget {
		return nil
	}
	return func(s inmem.Sent) {
		r.Sent[worker] = append(r.Sent[worker], Sent{s.Port, bytes.Clone(s.Octets), s.Length, s.Built, s.Now})
	}
}

// Advance moves the clock of all backends on.
func (r *Rig) Advance(ns int64) {
	r.Now += ns
	for _, b := range r.Backends {
		b.SetTime(r.Now)
	}
}

// Inject hands worker 0 a frame to receive by a port.
func (r *Rig) Inject(t T, port int, frames ...[]byte) {
	t.Helper()
	for _, f := range frames {
		r.InjectAt(t, 0, port, f)
	}
}

// InjectAt hands a worker a frame to receive by a port. Each worker's goroutine may do it for its own.
func (r *Rig) InjectAt(t T, worker, port int, frame []byte) {
	t.Helper()
	r.InjectCut(t, worker, port, frame, uint32(len(frame)))
}

// InjectCut hands a worker a frame of the given length, of which the octets are the part at hand.
func (r *Rig) InjectCut(t T, worker, port int, octets []byte, length uint32) {
	t.Helper()
	if !r.Backends[worker].Inject(port, octets, length) {
		t.Fatalf("worker %d has no buffer for a frame of %d octets", worker, len(octets))
	}
	r.injected.Add(1)
}

// Settle steps all workers, at the present time, until none has anything left to do now. That never comes while a device takes less
// than is due.
func (r *Rig) Settle() {
	for again := true; again; {
		again = false
		for i := range r.Backends {
			again = r.Plane.Worker(i).Step() > 0 || again
		}
	}
}

// Drain goes on, departure by departure, until nothing is queued.
func (r *Rig) Drain() {
	for {
		r.Settle()
		next, any := int64(0), false
		for i := range r.Backends {
			if due, waits := r.Plane.Worker(i).NextDue(); waits && (!any || due < next) {
				next, any = due, true
			}
		}
		if !any {
			return
		}
		r.Advance(max(next-r.Now, 0))
	}
}

// Take returns what worker 0 has sent by a port since the last call, in order.
func (r *Rig) Take(port int) (out []Sent) {
	var rest []Sent
	for _, s := range r.Sent[0] {
		if s.Port == port {
			out = append(out, s)
		} else {
			rest = append(rest, s)
		}
	}
	r.Sent[0] = rest
	return out
}

// Count is a port's published counter.
func (r *Rig) Count(port int, c dataplane.Counter) uint64 { return r.Plane.Port(port).Count[c] }

// Balance fails the test unless every received frame is forwarded, dropped for a reason, consumed or queued.
func (r *Rig) Balance(t T) {
	t.Helper()
	var received, ended, waiting uint64
	for port := range r.ports {
		s := r.Plane.Port(port)
		received += s.Count[dataplane.RxPackets]
		ended += s.Count[dataplane.TxPackets] + s.Count[dataplane.ConsumedMACControl]
		for c := range dataplane.Counters {
			if c.IsDrop() {
				ended += s.Count[c]
			}
		}
		for class := range s.Frames {
			ended += uint64(s.Frames[class])
		}
	}
	for _, b := range r.Backends {
		waiting += uint64(b.Waiting())
	}
	if received != ended || received+waiting != r.injected.Load() {
		t.Errorf("%d frames injected, %d not yet received, %d received, %d forwarded, dropped, consumed or queued",
			r.injected.Load(), waiting, received, ended)
	}
}

// Close closes the workers and fails the test unless the sum is right, nothing is queued and every buffer is back.
func (r *Rig) Close(t T) {
	t.Helper()
	r.Balance(t)
	for i, b := range r.Backends {
		waiting := b.Waiting()
		r.Plane.Worker(i).Close()
		if n := b.InUse() - waiting; n != 0 {
			t.Errorf("worker %d: %d buffers are not given back", i, n)
		}
		if n := r.Plane.Worker(i).Queued(); n != 0 {
			t.Errorf("worker %d: %d frames are queued after Close", i, n)
		}
	}
	for port := range r.ports {
		if s := r.Plane.Port(port); s.Depth != ([dataplane.MaxClasses]uint64{}) || s.Frames != ([dataplane.MaxClasses]int64{}) {
			t.Errorf("port %d: %v octets, %v frames are queued after Close", port, s.Depth, s.Frames)
		}
	}
	r.Balance(t)
}
