package transport

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// ack, nak and rnr are acknowledgements.
var (
	ack = packet.AETH{Syndrome: SyndromeACK}
	nak = packet.AETH{Syndrome: SyndromeNAK}
	rnr = packet.AETH{Syndrome: SyndromeRNR}
)

// requester makes one that has posted messages, PSNs from 100 on, and has sent what it may at time 0.
func requester(c Config, s Service, limit uint64, messages ...Message) (r *Requester, n *Counters, sent []Packet) {
	c.MTU = 64
	r, n = new(Requester), new(Counters)
	r.Start(&c, n, s, 100, nil)
	for _, m := range messages {
		r.Post(m)
	}
	return r, n, sendAll(r, 0, limit)
}

func sendAll(r *Requester, now int64, limit uint64) (sent []Packet) {
	for r.Ready(now, limit) {
		sent = append(sent, r.Send(now, limit))
	}
	return sent
}

func psns(sent []Packet) (all []uint32) {
	for i := range sent {
		all = append(all, sent[i].PSN)
	}
	return all
}

var fourPackets = Message{Bytes: 4 * 64}

// TestGoesBack: what a requester sends again after a response, and how often for the same packet.
func TestGoesBack(t *testing.T) {
	type response struct {
		at  int64
		psn uint32
		packet.AETH
	}
	data := packet.AETH{Syndrome: 0xff} // a READ response
	read := Message{Op: Read, Bytes: 2 * 64}
	for _, c := range []struct {
		name      string
		config    Config
		messages  []Message
		responses []response
		want      [][]uint32 // sent after each response
	}{
		{"a NAK", Config{}, []Message{fourPackets}, []response{{100, 101, nak}}, [][]uint32{{101, 102, 103}}},
		{"once a round trip", Config{}, []Message{fourPackets}, []response{{100, 100, ack}, {110, 101, nak}, {209, 101, nak}, {210, 101, nak}},
			[][]uint32{nil, {101, 102, 103}, nil, {101, 102, 103}}},
		{"always", Config{GoBackAlways: true}, []Message{fourPackets}, []response{{100, 100, ack}, {110, 101, nak}, {120, 101, nak}},
			[][]uint32{nil, {101, 102, 103}, {101, 102, 103}}},
		{"an old NAK", Config{GoBackAlways: true}, []Message{fourPackets}, []response{{100, 101, ack}, {110, 101, nak}}, [][]uint32{nil, nil}},
		{"selective", Config{SelectiveRepeat: true}, []Message{fourPackets}, []response{{100, 101, nak}}, [][]uint32{{101}}},
		{"selective, a READ", Config{SelectiveRepeat: true}, []Message{read, fourPackets}, []response{{100, 103, ack}}, [][]uint32{{100, 102, 103, 104, 105}}},
		{"an ACK without the READ's data", Config{}, []Message{read, fourPackets}, []response{{100, 102, ack}}, [][]uint32{{100, 102, 103, 104, 105}}},
		{"the first response is missing", Config{}, []Message{read}, []response{{100, 101, data}}, [][]uint32{{100}}},
		{"the second response is missing", Config{}, []Message{read, fourPackets}, []response{{100, 100, data}, {110, 102, ack}},
			[][]uint32{nil, {101, 102, 103, 104, 105}}},
		{"a NAK of the first packet", Config{}, []Message{fourPackets}, []response{{100, 100, nak}}, [][]uint32{{100, 101, 102, 103}}},
		{"RNR, then again", Config{}, []Message{fourPackets}, []response{{100, 100, ack}, {110, 101, rnr}, {120, 101, rnr}, {10_121, 101, nak}},
			[][]uint32{nil, nil, nil, {101, 102, 103}}},
		{"RNR twice in a round trip", Config{}, []Message{fourPackets}, []response{{1e6, 100, ack}, {1e6, 101, rnr}, {1e6 + 10_000, 100, ack}, {1e6 + 10_500, 101, rnr},
			{1e6 + 20_500, 100, ack}}, [][]uint32{nil, nil, {101, 102, 103}, nil, {101, 102, 103}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, _ := requester(c.config, RC, 8, c.messages...)
			for i, p := range c.responses {
				if p.AETH == data {
					r.Answer(p.at, p.psn)
				} else {
					r.Acknowledge(p.at, p.psn, p.AETH)
				}
				if got := psns(sendAll(r, p.at, 8)); !slices.Equal(got, c.want[i]) {
					t.Fatalf("after response %d: sends %v, want %v", i, got, c.want[i])
				}
			}
		})
	}
}

// TestNeverSent: a response to a PSN that was never sent, or is acknowledged already, changes nothing; nor does a READ response to a WRITE.
func TestNeverSent(t *testing.T) {
	r, n, _ := requester(Config{}, RC, 8, Message{Op: Read, Bytes: 1}, fourPackets)
	r.Answer(50, 100)
	r.Answer(60, 101)
	for _, psn := range []uint32{100, 105, 106, 5000, packet.PSNMask} {
		r.Answer(100, psn)
		for _, h := range []packet.AETH{ack, nak, rnr} {
			r.Acknowledge(100, psn, h)
		}
		if una, inFlight := r.InFlight(); una != 101 || inFlight != 4 || !r.Idle() || r.HeldUntil() != 0 || n.WentBack != 0 {
			t.Fatalf("PSN %d: %d PSNs from %d on are in flight, %+v", psn, inFlight, una, n)
		}
	}
}

// TestCatchesUp: an acknowledgement of what was about to be sent again moves the requester on to what follows.
func TestCatchesUp(t *testing.T) {
	r, _, _ := requester(Config{}, RC, 8, Message{Bytes: 64}, fourPackets, fourPackets)
	r.Acknowledge(100, 100, nak)
	r.Acknowledge(110, 102, ack)
	if got := psns(sendAll(r, 110, 3)); !slices.Equal(got, []uint32{103, 104, 105}) {
		t.Errorf("sends %v", got)
	}
}

// TestReadsOutstanding: READs and atomics are bounded, and make place for others as they are answered.
func TestReadsOutstanding(t *testing.T) {
	messages := make([]Message, MaxReads+4)
	for i := range messages {
		messages[i] = Message{Op: []Op{Read, Atomic}[i%2], Bytes: 1}
	}
	r, _, sent := requester(Config{}, RC, 100, messages...)
	if len(sent) != MaxReads {
		t.Errorf("%d READs and atomics are outstanding, want %d", len(sent), MaxReads)
	}
	r.Answer(100, 100)
	r.Answer(100, 101)
	if got := psns(sendAll(r, 100, 100)); !slices.Equal(got, []uint32{100 + MaxReads, 101 + MaxReads}) {
		t.Errorf("sends %v after two were answered", got)
	}
}

// TestAckReq: which packets ask for an acknowledgement.
func TestAckReq(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  Config
		service Service
		limit   uint64
		want    []bool
	}{
		{"the last one", Config{}, RC, 8, []bool{false, false, false, true}},
		{"every second one", Config{AckEvery: 2}, RC, 8, []bool{false, true, false, true}},
		{"the one that fills the window", Config{}, RC, 3, []bool{false, false, true}},
		{"not that one", Config{NoAckIfFull: true}, RC, 3, []bool{false, false, false}},
		{"none", Config{AckEvery: 2}, UC, 3, []bool{false, false, false, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, sent := requester(c.config, c.service, c.limit, fourPackets)
			var got []bool
			for i := range sent {
				got = append(got, sent[i].AckReq)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	r, _, _ := requester(Config{SelectiveRepeat: true}, RC, 8, fourPackets)
	r.Acknowledge(100, 101, nak)
	if p := r.Send(100, 8); p.PSN != 101 || !p.AckReq || !p.Resent {
		t.Errorf("sent again with SelectiveRepeat: %+v", p)
	}
}

// TestTimesOut: a time-out begins with the first packet in flight, with progress, and where an RNR NAK allows to send again; not with what is
// sent again because of a NAK, but with what asks for an acknowledgement after a time-out.
func TestTimesOut(t *testing.T) {
	const timeout = 100_000
	for _, c := range []struct {
		name     string
		response packet.AETH
		psn      uint32
		want     int64 // when it times out
	}{
		{"nothing comes", packet.AETH{Syndrome: 0x40}, 0, timeout}, // a reserved syndrome
		{"an ACK", ack, 100, 500 + timeout},
		{"a NAK of the first packet", nak, 100, timeout},
		{"not ready", rnr, 100, 500 + 10_000 + timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, n, _ := requester(Config{Timeout: timeout, Retries: 1}, RC, 8, fourPackets)
			r.Acknowledge(500, c.psn, c.response)
			sendAll(r, 600, 8)
			if next, failed := r.Expire(c.want - 1); next != c.want || failed || n.TimedOut != 0 {
				t.Fatalf("next %d, failed %v, timed out %d", next, failed, n.TimedOut)
			}
			if next, failed := r.Expire(c.want); next != c.want+timeout || failed || n.TimedOut != 1 || r.Idle() {
				t.Fatalf("at %d: next %d, failed %v, timed out %d", c.want, next, failed, n.TimedOut)
			}
			if _, failed := r.Expire(c.want + timeout); failed || n.TimedOut != 1 {
				t.Errorf("failed %v, timed out %d before it has sent again what asks for an acknowledgement", failed, n.TimedOut)
			}
			sendAll(r, c.want+timeout, 8)
			if _, failed := r.Expire(c.want + 2*timeout - 1); failed {
				t.Error("it fails too early")
			}
			if _, failed := r.Expire(c.want + 2*timeout); !failed {
				t.Error("survives more than Retries")
			}
		})
	}
	r, _, _ := requester(Config{Timeout: timeout, Retries: 1}, RC, 8, fourPackets, fourPackets)
	for i := range int64(5) { // each time with progress
		if _, failed := r.Expire((2*i + 1) * timeout); failed {
			t.Fatal("fails in spite of progress")
		}
		r.Acknowledge((2*i+1)*timeout, 100+uint32(i), ack)
	}
	u, _, _ := requester(Config{Timeout: timeout}, UC, 8, fourPackets)
	if next, failed := u.Expire(timeout); next != 0 || failed || !u.Done() {
		t.Errorf("UC: next %d, failed %v, done %v", next, failed, u.Done())
	}
}

// TestRefusedForGood: an error that retransmission doesn't solve is reported, unless it is about a PSN that was never sent.
func TestRefusedForGood(t *testing.T) {
	r, _, _ := requester(Config{}, RC, 8, Message{Bytes: 1})
	const invalidRequest = 0x61
	for psn, want := range map[uint32]bool{100: true, 101: false} {
		if got := r.Acknowledge(1, psn, packet.AETH{Syndrome: invalidRequest}); got != want {
			t.Errorf("PSN %d: refused %v, want %v", psn, got, want)
		}
	}
}

// TestRNRDelay compares with values of IBTA 9.7.5.2.8.
func TestRNRDelay(t *testing.T) {
	for timer, want := range map[uint8]int64{0: 655_360_000, 1: 10_000, 2: 20_000, 3: 30_000, 4: 40_000, 5: 60_000, 6: 80_000, 7: 120_000, 8: 160_000,
		14: 1_280_000, 15: 1_920_000, 30: 327_680_000, 31: 491_520_000} {
		if got := rnrDelay(packet.AETH{Syndrome: 0x20 | timer}); got != want {
			t.Errorf("timer %d: %d ns, want %d", timer, got, want)
		}
	}
}

// TestSelectiveRepeatOfMany: with SelectiveRepeat, losses next to each other take a few round trips, not one each, and little is sent for nothing.
func TestSelectiveRepeatOfMany(t *testing.T) {
	const packets = 2000
	p := newPair(Config{MTU: 64, Timeout: 1e9, Retries: 1, AckEvery: 1, SelectiveRepeat: true}, 5)
	p.limit = 2 * packets
	sent := 0
	p.lose = func() bool { // every second packet the first time
		sent++
		return sent < packets && sent%2 == 0
	}
	p.requester.Post(Message{Op: Write, Bytes: packets * 64})
	p.run(t)
	if len(p.done) != 1 || p.n.TimedOut != 0 || p.n.WentBack > 30 || p.n.Retransmitted > packets+packets/2 {
		t.Errorf("%d messages done, %+v; %d packets were lost", len(p.done), p.n, packets/2)
	}
}
