package endpoint

import (
	"testing"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestNotificationPoint: CE on data packets makes the receiver send standard CNPs to the QP that sent them, at most one each CNPInterval. A
// reaction point accepts their contents.
func TestNotificationPoint(t *testing.T) {
	for _, c := range []struct {
		name     string
		op       Op
		interval int64
		cnpsFrom int // which host marked packets go to
		cnps     uint64
	}{
		{"write", Write, 10_000, 1, 9}, // 1,000 packets take 86.7 us
		{"every packet", Write, 1, 1, 1000},
		{"once", Send, 1_000_000, 1, 1},
		{"READ responses", Read, 10_000, 0, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, Config{CNPInterval: c.interval}, 10_000)
			a, _ := n.connect()
			n.change = func(_ int64, _ int, frame []byte, length int) bool {
				markCE(frame, length)
				return true
			}
			var got uint64
			n.seen = func(_ int64, from int, frame []byte, length int) {
				p := parsed(frame, length)
				if p.Opcode != packet.CNP {
					return
				}
				got++
				var note cnpdec.Notification
				if reason := (&cnpdec.Receiver{}).Decode(frame, p, &note); reason != cnpdec.Accepted {
					t.Errorf("CNP refused: %v", reason)
				}
				if from != c.cnpsFrom || p.DSCP != 48 || p.ECN != packet.NotECT {
					t.Errorf("CNP from %d, DSCP %d, ECN %d", from, p.DSCP, p.ECN)
				}
			}
			n.start(0, Stream{QP: a, Op: c.op, Bytes: 1000 * 1024})
			n.run(never)
			from, to := n.hosts[c.cnpsFrom].Counters(), n.hosts[1-c.cnpsFrom]
			if from.CEReceived != 1000 || from.CNPsSent != c.cnps || got != c.cnps {
				t.Errorf("%d CE packets, %d CNPs counted, %d seen; want 1000, %d", from.CEReceived, from.CNPsSent, got, c.cnps)
			}
			if ignored := to.ReactionPoint().Counters().Decisions[Ignored]; ignored != c.cnps {
				t.Errorf("%d CNPs reach the QP, want %d", ignored, c.cnps)
			}
		})
	}
}

// TestDatagrams: UD datagrams are sent once and name their sender, and a CNP for one goes to its sender.
func TestDatagrams(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		var done []Completion
		c := Config{Payload: PayloadReal, Completed: func(d Completion) { done = append(done, d) }, Reaction: ReactionConfig{Algorithm: DCQCN}}
		if v6 {
			c.Addr = packet.Addr{Hi: 0x20010db8 << 32, Lo: 1}
		}
		n := newNetwork(t, c, 1000)
		at := func(i int, qp uint32) Peer { return Peer{n.hosts[i].c.Addr, n.hosts[i].c.MAC, qp} }
		for i, q := range []QP{
			{Transport: UD, Number: 100, Peer: at(1, 200), SendPSN: 5, QKey: 77},
			{Transport: UD, Number: 200, Peer: at(0, 9), QKey: 77}, // its own datagrams would go elsewhere
		} {
			if err := n.hosts[i].Open(q); err != nil {
				t.Fatal(err)
			}
		}
		datagrams := 0
		n.seen = func(_ int64, from int, frame []byte, length int) {
			p := parsed(frame, length)
			if from != 0 {
				return
			}
			if deth := packet.DecodeDETH(frame[p.Ext():]); deth.SourceQP != 100 || deth.QKey != 77 || p.PSN != 5+uint32(datagrams) {
				t.Errorf("PSN %d, DETH %+v", p.PSN, deth)
			}
			datagrams++
			packet.MarkCE(frame, p.Outer, p.ECN)
		}
		n.start(0, Stream{QP: 100, Op: SendImm, Bytes: 1000, Messages: 10})
		n.run(never)
		rate := n.hosts[0].ReactionPoint().Flow(100).Rate(0)
		if datagrams != 10 || len(done) != 10 || rate != 50*gigabit {
			t.Errorf("%d datagrams, %d complete, rate %v", datagrams, len(done), rate)
		}
		if err := n.hosts[0].Start(Stream{QP: 100, Op: Send, Bytes: 1025}); err == nil {
			t.Error("a datagram longer than the MTU is taken")
		}
		for _, h := range n.hosts {
			checkAccount(t, h.Counters())
		}
	}
}
