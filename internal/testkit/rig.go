package testkit

import (
	"bytes"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/stepper"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/telemetry"
)

// Epoch is the time at which a Rig begins (ns). It is not 0, as 0 means never in a flow.
const Epoch = 1e9

// Setup describes the dataplane of a Rig. A zero field takes the default that its comment gives.
type Setup struct {
	Workers    int               // 1
	Pairs      int               // 1; pair i has fabric port 2i and WAN port 2i+1
	Burst      int               // 32
	BufferSize int               // bytes of a buffer; 2048
	Buffers    int               // of each worker; 2048
	Rate       uint64            // of every port, bit/s; 10 Gbps
	Capacity   uint64            // of a class, bytes; 1 MiB
	Frames     int               // of a class; 1024
	Flows      int               // of each worker; 1024
	Static     *pairing.QPMap    // added to Policy, if that has none
	Policy     *dataplane.Policy // DefaultPolicy
	Forget     bool              // don't record sent frames
	// Sent receives the frames that a worker sends, instead of recording them. It is called on the worker's goroutine.
	Sent func(worker int, s inmem.Sent)
	// Change may change the dataplane's configuration last.
	Change func(*dataplane.Config)
}

// Sent is a frame that was sent.
type Sent struct {
	Port   int
	Octets []byte
	Length uint32
	Built  bool // by the worker: a notification
	Now    int64
}

// Rig is a dataplane on in-memory backends with one clock.
type Rig struct {
	Plane    *dataplane.Dataplane
	Backends []*inmem.Backend
	Sent     [][]Sent // by worker, in order
	Now      int64    // ns

	time     *stepper.Stepper
	ports    int
	buffers  []*[]byte // of each worker
	tables   *arena
	injected atomic.Uint64
}

// closed has the buffers of closed Rigs. They keep what they held, as a device's do. Most of what a Rig took was the time to clear new ones.
var closed sync.Pool

func buffers(octets int) *[]byte {
	if b, _ := closed.Get().(*[]byte); b != nil && len(*b) >= octets {
		return b
	}
	b, _ := Heap(octets)
	return &b
}

// DefaultPolicy never marks and notifies no sender. Each batch of frames begins a round.
func DefaultPolicy(ports int) *dataplane.Policy {
	p := &dataplane.Policy{
		Ports: make([]dataplane.PortPolicy, ports), Who: &congestion.Policy{},
		Build: cnpgen.Gateway{Code: packet.DefaultCodePoints},
	}
	for i := range p.Ports {
		p.Ports[i].Response = congestion.Response{
			Triggers: congestion.Triggers{Thresholds: congestion.Thresholds{KMin: math.MaxUint64 - 1, KMax: math.MaxUint64}, Depth: true},
			Marks:    true, Ladder: congestion.DefaultLadder,
		}
	}
	return p
}

// New makes a Rig.
func New(t T, s Setup) *Rig {
	t.Helper()
	s.fill()
	r := &Rig{ports: 2 * s.Pairs, Sent: make([][]Sent, s.Workers), tables: &arena{}}
	c := dataplane.Config{Flows: s.Flows, Paired: 64 * s.Flows, Aging: 60e9, Seed: 7, Policy: s.policy(), Allocate: r.tables.allocate}
	for i := range r.ports {
		c.Ports = append(c.Ports, dataplane.PortConfig{
			Role: dataplane.Role(i % 2), Peer: i ^ 1, Queue: egress.Queue{Rate: s.Rate, Capacity: s.Capacity, Frames: s.Frames}, Classes: 1,
		})
	}
	for i := range s.Workers {
		octets := s.BufferSize * s.Buffers
		memory := buffers(octets)
		r.buffers = append(r.buffers, memory)
		b, err := inmem.New(inmem.Config{Ports: r.ports, Burst: s.Burst, BufferSize: s.BufferSize, Memory: (*memory)[:octets], Sent: r.recorder(i, &s)})
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
	runtime.AddCleanup(r.Plane, (*arena).release, r.tables) // of a Rig that isn't closed
	r.time = stepper.New(r.Plane, r.Backends, 0)
	r.Advance(Epoch)
	return r
}

// policy is Policy with the static map.
func (s *Setup) policy() *dataplane.Policy {
	if s.Static == nil {
		return s.Policy
	}
	p := *s.Policy
	p.QPMap = s.Static
	return &p
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
	or(&s.BufferSize, 2048)
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

// Advance advances the clock of all backends.
func (r *Rig) Advance(ns int64) {
	r.time.SetTime(r.time.Now() + ns)
	r.Now = r.time.Now()
}

// Inject gives worker 0 frames to receive by a port.
func (r *Rig) Inject(t T, port int, frames ...[]byte) {
	for _, f := range frames {
		r.InjectAt(t, 0, port, f)
	}
}

// InjectAt gives a worker a frame to receive by a port. Each worker's goroutine may call it for its own worker.
func (r *Rig) InjectAt(t T, worker, port int, frame []byte) {
	r.InjectCut(t, worker, port, frame, uint32(len(frame)))
}

// InjectCut gives a worker a frame of the given length that was captured only in part: octets. Neither it nor its callers above are Helpers: that would cost more than
// what the dataplane does with the frame.
func (r *Rig) InjectCut(t T, worker, port int, octets []byte, length uint32) {
	if !r.Backends[worker].Inject(port, octets, length) {
		t.Fatalf("worker %d has no buffer for a frame of %d octets", worker, len(octets))
	}
	r.injected.Add(1)
}

// Settle steps all workers, at the present time, until they have nothing left to do now. It doesn't return while a device accepts less than
// is due.
func (r *Rig) Settle() { r.time.Step() }

// Drain processes all departures until nothing is queued.
func (r *Rig) Drain() {
	r.time.Step()
	r.time.Drain()
	r.Now = r.time.Now()
}

// Take returns the frames that worker 0 has sent by a port since the last call, in order.
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
func (r *Rig) Count(port int, c counters.Counter) uint64 { return r.Plane.Port(port).Count[c] }

// Balance fails the test unless every received frame is forwarded, dropped for a reason, consumed or queued.
func (r *Rig) Balance(t T) {
	t.Helper()
	v, waiting := r.Plane.Values(), uint64(0)
	for _, b := range r.Backends {
		waiting += uint64(b.Waiting())
	}
	if err := v.Check(); err != nil {
		t.Errorf("%v", err)
	}
	if received := v.Sum(telemetry.ReceivedPackets); received+waiting != r.injected.Load() {
		t.Errorf("%d frames injected, %d not yet received, %d received", r.injected.Load(), waiting, received)
	}
}

// Close closes the workers, after which the Rig isn't used, and fails the test unless the frames balance, nothing is queued and all buffers are returned.
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
		if s := r.Plane.Port(port); s.Depth != ([account.MaxClasses]uint64{}) || s.Frames != ([account.MaxClasses]int64{}) {
			t.Errorf("port %d: %v octets, %v frames are queued after Close", port, s.Depth, s.Frames)
		}
	}
	r.Balance(t)
	for _, b := range r.buffers {
		closed.Put(b)
	}
	r.buffers = nil
	r.tables.release()
	runtime.KeepAlive(r.Plane) // or its cleanup may release the tables at the same time, and then unmap what has their addresses next
}
