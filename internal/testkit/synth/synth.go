// Package synth makes RoCEv2 traffic whose truth is known: who is connected with whom, and which QP sent each packet. Hosts on a
// fabric and on a WAN side talk RC, UC, UD and XRC in virtual time, with windows, acknowledgements, retransmission and go-back-N
// as InfiniBand has them; a tap between the two sides sees packets in the order they pass. One Config says what the traffic, the
// network, the communication managers, the tap and an attacker do; its zero value is 256 plain RC connections of RDMA WRITEs between
// two hosts. The same Config gives the same events, always. The package knows nothing of the gateway under test beyond its header codecs,
// holds no clock, goroutine or file, and is for tests only.
//
// A network in trouble has LossBefore, LossAfter, RequestLoss, ResponseLoss, a Bottleneck behind the tap, NAKs and Timeouts. RDMA-CM has
// Managers; an attacker has Attack and, for RDMA-CM, Attack.Managers.
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
// Head writes an event's headers, for readers of the extended ones; Frame builds the whole frame, for captures. Forged packets
// change what the tap sees, not what the hosts do, but for a listener's answers to forged REQs (ForgedCM).
package synth

import "github.com/cnpgate/cnpgate/internal/packet"

// Traffic is a run of the generator. It is for one goroutine.
type Traffic struct {
	c   settings
	now int64 // ns
	rng rng   // the network's; connections have their own

	queue   queue
	ended   bool
	flights []flight
	free    []uint32 // places in flights
	idleAt  int64    // when the bottleneck has sent all that waits in it, ns
	mads    []*[MADLen]byte
	pending []Event  // what the attacker has put after another packet, or holds back
	planned []Event  // what passes the tap later, of the attacker and of hosts that answer it
	unused  []uint32 // places in planned

	hosts    [2][]host
	conns    []Conn
	shown    [][2]packet.Parsed // by connection and sending end: what all its packets have in common
	live     []*live            // by connection; nil before it starts and after it ended
	spare    []*live
	datagram []int32 // UD connections
	retired  int     // connections that ended and won't be succeeded
	wanted   int     // connections that must come to that
}

// New prepares a run. It panics on a Config that makes no sense: a test is wrong then.
func New(c Config) *Traffic {
	t := &Traffic{c: c.settings(), rng: rng(mix(c.Seed))}
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

// Next goes on to the next packet that the tap sees; false at the end, when all connections are done or Config.Duration is over.
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
		case taskShow: // pending and its timers are in the same order
			e = t.pending[0]
			t.pending = t.pending[1:]
			if e.Time = t.now; t.now >= t.c.TapStart {
				return e, true
			}
		case taskPlanned:
			e = t.takePlanned(subject)
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

// run does what isn't the network's.
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
			t.shut(l)
		}
		return
	}
	l, end := t.live[subject>>1], End(subject&1)
	if l == nil {
		return
	}
	switch what {
	case taskDepart:
		t.depart(l, end)
	case taskRespond:
		t.respond(l, end)
	case taskTimeout:
		t.timeout(l, end)
	case taskFlush:
		t.flush(l, end)
	case taskManage:
		t.manage(l, end)
	}
}

// Conns lists all connections so far, by Event.Conn; those to come aren't in it yet. The caller must not change it; it is good until
// the next call of Next.
func (t *Traffic) Conns() []Conn { return t.conns }

// over tells whether nothing but the attacker is left.
func (t *Traffic) over() bool { return t.retired >= t.wanted }

func (t *Traffic) whose(l *live, end End) uint32 { return uint32(l.id)<<1 | uint32(end) }
