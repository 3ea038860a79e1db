package transport

import (
	"fmt"
	"github.com/cnpgate/cnpgate/internal/packet"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// pair is a requester, a responder, and a network between them that loses packets as a test says.
type pair struct {
	c         Config
	n         Counters
	requester Requester
	responder Responder
	done      []uint64 // IDs of completed messages
	failed    int
	early     int             // READs and atomics that completed without their data
	answered  map[uint32]bool // PSNs whose data the requester has got
	lose      func() bool
	ready     func(p *Packet) bool // whether a SEND finds a receive buffer
	limit     uint64
	log       []string // what passed
}

func newPair(c Config, psn uint32) *pair {
	p := &pair{c: c, lose: func() bool { return false }, ready: func(*Packet) bool { return true }, limit: 8, answered: map[uint32]bool{}}
	p.requester.Start(&p.c, &p.n, RC, psn, func(_ int64, m Message, failed bool) {
		p.done = append(p.done, m.ID)
		if failed {
			p.failed++
		}
		for i := range uint64(m.n) {
			if m.Op.answered() && !failed && !p.answered[uint32(m.first+i)&packet.PSNMask] {
				p.early++
			}
		}
	})
	p.responder.Start(&p.c, &p.n, RC, psn)
	return p
}

// run takes turns: all requests that may be sent, then all responses, until everything is acknowledged or has failed.
func (p *pair) run(t interface{ Fatalf(string, ...any) }) {
	for now := int64(0); !p.requester.Done() && p.failed == 0; now += 1000 {
		if now > 1e9 {
			t.Fatalf("no end: %+v", p.n)
		}
		for p.requester.Ready(now, p.limit) {
			p.check(t)
			packet := p.requester.Send(now, p.limit)
			if p.lose() {
				continue
			}
			p.arrive(now, &packet)
		}
		p.responder.Flush()
		for p.responder.Answers() {
			if a := p.responder.Answer(); !p.lose() {
				p.log = append(p.log, fmt.Sprintf("%v %d", a.Opcode, a.PSN))
				p.answered[a.PSN] = true
				p.requester.Answer(now, a.PSN)
			}
		}
		if p.responder.Acknowledges() {
			if a := p.responder.Acknowledgement(); !p.lose() {
				p.log = append(p.log, fmt.Sprintf("%#x %d", a.AETH.Syndrome, a.PSN))
				p.requester.Acknowledge(now, a.PSN, a.AETH)
			}
		}
		if _, failed := p.requester.Expire(now); failed {
			p.requester.Fail(now)
		}
	}
}

func (p *pair) arrive(now int64, q *Packet) {
	r, ok := RequestOf(RC, q.Opcode)
	if !ok {
		panic(q.Opcode)
	}
	r.PSN, r.Bytes, r.AckReq = q.PSN, q.Left, q.AckReq
	if p.responder.Expects(q.PSN) && !p.ready(q) {
		p.responder.NotReady(now)
		return
	}
	p.responder.Request(now, &r)
}

func (p *pair) check(t interface{ Fatalf(string, ...any) }) {
	r := &p.requester
	if r.una > r.nxt || r.nxt > r.high || r.high > r.end || r.reads < 0 || r.reads > MaxReads || p.responder.jobs.Len() > maxJobs {
		t.Fatalf("una %d, nxt %d, high %d, end %d, %d READs, %d jobs", r.una, r.nxt, r.high, r.end, r.reads, p.responder.jobs.Len())
	}
}

// TestReliable: whatever gets lost, each message completes once and in order, and the responder counts each once.
func TestReliable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{MTU: 64, Timeout: 20_000, Retries: 1 << 30, AckEvery: rapid.IntRange(0, 3).Draw(t, "every"),
			NoAckIfFull: rapid.Bool().Draw(t, "no ACK if full"), SelectiveRepeat: rapid.Bool().Draw(t, "selective"),
			GoBackAlways: rapid.Bool().Draw(t, "always"), NAKInterval: rapid.SampledFrom([]int64{0, 1, 3000}).Draw(t, "NAK interval"),
			Coalesce: rapid.IntRange(0, 3).Draw(t, "coalesce")}
		p := newPair(c, rapid.SampledFrom([]uint32{0, 5, packet.PSNMask - 3}).Draw(t, "psn"))
		loss := rapid.SampledFrom([]int{0, 1, 20, 50}).Draw(t, "loss")
		p.lose = func() bool { return rapid.IntRange(1, 100).Draw(t, "lost") <= loss }
		p.ready = func(q *Packet) bool {
			return q.Op != Send || rapid.IntRange(0, 9).Draw(t, "ready") > 0
		}
		p.limit = rapid.SampledFrom([]uint64{1, 8, 1000}).Draw(t, "limit")
		want := rapid.IntRange(1, 40).Draw(t, "messages")
		for i := range want {
			p.requester.Post(Message{ID: uint64(i), Op: Op(rapid.IntRange(0, int(Atomic)).Draw(t, "op")), Bytes: uint32(rapid.IntRange(0, 500).Draw(t, "bytes"))})
		}
		p.run(t)
		if len(p.done) != want || !slices.IsSorted(p.done) || p.failed+p.early > 0 || p.responder.msn != uint32(want) {
			t.Fatalf("%d of %d messages complete, in the order %v, %d failed, %d without all their data, MSN %d",
				len(p.done), want, p.done, p.failed, p.early, p.responder.msn)
		}
	})
}

// TestResponses: what a requester gets for its requests.
func TestResponses(t *testing.T) {
	drop := func(which ...int) func() bool { // of all packets, requests and responses, in their order
		n := -1
		return func() bool { n++; return slices.Contains(which, n) }
	}
	refuse := func(times int) func(*Packet) bool {
		return func(*Packet) bool { times--; return times < 0 }
	}
	for _, c := range []struct {
		name   string
		config Config
		ops    []Op
		lose   func() bool
		ready  func(*Packet) bool
		want   []string
	}{
		{"one ACK for all that waits", Config{}, []Op{Write, Write, Write}, nil, nil, []string{"0x1f 7"}},
		{"an answer acknowledges what was before", Config{}, []Op{Write, Atomic}, nil, nil, []string{"RC ATOMIC Acknowledge 6"}},
		{"an ACK comes after the answers before it", Config{}, []Op{Atomic, Write}, nil, nil, []string{"RC ATOMIC Acknowledge 5", "0x1f 6"}},
		{"one NAK a gap", Config{}, []Op{Write, Write, Write}, drop(0), nil, []string{"0x60 5", "0x1f 7"}},
		{"the answer is lost, not the request", Config{}, []Op{Atomic}, drop(1), nil, []string{"RC ATOMIC Acknowledge 5"}},
		{"no buffer at first", Config{}, []Op{Send}, nil, refuse(2), []string{"0x21 5", "0x21 5", "0x1f 5"}},
		{"no buffer, and more behind it", Config{}, []Op{Send, Write}, nil, refuse(1), []string{"0x21 5", "0x1f 6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.MTU, c.config.Timeout, c.config.Retries = 64, 100_000, 3
			p := newPair(c.config, 5)
			if c.lose != nil {
				p.lose = c.lose
			}
			if c.ready != nil {
				p.ready = c.ready
			}
			for _, op := range c.ops {
				p.requester.Post(Message{Op: op, Bytes: 1})
			}
			p.run(t)
			if !slices.Equal(p.log, c.want) {
				t.Errorf("responses %v, want %v", p.log, c.want)
			}
		})
	}
}

// TestGivesUp: a requester survives Retries time-outs without progress, and no more.
func TestGivesUp(t *testing.T) {
	p := newPair(Config{MTU: 64, Timeout: 10_000, Retries: 3}, 0)
	p.lose = func() bool { return true }
	p.requester.Post(Message{Bytes: 1})
	p.requester.Post(Message{Bytes: 1})
	p.run(t)
	if p.failed != 2 || p.n.TimedOut != 4 || p.n.Retransmitted != 2*3 {
		t.Errorf("%d messages failed, %+v", p.failed, p.n)
	}
}
