package endpoint

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// parsed parses a frame that a test network carries.
func parsed(frame []byte, length int) *packet.Parsed {
	var p packet.Parsed
	packet.Parse(frame, uint32(length), &p)
	return &p
}

// markCE marks a frame as a queue does.
func markCE(frame []byte, length int) {
	p := parsed(frame, length)
	packet.MarkCE(frame, p.Outer, p.ECN)
}

// TestLoss loses one packet of a message of 64, and counts what it takes to mend that.
func TestLoss(t *testing.T) {
	for _, c := range []struct {
		name      string
		op        Op
		selective bool
		from      int    // which host's packet is lost
		psn       uint32 // the first time that it is sent
		naks      uint64
		resent    uint64 // by the requester
		timeouts  uint64
	}{
		{"data, go-back-N", Write, false, 0, 20, 1, 44, 0},
		{"data, selective repeat", Write, true, 0, 20, 1, 1, 0},
		{"first packet, go-back-N", Send, false, 0, 0, 1, 64, 0},
		{"first packet, selective repeat", Send, true, 0, 0, 1, 1, 0},
		{"last packet", Write, false, 0, 63, 0, 32, 1},
		{"last packet, selective repeat", Write, true, 0, 63, 0, 32, 1},
		{"last acknowledgement", Write, false, 1, 63, 0, 32, 1},
		{"other acknowledgement", Write, false, 1, 31, 0, 0, 0},
		{"READ request", Read, false, 0, 0, 0, 1, 1},
		{"READ response", Read, false, 1, 20, 0, 1, 0},
		{"last READ response", Read, false, 1, 63, 0, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			done := 0
			n := newNetwork(t, Config{
				SelectiveRepeat: c.selective, AckEvery: 32, Window: 1 << 20,
				Completed: func(Completion) { done++ },
			}, 20_000)
			a, _ := n.connect()
			lost := 0
			n.change = func(_ int64, from int, frame []byte, length int) bool {
				p := parsed(frame, length)
				if from == c.from && p.PSN == c.psn && lost == 0 {
					lost++
					return false
				}
				return true
			}
			n.start(0, Stream{QP: a, Op: c.op, Bytes: 64 * 1024})
			n.run(never)
			s, r := n.hosts[0].Counters(), n.hosts[1].Counters()
			if done != 1 || s.MessagesDone != 1 || s.MessagesFailed != 0 {
				t.Errorf("%d messages complete, counted %d", done, s.MessagesDone)
			}
			if r.NAKsSent != c.naks || s.Retransmitted != c.resent || s.TimedOut != c.timeouts {
				t.Errorf("%d NAKs, %d packets sent again, %d time-outs; want %d, %d, %d",
					r.NAKsSent, s.Retransmitted, s.TimedOut, c.naks, c.resent, c.timeouts)
			}
		})
	}
}

// TestGoBackN computes by hand when each packet of a message of six is sent. The line takes 1 ns for a byte: 1098 bytes for the first packet,
// which has a RETH, 1082 for the others. Packets arrive 10 us after they started.
func TestGoBackN(t *testing.T) {
	type sending struct {
		psn uint32
		at  int64
	}
	first := []sending{{0, 0}, {1, 1098}, {2, 2180}, {3, 3262}, {4, 4344}, {5, 5426}}
	for _, c := range []struct {
		name  string
		lost  uint32
		again []sending
	}{
		// PSN 3 arrives at 13,262 ns and shows the gap. Its NAK arrives 10 us later: the sender goes back to PSN 2.
		{"data", 2, []sending{{2, 23_262}, {3, 24_344}, {4, 25_426}, {5, 26_508}}},
		// The acknowledgement of PSN 4 arrives at 24,344 ns. Nothing follows: the sender goes back after a time-out.
		{"the last packet", 5, []sending{{5, 124_344}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, Config{LineRate: 8 * gigabit, AckEvery: 1, Timeout: 100_000}, 10_000)
			a, _ := n.connect()
			var got []sending
			dropped := false
			n.change = func(now int64, from int, frame []byte, length int) bool {
				if from != 0 {
					return true
				}
				psn := parsed(frame, length).PSN
				got = append(got, sending{psn, now})
				drop := psn == c.lost && !dropped
				dropped = dropped || drop
				return !drop
			}
			n.start(0, Stream{QP: a, Op: Write, Bytes: 6 * 1024})
			n.run(never)
			if want := slices.Concat(first, c.again); !slices.Equal(got, want) {
				t.Errorf("packets sent (PSN, ns):\n%v, expected\n%v", got, want)
			}
		})
	}
}

// TestGivesUp: a QP whose peer is silent fails after Retries time-outs, and accepts no more streams.
func TestGivesUp(t *testing.T) {
	var got []Completion
	c := Config{Timeout: 100_000, Retries: 3, Completed: func(d Completion) { got = append(got, d) }}
	n := newNetwork(t, c, 1000)
	a, _ := n.connect()
	n.change = func(int64, int, []byte, int) bool { return false }
	n.start(0, Stream{QP: a, Bytes: 100, Messages: 2})
	n.run(never)
	if len(got) != 2 || !got[0].Failed || !got[1].Failed || got[0].Done != 4*100_000 {
		t.Errorf("completions %+v", got)
	}
	if s := n.hosts[0].Counters(); s.MessagesFailed != 2 || s.TimedOut != 4 || s.DataSent != 2+3*2 {
		t.Errorf("counters %+v", s)
	}
	if n.hosts[0].Start(Stream{QP: a}) == nil {
		t.Error("a failed QP takes a stream")
	}
}

// TestSurvivesLoss: whatever is lost, in both directions and with all operations, every message completes in order, the receiver accepts
// each request once, and every frame is accounted for.
func TestSurvivesLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var done [2][]Completion
		loss := rapid.Float64Range(0, 0.2).Draw(t, "loss")
		seed := rapid.Uint64().Draw(t, "seed")
		c := Config{
			MTU:             rapid.IntRange(1, 4096).Draw(t, "mtu"),
			AckEvery:        rapid.IntRange(0, 10).Draw(t, "ackEvery"),
			SelectiveRepeat: rapid.Bool().Draw(t, "selective"),
			Window:          rapid.SampledFrom([]int64{0, 1, 20_000}).Draw(t, "window"),
			Payload:         PayloadMode(rapid.IntRange(0, 1).Draw(t, "payload")),
			Retries:         1_000_000,
			Timeout:         200_000,
		}
		n := newNetwork(t, c, 10_000)
		for i := range n.hosts {
			n.hosts[i].c.Completed = func(d Completion) { done[i] = append(done[i], d) }
		}
		psn := rapid.Uint32Range(0, packet.PSNMask)
		a, b := n.connect(psn.Draw(t, "psn a"), psn.Draw(t, "psn b"))
		n.change = func(int64, int, []byte, int) bool {
			seed = seed*6364136223846793005 + 1442695040888963407
			return float64(seed>>11)/(1<<53) >= loss
		}
		want := [2]int{}
		for end, qp := range []uint32{a, b} {
			for i := range rapid.IntRange(0, 4).Draw(t, "streams") {
				messages := rapid.IntRange(1, 5).Draw(t, "messages")
				n.start(end, Stream{
					QP: qp, Op: rapid.SampledFrom([]Op{Write, Send, Read}).Draw(t, "op"), ID: uint64(i), Messages: messages,
					Bytes:    uint32(rapid.IntRange(0, 20*c.MTU).Draw(t, "bytes")),
					At:       int64(rapid.IntRange(0, 100_000).Draw(t, "at")),
					Interval: int64(rapid.IntRange(0, 50_000).Draw(t, "interval")),
				})
				want[end] += messages
			}
		}
		n.run(never)
		for end, h := range n.hosts {
			checkCompletions(t, done[end], want[end])
			checkAccount(t, h.Counters())
		}
		qa, qb := n.hosts[0].byNumber[a], n.hosts[1].byNumber[b]
		for _, pair := range [][2]*qp{{qa, qb}, {qb, qa}} {
			if next, _ := pair[0].requester.InFlight(); !pair[0].requester.Done() || !pair[1].responder.Expects(next) {
				t.Fatalf("PSN %d is the first that isn't acknowledged; everything is acknowledged: %v, expected: %v", next,
					pair[0].requester.Done(), pair[1].responder.Expects(next))
			}
		}
		if got, messages := qb.responder.Acknowledgement().AETH.MSN, uint32(want[0])&packet.PSNMask; got != messages {
			t.Fatalf("b's MSN is %d, want %d", got, messages)
		}
	})
}

func checkCompletions(t *rapid.T, done []Completion, want int) {
	if len(done) != want {
		t.Fatalf("%d messages complete, want %d", len(done), want)
	}
	for i, d := range done {
		if d.Failed || i > 0 && (d.ID < done[i-1].ID || d.ID == done[i-1].ID && d.Message != done[i-1].Message+1) {
			t.Fatalf("completion %d: %+v after %+v", i, d, done[max(0, i-1)])
		}
	}
}

// checkAccount checks that each frame was counted once.
func checkAccount(t interface{ Fatalf(string, ...any) }, c Counters) {
	sum := c.WrongDestination + c.FlowControl + c.Notifications + c.WrongICRC + c.CMReceived + c.UnknownQP + c.WrongPeer + c.Unsupported +
		c.InSequence + c.Duplicates + c.OutOfSequence + c.Acknowledgements + c.ReadResponses
	if sum != c.FramesReceived {
		t.Fatalf("%d frames received, %d accounted for: %+v", c.FramesReceived, sum, c)
	}
	if sent := c.DataSent + c.ACKsSent + c.NAKsSent + c.CNPsSent + c.CMSent; sent != c.FramesSent {
		t.Fatalf("%d frames sent, %d accounted for: %+v", c.FramesSent, sent, c)
	}
}
