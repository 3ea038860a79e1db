package endpoint

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// frames takes all that a host may send at a time.
func (n *network) frames(host int) (all [][]byte) {
	for {
		size, length := n.hosts[host].Next(n.now, n.buf[:])
		if length == 0 {
			due, ok := n.hosts[host].Due()
			if !ok || due > n.now+1000 {
				return all
			}
			n.now = due
			continue
		}
		all = append(all, append(slices.Clone(n.buf[:size]), make([]byte, length-size)...))
	}
}

func (n *network) opcodes(host int) (all []packet.Opcode) {
	for _, f := range n.frames(host) {
		all = append(all, parsed(f, len(f)).Opcode)
	}
	return all
}

// TestResponsesInOrder: responses leave in the order of the requests, and a response acknowledges all before it.
func TestResponsesInOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Op
		want []packet.Opcode
	}{
		{"writes", []Op{Write, Write}, []packet.Opcode{packet.RCAcknowledge}},
		{"write, read", []Op{Write, Read}, []packet.Opcode{packet.RCReadRespFirst, packet.RCReadRespLast}},
		{"read, write", []Op{Read, Write}, []packet.Opcode{packet.RCReadRespFirst, packet.RCReadRespLast, packet.RCAcknowledge}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, Config{}, 1)
			a, _ := n.connect()
			for _, op := range c.ops {
				bytes := uint32(1)
				if op == Read {
					bytes = 2000
				}
				n.start(0, Stream{QP: a, Op: op, Bytes: bytes})
			}
			for _, f := range n.frames(0) {
				n.hosts[1].Receive(n.now, f, len(f))
			}
			if got := n.opcodes(1); !slices.Equal(got, c.want) {
				t.Errorf("responses %v, want %v", got, c.want)
			}
		})
	}
}

// TestReadsAreBounded: a responder keeps no more READs than it has places for, and a requester has no more than that outstanding.
func TestReadsAreBounded(t *testing.T) {
	n := newNetwork(t, Config{}, 1)
	a, _ := n.connect()
	n.start(0, Stream{QP: a, Op: Read, Bytes: 1, Messages: 100})
	requests := n.frames(0)
	if len(requests) != transport.MaxReads {
		t.Errorf("%d READs outstanding, want %d", len(requests), transport.MaxReads)
	}
	h := n.hosts[1]
	for range 4 { // as many again for repetitions
		for _, f := range requests {
			h.Receive(n.now, f, len(f))
		}
	}
	const kept = 2 * transport.MaxReads
	if jobs := len(n.frames(1)); jobs != kept || h.Counters().ReadsDropped != 4*transport.MaxReads-kept {
		t.Errorf("%d READs kept, %d dropped", jobs, h.Counters().ReadsDropped)
	}
}

// TestCNPInterval: a CE packet makes a CNP if the last one is CNPInterval ago.
func TestCNPInterval(t *testing.T) {
	n := newNetwork(t, Config{CNPInterval: 50_000}, 1)
	a, _ := n.connect()
	n.start(0, Stream{QP: a, Bytes: 4})
	f := n.frames(0)[0]
	markCE(f, len(f))
	for _, c := range []struct {
		at   int64
		cnps uint64
	}{{100, 1}, {101, 1}, {50_099, 1}, {50_100, 2}, {100_099, 2}, {1_000_000, 3}} {
		n.now = c.at
		n.hosts[1].Receive(n.now, f, len(f))
		n.frames(1)
		if got := n.hosts[1].Counters().CNPsSent; got != c.cnps {
			t.Errorf("at %d: %d CNPs, want %d", c.at, got, c.cnps)
		}
	}
}

// TestForgedAcknowledgement: an acknowledgement or NAK of PSNs that were never sent, or are long acknowledged, changes nothing.
func TestForgedAcknowledgement(t *testing.T) {
	n := newNetwork(t, Config{AckEvery: 1}, 1)
	a, _ := n.connect(1000)
	n.start(0, Stream{QP: a, Bytes: 10 * 1024})
	for _, f := range n.frames(0) {
		n.hosts[1].Receive(n.now, f, len(f))
	}
	f := n.frames(1)[0]
	q := n.hosts[0].byNumber[a]
	for _, psn := range []uint32{1010, 1011, 5000, 998, 1<<24 - 1} {
		for _, syndrome := range []byte{transport.SyndromeACK, transport.SyndromeNAK} {
			p := parsed(f, len(f))
			f[p.BTH+9], f[p.BTH+10], f[p.BTH+11], f[p.Ext()] = byte(psn>>16), byte(psn>>8), byte(psn), syndrome
			n.hosts[0].Receive(n.now, f, len(f))
			if una, n := q.requester.InFlight(); una != 1000 || n != 10 || !q.requester.Idle() {
				t.Fatalf("PSN %d, syndrome %#x: una %d, %d in flight, idle %v", psn, syndrome, una, n, q.requester.Idle())
			}
		}
	}
}

// TestNotReady: after an RNR NAK, a QP retransmits from its PSN on when the NAK's time is over, and not before. Meanwhile it answers READs.
func TestNotReady(t *testing.T) {
	n := newNetwork(t, Config{Timeout: second}, 1)
	a, b := n.connect()
	n.start(0, Stream{QP: a, Op: Send, Bytes: 3 * 1024})
	for _, f := range n.frames(0) {
		n.hosts[1].Receive(n.now, f, len(f))
	}
	f := n.frames(1)[0]
	p := parsed(f, len(f))
	f[p.BTH+11], f[p.Ext()] = 1, transport.SyndromeRNR // PSN 1, 10 us
	n.hosts[0].Receive(n.now, f, len(f))
	ends := n.now + 10_000
	if due, ok := n.hosts[0].Due(); !ok || due != ends {
		t.Errorf("due at %d, %v; want %d", due, ok, ends)
	}
	n.start(1, Stream{QP: b, Op: Read, Bytes: 1})
	for _, f := range n.frames(1) {
		n.hosts[0].Receive(n.now, f, len(f))
	}
	if got := n.opcodes(0); !slices.Equal(got, []packet.Opcode{packet.RCReadRespOnly}) {
		t.Errorf("sends %v before the time is over", got)
	}
	n.now = ends
	if got := n.opcodes(0); !slices.Equal(got, []packet.Opcode{packet.RCSendMiddle, packet.RCSendLast}) {
		t.Errorf("sends %v when the time is over", got)
	}
}

// TestPostsBeforeTimeOut: a message that is posted while others are unacknowledged doesn't wait for their time-out.
func TestPostsBeforeTimeOut(t *testing.T) {
	n := newNetwork(t, Config{Timeout: second}, 10_000_000)
	a, _ := n.connect()
	n.start(0, Stream{QP: a, Bytes: 1})
	n.run(1000)
	n.start(0, Stream{QP: a, Bytes: 1, At: 5000})
	n.run(5000)
	if sent := n.hosts[0].Counters().DataSent; sent != 2 {
		t.Errorf("%d packets sent, want 2", sent)
	}
}

// TestClose: a closed QP leaves nothing behind, whatever its state was.
func TestClose(t *testing.T) {
	c := Config{Reaction: ReactionConfig{Algorithm: DCQCN, DCQCN: DCQCNConfig{StartRate: gigabit}}}
	n := newNetwork(t, c, 1000)
	a, b := n.connect()
	n.start(0, Stream{QP: a, Bytes: 1 << 20})
	n.run(50_000)
	h := n.hosts[0]
	if len(h.timers.entries) != 1 || len(h.pacing.entries) != 1 {
		t.Fatalf("%d timers, %d paced QPs, want 1, 1", len(h.timers.entries), len(h.pacing.entries))
	}
	h.Close(a)
	n.hosts[1].Close(b)
	if len(h.timers.entries)+len(h.pacing.entries)+len(h.byNumber) != 0 || h.ReactionPoint().Flow(a) != nil {
		t.Errorf("%d timers, %d paced QPs, %d QPs", len(h.timers.entries), len(h.pacing.entries), len(h.byNumber))
	}
	n.run(never)
	if h.Counters().MessagesDone+h.Counters().MessagesFailed != 0 {
		t.Error("a message of a closed QP ends")
	}
}

// TestLongSelectiveRepeat: with SelectiveRepeat, a lost packet costs one retransmission, however many packets follow it.
func TestLongSelectiveRepeat(t *testing.T) {
	n := newNetwork(t, Config{SelectiveRepeat: true, MTU: 64, Timeout: second}, 20_000_000)
	a, _ := n.connect()
	lost := false
	n.change = func(int64, int, []byte, int) bool {
		if !lost {
			lost = true
			return false
		}
		return true
	}
	n.start(0, Stream{QP: a, Bytes: 100_000 * 64})
	n.run(never)
	if c := n.hosts[0].Counters(); c.MessagesDone != 1 || c.Retransmitted != 1 || c.TimedOut != 0 {
		t.Errorf("counted %+v", c)
	}
}

// TestTwoGaps: with SelectiveRepeat, the second gap is reported as soon as the first one is closed, and two packets are retransmitted for
// it.
func TestTwoGaps(t *testing.T) {
	n := newNetwork(t, Config{SelectiveRepeat: true, Timeout: second}, 20_000)
	a, _ := n.connect()
	lost := map[uint32]bool{}
	n.change = func(_ int64, from int, frame []byte, length int) bool {
		psn := parsed(frame, length).PSN
		if from == 0 && (psn == 3 || psn == 7) && !lost[psn] {
			lost[psn] = true
			return false
		}
		return true
	}
	n.start(0, Stream{QP: a, Bytes: 10 * 1024})
	n.run(never)
	if c := n.hosts[0].Counters(); c.MessagesDone != 1 || c.Retransmitted != 1+2 || c.WentBack != 2 || c.TimedOut != 0 {
		t.Errorf("counted %+v", c)
	}
}

// TestZeros: padding and reserved fields are zero, whatever the caller's buffer held.
func TestZeros(t *testing.T) {
	n := newNetwork(t, Config{Payload: PayloadReal}, 1)
	a, _ := n.connect()
	n.start(0, Stream{QP: a, Bytes: 5})
	for i := range n.buf {
		n.buf[i] = 0xa5
	}
	f := n.frames(0)[0]
	if p := parsed(f, len(f)); !slices.Equal(f[p.ICRC-3:p.ICRC], []byte{0, 0, 0}) {
		t.Errorf("padding % x", f[p.ICRC-3:p.ICRC])
	}
	markCE(f, len(f))
	n.hosts[1].Receive(n.now, f, len(f))
	for i := range n.buf {
		n.buf[i] = 0xa5
	}
	f = n.frames(1)[0]
	if p := parsed(f, len(f)); p.Opcode != packet.CNP || !slices.Equal(f[p.Ext():p.ICRC], make([]byte, packet.CNPReservedLen)) {
		t.Errorf("%v, reserved % x", p.Opcode, f[p.Ext():p.ICRC])
	}
}

// TestPutHop: a node adds a hop if there is a trace of the right form with a free entry, and otherwise leaves the packet unchanged.
func TestPutHop(t *testing.T) {
	for _, c := range []struct {
		name   string
		hops   int
		before int          // hops that are in it
		change func([]byte) // of the IOAM Trace Option Data
		want   bool
	}{
		{"place for one", 1, 0, nil, true},
		{"full", 1, 1, nil, false},
		{"last place", 9, 8, nil, true},
		{"no trace", 0, 0, nil, false},
		{"another trace type", 2, 0, func(b []byte) { b[4] ^= 1 }, false},
		{"another node length", 2, 0, func(b []byte) { b[2] ^= 8 }, false},
		{"more remaining than there is", 2, 0, func(b []byte) { b[3] = 0x7f }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, Config{Addr: ipv6, Reaction: ReactionConfig{HPCC: HPCCConfig{Hops: c.hops}}}, 1)
			a, _ := n.connect()
			n.start(0, Stream{QP: a, Bytes: 1})
			f := n.frames(0)[0]
			hop := Hop{Node: 5, Time: 7 * second, Queue: 9, Sent: 11, Rate: gigabit}
			for range c.before {
				PutHop(f, parsed(f, len(f)), &Hop{Node: 1, Rate: gigabit})
			}
			found := packet.FindIOAMTrace(f, parsed(f, len(f)))
			if c.change != nil {
				c.change(found.Data)
			}
			before := slices.Clone(f)
			if got := PutHop(f, parsed(f, len(f)), &hop); got != c.want || got == slices.Equal(f, before) {
				t.Fatalf("PutHop is %v, want %v; changed %v", got, c.want, !slices.Equal(f, before))
			}
			if !c.want {
				return
			}
			var hops [maxHops]Hop
			if count, ok := decodeTrace(&found, &hops); !ok || count != c.before+1 || hops[0] != hop {
				t.Errorf("%d hops, the last one %+v; %v", count, hops[0], ok)
			}
		})
	}
}
