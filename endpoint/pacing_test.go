package endpoint

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	dataFrame = l3 + packet.IPv4Len + packet.UDPLen + packet.BTHLen + 1024 + packet.ICRCLen // of a WRITE Middle
	reth      = packet.RETHLen
)

// TestRates: the time for a WRITE of 1,000 packets follows from rate, window and round-trip time.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   int64 // from the first packet to the start of the last, ns
	}{
		{"line rate", Config{LineRate: 100 * gigabit}, 8 * (999*dataFrame + reth) * second / (100 * gigabit)},
		{"line rate that doesn't divide", Config{LineRate: 3 * gigabit}, 8 * (999*dataFrame + reth) * second / (3 * gigabit)},
		{"overhead", Config{LineRate: 10 * gigabit, Overhead: EthernetOverhead}, 8 * (999*(dataFrame+EthernetOverhead) + reth) * second / (10 * gigabit)},
		{"start rate", Config{LineRate: 100 * gigabit, Reaction: ReactionConfig{Algorithm: DCQCN,
			DCQCN: DCQCNConfig{StartRate: gigabit, RateTimer: second, ByteCounter: -1}}}, 8 * (999*dataFrame + reth)},
		{"start rate with overhead", Config{LineRate: 100 * gigabit, Overhead: EthernetOverhead, Reaction: ReactionConfig{Algorithm: DCQCN,
			DCQCN: DCQCNConfig{StartRate: gigabit, RateTimer: second, ByteCounter: -1}}}, 8 * (999*(dataFrame+EthernetOverhead) + reth)},
		{"window", Config{LineRate: 100 * gigabit, Window: 10 * 1024, AckEvery: 10}, 99*20_000 + 900*8*dataFrame/100},
		{"window that nothing else acknowledges", Config{LineRate: 100 * gigabit, Window: 10 * 1024}, 99*20_000 + 900*8*dataFrame/100},
		{"window of a slow QP", Config{LineRate: 100 * gigabit, Window: 100 * 1024, VariableWindow: true, AckEvery: 1,
			Reaction: ReactionConfig{Algorithm: DCQCN, DCQCN: DCQCNConfig{StartRate: gigabit, RateTimer: second, ByteCounter: -1}}},
			999 * 20_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, c.config, 10_000)
			a, _ := n.connect()
			first, last := int64(-1), int64(0)
			n.seen = func(now int64, from int, _ []byte, _ int) {
				if from == 0 {
					if first < 0 {
						first = now
					}
					last = now
				}
			}
			n.start(0, Stream{QP: a, Bytes: 1000 * 1024})
			n.run(never)
			if got := last - first; got < c.want-c.want/500-2 || got > c.want+c.want/100+2 {
				t.Errorf("takes %d ns, want %d", got, c.want)
			}
		})
	}
}

// TestCutKeepsSchedule: a CNP's cut applies from the next packet on. The packet that the old rate has scheduled is sent when it was to be sent.
func TestCutKeepsSchedule(t *testing.T) {
	c := Config{LineRate: 100 * gigabit, Reaction: ReactionConfig{Algorithm: DCQCN, DCQCN: DCQCNConfig{StartRate: gigabit, RateTimer: second, ByteCounter: -1}}}
	n := newNetwork(t, c, 5_000)
	a, _ := n.connect()
	var sent []int64
	n.change = func(now int64, from int, frame []byte, length int) bool {
		if from == 0 {
			if sent = append(sent, now); len(sent) == 1 {
				markCE(frame, length) // its CNP arrives at 10 us, between the second and the third packet
			}
		}
		return true
	}
	n.start(0, Stream{QP: a, Bytes: 4 * 1024})
	n.run(never)
	const first, whole = 8 * (dataFrame + reth), 8 * dataFrame
	if want := []int64{0, first, first + whole, first + 3*whole}; !slices.Equal(sent, want) {
		t.Errorf("packets sent at %v ns, want %v", sent, want)
	}
}

// TestLongPath: over 1 ms of delay at 100 Gb/s, with a window of the bandwidth-delay product, a message takes its size and a round trip.
func TestLongPath(t *testing.T) {
	const bytes = 30_000_000
	c := Config{MTU: 1000, LineRate: 100 * gigabit, AckEvery: 1, Window: 25_000_000, VariableWindow: true, Reaction: ReactionConfig{Algorithm: DCQCN}}
	done := int64(0)
	c.Completed = func(d Completion) { done = d.Done }
	n := newNetwork(t, c, 1_000_000)
	a, _ := n.connect()
	n.start(0, Stream{QP: a, Bytes: bytes})
	n.run(never)
	const frame = dataFrame - 1024 + 1000
	want := int64(bytes/1000*frame*8/100 + 2_000_000)
	if done < want-10_000 || done > want+10_000 {
		t.Errorf("takes %d ns, want %d", done, want)
	}
}

// TestTakesTurns: QPs that always have data have equal shares of the line, also when they are many.
func TestTakesTurns(t *testing.T) {
	n := newNetwork(t, Config{LineRate: 100 * gigabit}, 1000)
	sent := map[uint32]int{}
	n.seen = func(_ int64, from int, frame []byte, length int) {
		if from == 0 {
			sent[parsed(frame, length).DestQP]++
		}
	}
	const qps = 50
	for range qps {
		a, _ := n.connect()
		n.start(0, Stream{QP: a, Bytes: 1 << 30})
	}
	n.run(1_000_000)
	for qp, packets := range sent {
		if want := 11552 / qps; packets < want-2 || packets > want+2 {
			t.Errorf("QP 0x%x has sent %d packets, want %d", qp, packets, want)
		}
	}
	if len(sent) != qps {
		t.Errorf("%d QPs have sent, want %d", len(sent), qps)
	}
}

// TestFlowControl: PFC stops the classes that it names, for the time that it names; PAUSE stops all.
func TestFlowControl(t *testing.T) {
	pfc := func(enabled uint8, quanta uint16) []byte {
		b := make([]byte, 60)
		copy(b, packet.MACControlAddr[:])
		b[12], b[13] = 0x88, 0x08
		f := packet.PFC{Enabled: enabled}
		for i := range f.Time {
			f.Time[i] = quanta
		}
		f.Put(b[packet.EthernetLen:])
		return b
	}
	pause := pfc(0, 0)
	packet.Pause{Time: 1000}.Put(pause[packet.EthernetLen:])
	const thousandQuanta = 1000 * 512 / 100 // ns at 100 Gb/s
	for _, c := range []struct {
		name      string
		frames    [][]byte
		data, ack int64 // when either goes on, ns
	}{
		{"data", [][]byte{pfc(1<<3, 1000)}, thousandQuanta, 0},
		{"acknowledgements", [][]byte{pfc(1<<6, 1000)}, 0, thousandQuanta},
		{"both", [][]byte{pfc(0xff, 1000)}, thousandQuanta, thousandQuanta},
		{"others", [][]byte{pfc(0xff&^(1<<3|1<<6), 1000)}, 0, 0},
		{"PAUSE", [][]byte{pause}, thousandQuanta, thousandQuanta},
		{"taken back", [][]byte{pfc(0xff, 1000), pfc(1<<3, 0)}, 0, thousandQuanta},
		{"for longer", [][]byte{pfc(1<<3, 1000), pfc(1<<3, 3000)}, 3 * thousandQuanta, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, Config{}, 1)
			a, b := n.connect()
			h := n.hosts[0]
			// The host has both to send: data of its own, and an acknowledgement of the peer's.
			n.start(1, Stream{QP: b, Bytes: 1})
			size, length := n.hosts[1].Next(0, n.buf[:])
			h.Receive(0, n.buf[:size], length)
			n.start(0, Stream{QP: a, Bytes: 1})
			for _, f := range c.frames {
				h.Receive(0, f, len(f))
			}
			got := map[bool]int64{}
			for len(got) < 2 {
				at, ok := h.Due()
				if !ok || at > second {
					t.Fatal("the host is idle")
				}
				if size, length := h.Next(at, n.buf[:]); length > 0 {
					got[parsed(n.buf[:size], length).Opcode == packet.RCAcknowledge] = at
				}
			}
			const frame = 7 // ns that the other packet takes at most
			if got[false]-c.data > frame || got[false] < c.data || got[true]-c.ack > frame || got[true] < c.ack {
				t.Errorf("data goes at %d ns and the acknowledgement at %d, want %d and %d", got[false], got[true], c.data, c.ack)
			}
			if n := h.Counters().FlowControl; n != uint64(len(c.frames)) {
				t.Errorf("%d frames counted, want %d", n, len(c.frames))
			}
		})
	}
}

// TestDue: before Due, Next has nothing; at Due, it has a frame or a timer expires. So a caller that only follows Due misses nothing and
// doesn't loop forever.
func TestDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNetwork(t, Config{AckEvery: 4, Window: 30_000, Timeout: 50_000, Reaction: ReactionConfig{Algorithm: DCQCN}}, 3000)
		for range rapid.IntRange(1, 5).Draw(t, "qps") {
			a, b := n.connect()
			n.start(0, Stream{QP: a, Bytes: 20_000, Messages: 3, Interval: 7000, Op: rapid.SampledFrom([]Op{Write, Send, Read}).Draw(t, "op")})
			n.start(1, Stream{QP: b, Bytes: 100, Messages: 20, Interval: 1000, At: 5000})
		}
		h := n.hosts[0]
		n.change = func(int64, int, []byte, int) bool { return rapid.IntRange(0, 9).Draw(t, "lost") > 0 }
		vain := 0
		for step := range 300 {
			due, ok := h.Due()
			if !ok {
				return
			}
			if at := rapid.Int64Range(0, 2000).Draw(t, "early"); step%5 == 0 && due > n.now && n.now+at < due {
				if _, length := h.Next(n.now+at, n.buf[:]); length > 0 {
					t.Fatalf("Next has a frame at %d, Due says %d", n.now+at, due)
				}
				n.now += at
			}
			before := h.counters.FramesSent
			n.run(max(n.now, due))
			if again, _ := h.Due(); again <= n.now && h.counters.FramesSent == before {
				if vain++; vain > 3 {
					t.Fatalf("Due says %d again and again, but Next has nothing", again)
				}
			} else {
				vain = 0
			}
		}
	})
}

// TestIdle: with all messages done, nothing is due.
func TestIdle(t *testing.T) {
	n := newNetwork(t, Config{}, 1000)
	a, _ := n.connect()
	n.start(0, Stream{QP: a, Bytes: 10_000})
	n.run(never)
	for i, h := range n.hosts {
		if at, ok := h.Due(); ok {
			t.Errorf("host %d has something to do at %d", i, at)
		}
	}
}

// TestSlowRateIsNoTimeout: a QP whose rate makes a packet take longer than its time-out loses nothing and sends nothing twice; what is lost it sends again.
func TestSlowRateIsNoTimeout(t *testing.T) {
	for _, c := range []struct {
		name     string
		rate     int64
		ackEvery int
		lost     bool // the last packet, once
	}{
		{"500 kbit/s", 500_000, 0, false}, {"500 kbit/s, each packet acknowledged", 500_000, 1, false}, {"500 kbit/s, the last packet is lost", 500_000, 1, true},
		{"3 Mbit/s, several together", 3_000_000, 8, false}, {"20 Mbit/s, many together", 20_000_000, 64, false}, {"10 kbit/s", 10_000, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t, Config{LineRate: 100 * gigabit, AckEvery: c.ackEvery, Timeout: 4_000_000, Reaction: ReactionConfig{Algorithm: DCQCN,
				DCQCN: DCQCNConfig{StartRate: c.rate, MinRate: c.rate, RateTimer: 1000 * second, ByteCounter: -1}}}, 10_000)
			a, _ := n.connect()
			packets := 0
			n.change = func(_ int64, from int, _ []byte, _ int) bool {
				if from == 0 {
					packets++
				}
				return !c.lost || from != 0 || packets != 64
			}
			n.start(0, Stream{QP: a, Bytes: 64 * 1024})
			n.run(never)
			got := n.hosts[0].Counters()
			if timeouts := got.TimedOut == 1; timeouts != c.lost || got.TimedOut > 1 || !c.lost && packets != 64 {
				t.Errorf("%d packets, %d time-outs", packets, got.TimedOut)
			}
		})
	}
}
