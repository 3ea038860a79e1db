// Package synth makes RoCEv2 traffic with known truth: which QPs are connected, and which QP sent each packet. Hosts on a fabric and on a
// WAN side exchange RC, UC, UD and XRC packets in virtual time. Their requesters and responders are those of internal/transport, as in
// endpoint. A tap between the two sides sees the packets in order. One Config describes the traffic, the network, the communication
// managers, the tap and an attacker; its zero value is 256 plain RC connections of RDMA WRITEs between two hosts. The same Config always
// gives the same events. The package uses none of the gateway under test except its header codecs; source ports come from endpoint and random
// numbers from internal/splitmix. It uses no clock, goroutine or file, and is for tests only.
//
// For a network in trouble, set LossBefore, LossAfter, RequestLoss, ResponseLoss, a Bottleneck after the tap, NAKs and Timeouts. Managers
// changes RDMA-CM; Attack adds an attacker and, for RDMA-CM, Attack.Managers.
//
//	traffic := synth.New(synth.Config{Seed: 1, Ports: synth.PortsEqual, StartPSN: synth.PSNZero, Schedule: synth.Lockstep})
//	for {
//		e, ok := traffic.Next()
//		if !ok {
//			break
//		}
//		learn(e.Time, e.From, &e.Packet) // as packet.Parse would have it
//		check(e.SourceQP)                // the truth; with more of it in traffic.Conns()[e.Conn], unless that is -1
//	}
//
// Head writes an event's headers, for readers of the extended ones; Frame builds the whole frame, for captures. Forged packets change what
// the tap sees. They don't change what the hosts do, except that a listener answers forged REQs (ForgedCM).
package synth

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// Traffic is a run of the generator. It is for one goroutine.
type Traffic struct {
	attacker
	c   Config // with defaults
	now int64  // ns
	rng rng    // the network's; connections have their own

	transport transport.Config
	counted   transport.Counters

	queue   queue
	ended   bool
	flights pool[flight]
	idleAt  int64 // when the bottleneck becomes empty, ns
	mads    []*[packet.MADLen]byte

	hosts    [2][]host
	conns    []Conn
	shown    [][2]packet.Parsed // by connection and sending end: the common fields of all its packets
	live     []*live            // by connection; nil before it starts and after it ended
	spare    []*live
	datagram []int32 // UD connections
	retired  int     // connections that ended and won't be replaced
	wanted   int     // the value of retired at which the run ends
}

// New prepares a run. It panics on an invalid Config, as that is a mistake in a test.
func New(c Config) *Traffic {
	c.complete()
	t := &Traffic{c: c, rng: newRNG(c.Seed)}
	t.Traffic = t
	t.transport = t.c.transport()
	t.makeHosts()
	t.wanted = t.c.Connections
	for i := range t.c.Connections {
		t.open(i)
	}
	if t.c.Attack.Interval > 0 {
		t.queue.push(t.c.Attack.Interval, taskAttack, 0)
	}
	return t
}

// Next advances to the next packet that the tap sees. It returns false at the end, when all connections are done or Config.Duration is
// over.
func (t *Traffic) Next() (e Event, ok bool) {
	for !t.ended {
		due, more := t.queue.pop()
		if !more || t.c.Duration > 0 && due.at > t.c.Duration {
			break
		}
		t.now = due.at
		subject := due.subject()
		switch due.task() {
		case taskTap:
			if t.tap(subject, &e) {
				return e, true
			}
		case taskPlanned:
			e = t.planned.take(subject)
			if e.Time = t.now; t.now >= t.c.TapStart {
				return e, true
			}
		case taskArrive:
			t.arrive(subject)
		default:
			t.run(due.task(), subject)
		}
	}
	t.ended = true
	return Event{}, false
}

// run executes a task that isn't the network's.
func (t *Traffic) run(what task, subject uint32) {
	switch what {
	case taskAttack:
		t.attack()
		return
	case taskStart:
		t.start(int32(subject))
		return
	case taskForesee:
		t.foresee(int(subject))
		return
	case taskSucceed:
		t.succeed(int32(subject), t.now)
		return
	case taskClose:
		if l := t.live[subject]; l != nil {
			l.shut()
		}
		return
	}
	l := t.live[subject>>1]
	if l == nil {
		return
	}
	s := &l.sides[subject&1]
	switch what {
	case taskDepart:
		s.depart()
	case taskRespond:
		s.respond()
	case taskTimeout:
		s.timeout()
	case taskFlush:
		s.flush()
	case taskManage:
		s.manage()
	}
}

// Conns lists all connections so far, by Event.Conn; future ones aren't in it yet. The caller must not change it; it is valid until the
// next call of Next.
func (t *Traffic) Conns() []Conn { return t.conns }

// over reports whether only the attacker is left.
func (t *Traffic) over() bool { return t.retired >= t.wanted }

func (s *side) subject() uint32 { return uint32(s.l.id)<<1 | uint32(s.end) }

// complete sets defaults, and panics on a mistake.
func (c *Config) complete() {
	or(&c.Hosts[Fabric], 1)
	or(&c.Hosts[WAN], 1)
	or(&c.Connections, 256)
	or(&c.QPBase[Fabric], 0x11)
	or(&c.QPBase[WAN], 0x11)
	or(&c.MTU, 1024)
	if c.Sizes == [2]int{} {
		c.Sizes = [2]int{256, 16384}
	}
	or(&c.Messages, 16)
	or(&c.Window, 64)
	or(&c.Period, 50_000)
	or(&c.Gap, 1000)
	or(&c.Coalesce, 1)
	or(&c.Delay[Fabric], 5000)
	or(&c.Delay[WAN], 500_000)
	or(&c.ReorderDelay, 10_000)
	or(&c.CNPInterval, 50_000)
	or(&c.Sampled, 1)
	or(&c.ReuseGap, 20_000)
	late := c.PathJitter + c.ConnJitter + c.ReorderDelay
	long := 4*(c.Delay[Fabric]+c.Delay[WAN]+late) + int64(c.Window)*c.Gap*4 + 100_000
	or(&c.Timeouts.Requester, long)
	or(&c.Timeouts.Manager, long)
	or(&c.Timeouts.Retries, 7)
	or(&c.Timeouts.MADs, 8)
	or(&c.Bottleneck.Capacity, 65_536)
	or(&c.Managers.Share, 1)
	or(&c.Managers.MRADelay, 10*c.Timeouts.Manager)
	or(&c.Managers.StaleDelay, 1_000_000_000)
	if c.Near == [2]uint32{} {
		c.Near[1] = 1 << 16
	}
	if c.Transports == (Transports{}) {
		c.Transports.RC = 1
	}
	if c.Mix == (Mix{}) {
		c.Mix.Write = 1
	}
	c.check()
}

// transport makes the configuration of the QPs' transport.
func (c *Config) transport() transport.Config {
	t := transport.Config{MTU: uint32(c.MTU), AckEvery: c.AckEvery, NoAckIfFull: c.AckFull == NoAckIfFull, Timeout: c.Timeouts.Requester,
		Retries: c.Timeouts.Retries, Coalesce: c.Coalesce}
	if c.NAKs.Every {
		t.NAKInterval, t.GoBackAlways = 1, true
	}
	return t
}

func or[T int | int64 | uint8 | uint32 | float64](v *T, ordinary T) {
	if *v == 0 {
		*v = ordinary
	}
}

func (c *Config) check() {
	switch {
	case c.MTU < 256 || c.MTU > 4096 || c.MTU&(c.MTU-1) != 0:
		panic("synth: MTU must be 256, 512, 1024, 2048 or 4096")
	case c.Sizes[0] < 0 || c.Sizes[1] < c.Sizes[0] || c.Sizes[1] > 1<<24:
		panic("synth: Sizes must be a smallest and a largest size of at most 2^24 bytes")
	case c.Connections >= 1<<(taskBits-1):
		panic("synth: too many connections")
	case c.Tenants > 3000:
		panic("synth: at most 3,000 tenants")
	case c.Timeouts.Requester < 0 || c.Timeouts.Manager < 0 || c.Bottleneck.Rate < 0 || c.Bottleneck.Capacity < 0:
		panic("synth: time-outs, and a bottleneck's rate and capacity, must not be negative")
	case c.Near[0]+c.Near[1] >= 1<<23:
		panic("synth: Near must be less than 2^23 PSNs in all")
	case c.CMReject >= 1:
		panic("synth: with CMReject 1 no connection would ever come up")
	}
}
