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
