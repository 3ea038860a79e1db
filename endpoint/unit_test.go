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
