package rdmanet

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// aConn is a connection over a path of 20 us each way with the capture in its middle, whose end 0 sends. A packet takes 88 ns on its line.
func aConn(change func(n *NIC)) (*Network, *Conn, *Capture) {
	nic := &NIC{
		Name: "test", Turn: usec, MaxReads: 4, Window: 64, TimeOut: msec, Retries: 7, RNRRetries: 7, Rate: 100e9, MTU: 1024, NetworkBytes: 76, RNRTimer: 10, Identified: true,
	}
	if change != nil {
		change(nic)
	}
	n := &Network{Random: rand.New(rand.NewPCG(1, 1))}
	c := &Conn{NIC: nic, QP: [2]uint32{0x111, 0x222}, Port: [2]uint16{0xc001, 0xc001}, Path: &Path{}, Scene: &Scene{}}
	for end := range 2 {
		c.Host[end] = &Host{Addr: address(nic.IPv6, false, end, 0), MAC: [6]byte{2, 5: byte(end)}, Rate: nic.Rate}
		c.Half[end] = &Half{Net: n, Conn: c, End: end, First: 0xfffffc}
		c.Half[end].Receives = -1
		c.Path.Segments[end] = [2]*Segment{{Delay: 10 * usec}, {Delay: 10 * usec}}
	}
	n.Conns = []*Conn{c}
	capture := &Capture{Network: n, View: View{Snap: 16384, Most: 1 << 20}}
	n.Tap = func(p *Packet, now int64) { capture.pass(n.Random, p, now) }
	return n, c, capture
}

// third loses the third packet, once.
func third() *Loss {
	return &Loss{Data: true, Acks: true, OneIn: 1, Burst: 1, Most: 1, From: 3*88 - 20}
}

func run(n *Network) {
	for _, c := range n.Conns {
		for _, h := range c.Half {
			h.Start()
		}
	}
	n.Run(never, 100_000)
}

// requests are the PSNs of a half's requests, from 0, in the order in which they were sent; and of those sent again the reasons.
func requests(h *Half) (seqs []int64, reasons map[Reason]int, triggers map[Trigger]int) {
	reasons, triggers = map[Reason]int{}, map[Trigger]int{}
	for _, p := range h.sent {
		if p.Kind != Request {
			continue
		}
		seqs = append(seqs, p.Seq)
		if p.Again != nil {
			reasons[p.Again.Reason()]++
			triggers[p.Again.Trigger]++
		}
	}
	return seqs, reasons, triggers
}

// answers are the responses with a syndrome's upper bits.
func answers(h *Half, kind uint8) (all []*Packet) {
	for _, p := range h.sent {
		if p.Kind == Response && p.Opcode == packet.RCAcknowledge && p.Syndrome>>5 == kind {
			all = append(all, p)
		}
	}
	return all
}

// TestRepeats: what is sent, why again, and how the connection ends. All first PSNs are just below 2^24, so that they wrap.
func TestRepeats(t *testing.T) {
	write := func(h *Half) { h.Post(Write, 8*1024, 0) }
	once := []int64{0, 1, 2, 3, 4, 5, 6, 7}
	back := []int64{0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		name    string
		nic     func(n *NIC)
		post    func(h *Half)
		trouble func(c *Conn)
		sent    []int64
		reason  Reason
		trigger Trigger
		naks    int
		failed  bool
	}{
		{name: "nothing is lost", post: write, sent: once},
		{
			name: "go-back-N, lost before", post: write, trouble: func(c *Conn) { c.Path.Segments[0][0].Loss = []*Loss{third()} },
			sent: back, reason: DataBefore, trigger: Asked, naks: 1,
		},
		{
			name: "go-back-N, lost behind", post: write,
			trouble: func(c *Conn) {
				l := third()
				l.From += 10 * usec
				c.Path.Segments[0][1].Loss = []*Loss{l}
			},
			sent: back, reason: DataBehind, trigger: Asked, naks: 1,
		},
		{
			name: "selective", post: write, nic: func(n *NIC) { n.Selective = true }, trouble: func(c *Conn) { c.Path.Segments[0][0].Loss = []*Loss{third()} },
			sent: append(slices.Clone(once), 2), reason: DataBefore, trigger: Asked, naks: 1,
		},
		{
			name: "selective, without NAKs", post: write, nic: func(n *NIC) { n.Selective, n.Tolerance = true, -1 },
			trouble: func(c *Conn) { c.Path.Segments[0][0].Loss = []*Loss{third()} },
			sent:    append(slices.Clone(once), 0, 2), reason: DataBefore, trigger: TimedOut,
		},
		{
			name: "overtaken", post: write, nic: func(n *NIC) { n.Identified = false },
			trouble: func(c *Conn) { c.Path.Segments[0][0].Late = &Late{OneIn: 1e9, By: usec} },
			sent:    once,
		},
		{
			name: "ACK lost before", post: write, trouble: func(c *Conn) { c.Path.Segments[1][0].Loss = []*Loss{{Acks: true, OneIn: 1, Most: 1}} },
			sent: append(slices.Clone(once), once...), reason: AckBefore, trigger: TimedOut,
		},
		{
			name: "ACK lost behind", post: write, trouble: func(c *Conn) { c.Path.Segments[1][1].Loss = []*Loss{{Acks: true, OneIn: 1, Most: 1}} },
			sent: append(slices.Clone(once), once...), reason: AckBehind, trigger: TimedOut,
		},
		{
			name: "time-out too short", post: func(h *Half) { h.Post(Write, 1024, 0) }, nic: func(n *NIC) { n.TimeOut = 30 * usec },
			sent: []int64{0, 0}, reason: TooShort, trigger: TimedOut,
		},
		{
			name: "no answer", post: func(h *Half) { h.Post(Write, 1024, 0) }, trouble: func(c *Conn) { c.Path.Segments[0][1].Loss = []*Loss{{Data: true, OneIn: 1}} },
			sent: []int64{0, 0, 0, 0, 0, 0, 0, 0}, reason: DataBehind, trigger: TimedOut, failed: true,
		},
		{
			name: "dead", post: func(h *Half) { h.Post(Write, 1024, 0) }, trouble: func(c *Conn) { c.Host[1].Down = 1 },
			sent: []int64{0, 0, 0, 0, 0, 0, 0, 0}, reason: Dead, trigger: TimedOut, failed: true,
		},
		{
			name: "refused", post: func(h *Half) { h.Post(Write, 1024, 0); h.Post(Write, 1024, 0) },
			trouble: func(c *Conn) { c.Half[0].RefuseAt, c.Half[0].RefuseHow = 1, 2 },
			sent:    []int64{0, 1}, naks: 1, failed: true,
		},
		{
			name: "receiver not ready", post: func(h *Half) { h.Post(Send, 1024, 0); h.Post(Send, 1024, 0) },
			trouble: func(c *Conn) { c.Half[0].Receives, c.Half[0].Supply = 1, 4e3 },
			sent:    []int64{0, 1, 1}, reason: NotReady, trigger: NotReadyNAK,
		},
		{
			name: "READ, a response lost", post: func(h *Half) { h.Post(Read, 8*1024, 0) }, trouble: func(c *Conn) {
				c.Path.Segments[1][0].Loss = []*Loss{{Data: true, OneIn: 1, Most: 1, From: 21*usec + 4*88}}
			},
			sent: []int64{0, 3}, reason: DataBefore, trigger: Implied,
		},
		{
			name: "READ, the request lost", post: func(h *Half) { h.Post(Read, 8*1024, 0) }, trouble: func(c *Conn) {
				c.Path.Segments[0][1].Loss = []*Loss{{Data: true, OneIn: 1, Most: 1}}
			},
			sent: []int64{0, 0}, reason: DataBehind, trigger: TimedOut,
		},
		{
			name: "READ and WRITE, all responses lost", post: func(h *Half) { h.Post(Read, 2048, 0); h.Post(Write, 1024, 0) }, trouble: func(c *Conn) {
				c.Path.Segments[1][1].Loss = []*Loss{{Data: true, OneIn: 1, Burst: 2, Most: 1}}
			},
			sent: []int64{0, 2, 0, 2}, reason: DataBehind, trigger: Implied,
		},
		{
			name: "ATOMIC, its response lost", post: func(h *Half) { h.Post(Atomic, 8, 0) }, trouble: func(c *Conn) {
				c.Path.Segments[1][1].Loss = []*Loss{{Data: true, OneIn: 1, Most: 1}}
			},
			sent: []int64{0, 0}, reason: DataBehind, trigger: TimedOut,
		},
		{
			name: "corrupted", post: write, trouble: func(c *Conn) {
				l := third()
				l.Corrupts = true
				c.Path.Segments[0][0].Loss = []*Loss{l}
			},
			sent: back, reason: DataBefore, trigger: Asked, naks: 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, conn, _ := aConn(c.nic)
			h := conn.Half[0]
			c.post(h)
			if c.trouble != nil {
				c.trouble(conn)
			}
			run(n)
			sent, reasons, triggers := requests(h)
			naks := len(answers(h, 3))
			if !slices.Equal(sent, c.sent) || naks != c.naks || h.Failed != c.failed {
				t.Errorf("sent %v, %d NAKs, failed %v; expected %v, %d, %v", sent, naks, h.Failed, c.sent, c.naks, c.failed)
			}
			if again := len(sent) - int(h.high) + extra(h); again > 0 && c.trigger+Trigger(c.reason) > 0 && (reasons[c.reason] == 0 || triggers[c.trigger] == 0 || len(triggers) > 1) {
				t.Errorf("reasons %v, triggers %v; expected %v, %v", reasons, triggers, c.reason, c.trigger)
			}
			if !c.failed && (h.una != h.high || h.exp != h.high) {
				t.Errorf("acknowledged %d, executed %d of %d", h.una, h.exp, h.high)
			}
		})
	}
}

// extra are the PSNs of READs beyond their requests.
func extra(h *Half) (n int) {
	for _, r := range h.requests {
		n += int(r.psns) - 1
	}
	return n
}

// TestTimers: when a requester sends again.
func TestTimers(t *testing.T) {
	for _, c := range []struct {
		name     string
		doubling bool
		waits    []int64 // ms
	}{
		{"fixed", false, []int64{2, 2, 2, 2, 2, 2, 2}},
		{"doubling", true, []int64{2, 4, 8, 16, 32, 64, 128}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, conn, _ := aConn(func(n *NIC) { n.TimeOut, n.Doubling = 2*msec, c.doubling })
			conn.Host[1].Down = 1
			h := conn.Half[0]
			h.Post(Write, 64, 0)
			run(n)
			var waits []int64
			for i := 1; i < len(h.sent); i++ {
				waits = append(waits, (h.sent[i].Sent-h.sent[i-1].Sent+msec/2)/msec)
			}
			if !slices.Equal(waits, c.waits) || !h.GaveUp {
				t.Errorf("waited %v ms, gave up %v; expected %v", waits, h.GaveUp, c.waits)
			}
		})
	}
	n, conn, _ := aConn(nil)
	h := conn.Half[0]
	h.Receives, h.Supply = 0, 4e3
	h.Post(Send, 64, 0)
	run(n)
	rnr := answers(h, 1)
	if len(rnr) != 1 || len(h.sent) < 3 {
		t.Fatalf("%d RNR NAKs, %d packets; expected 1, 4", len(rnr), len(h.sent))
	}
	if again := h.sent[2]; again.Kind != Request || again.Sent-rnr[0].Arrived < 320*usec || again.Sent-rnr[0].Arrived > 321*usec {
		t.Errorf("sent again %d ns after the RNR NAK; expected 320 us (table 46: 10)", again.Sent-rnr[0].Arrived)
	}
}

// TestAdaptive: a selective NIC that waits for what is late sends nothing again; one that goes back does.
func TestAdaptive(t *testing.T) {
	for _, selective := range []bool{true, false} {
		n, conn, _ := aConn(func(n *NIC) { n.Selective, n.Tolerance = selective, -1 })
		conn.Path.Segments[0][0].Late = &Late{OneIn: 5, By: 2 * usec}
		h := conn.Half[0]
		for range 20 {
			h.Post(Write, 8*1024, 0)
		}
		run(n)
		_, reasons, _ := requests(h)
		if h.una != 160 || h.exp != 160 {
			t.Errorf("selective %v: acknowledged %d, executed %d; expected 160", selective, h.una, h.exp)
		}
		if (reasons[Reordered] == 0) != selective || len(reasons) > 1 || selective && len(reasons) > 0 {
			t.Errorf("selective %v: sent again %v", selective, reasons)
		}
	}
}

// TestAnswers: how many ACKs there are for 64 packets in two messages.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(n *NIC)
		acks   int
	}{
		{"one a message", nil, 2},
		{"each packet", func(n *NIC) { n.AckEach = true }, 64},
		{"each eighth", func(n *NIC) { n.AckEvery = 8 }, 8},
		{"coalesced", func(n *NIC) { n.AckEvery, n.AckDelay = 8, 2*usec }, 3},
		{"a full window", func(n *NIC) { n.Window = 16 }, 4},
	} {
		n, conn, _ := aConn(c.change)
		h := conn.Half[0]
		h.Post(Write, 32*1024, 0)
		h.Post(Write, 32*1024, 0)
		run(n)
		if acks := answers(h, 0); len(acks) != c.acks || acks[len(acks)-1].Acked != 64 {
			t.Errorf("%s: %d ACKs, expected %d", c.name, len(acks), c.acks)
		}
	}
}

// TestObeys: if the sender obeys CNPs its packets wait less at the bottleneck.
func TestObeys(t *testing.T) {
	marked, cnps := map[bool]int{}, 0
	for _, obeys := range []bool{true, false} {
		n, conn, capture := aConn(func(n *NIC) { n.ECT, n.Notifies, n.Obeys, n.NotifyEvery = true, true, obeys, 4*usec })
		seg := conn.Path.Segments[0][0]
		seg.Rate, seg.MarkAt = 5e9, 20*usec
		h := conn.Half[0]
		for range 100 {
			h.Post(Write, 8*1024, 0)
		}
		run(n)
		for _, r := range capture.Records {
			if r.Packet.CE {
				marked[obeys]++
			}
			if r.Packet.Kind == Notification {
				cnps++
			}
		}
		if h.una != 800 || len(h.Episodes) > 0 {
			t.Errorf("obeys %v: acknowledged %d of 800, %d episodes", obeys, h.una, len(h.Episodes))
		}
	}
	if cnps < 20 || marked[true]*3 > marked[false] {
		t.Errorf("%d CNPs, marked %v", cnps, marked)
	}
}

// drawn is how many networks TestDrawn draws.
const drawn = 400

// TestDrawn: what holds in each drawn network, and that its capture has the frames that it says it has.
func TestDrawn(t *testing.T) {
	seen := map[SceneKind]int{}
	for seed := range uint64(drawn) {
		c := Draw(seed)
		for _, s := range c.Scenes {
			seen[s.Kind]++
		}
		for _, conn := range c.Network.Conns {
			for _, h := range conn.Half {
				checkHalf(t, seed, h)
			}
		}
		e := c.Expected()
		wrong := 0
		for claim := range e.True {
			if claim.Verdict != "window-limits-throughput" { // that may be so where nothing is wrong
				wrong++
			}
		}
		for claim := range e.Must {
			if !e.True[claim] {
				t.Errorf("seed %d: %v must be claimed, but isn't true", seed, claim)
			}
		}
		if c.View.both() && c.View.Sample <= 1 && len(c.Scenes) == 1 && c.Scenes[0].Kind <= Cooperative && c.View.MissOne == 0 && c.View.Twins == NoTwins && wrong > 0 {
			t.Errorf("seed %d: nothing is wrong, but %v", seed, e.True)
		}
		if seed%4 == 0 {
			checkFrames(t, c)
		}
	}
	for k := range SceneKind(Kinds) {
		if seen[k] == 0 {
			t.Errorf("no scene is %v", k)
		}
	}
}

// checkHalf: requests are executed once and in order, and all were acknowledged unless something ended the connection. Each episode has a reason.
func checkHalf(t *testing.T, seed uint64, h *Half) {
	over := h.Failed || h.Conn.Host[0].Down+h.Conn.Host[1].Down != 0
	if !over && len(h.requests) > 0 && (h.una != h.high || h.exp != h.high || h.next != len(h.requests)) && h.Net.Sent < 40_000 {
		t.Errorf("seed %d: acknowledged %d, executed %d of %d; %v", seed, h.una, h.exp, h.high, h.Conn)
	}
	highest := int64(0)
	for _, p := range h.sent {
		if p.Kind == Request {
			if again := p.Seq < highest; again != (p.Again != nil) {
				t.Errorf("seed %d: PSN %d is sent again: %v, noted: %v", seed, p.Seq, again, p.Again != nil)
			}
			highest = max(highest, p.Seq+p.PSNs)
		}
		if p.Fate == Delivered && (p.Passed < p.Sent || p.Arrived <= p.Passed) {
			t.Errorf("seed %d: sent at %d, passed at %d, arrived at %d", seed, p.Sent, p.Passed, p.Arrived)
		}
	}
	for _, e := range h.Episodes {
		r := e.Reason()
		switch r {
		case Unexplained:
			if h.Net.Sent < 40_000 {
				t.Errorf("seed %d: no reason for going back to %d at %d by %v; %v", seed, e.Seq, e.At, e.Trigger, h.Conn)
			}
		case DataBefore, DataBehind, AckBefore, AckBehind:
			if about := e.About(); about == nil || !about.lost() || about.Sent > e.At {
				t.Errorf("seed %d: %v was not lost before %d", seed, about, e.At)
			}
		case Reordered:
			if !h.Conn.Path.overtakes() {
				t.Errorf("seed %d: nothing is overtaken, but PSN %d at %d is, by %v; %v", seed, e.Seq, e.At, e.Trigger, h.Conn)
			}
		}
	}
}

// checkFrames reads the capture's file.
func checkFrames(t *testing.T, c *Capture) {
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		f, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			if i != len(c.Records) {
				t.Errorf("seed %d: %d frames, expected %d", c.Seed, i, len(c.Records))
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want := c.Records[i].Packet
		if want == nil || c.View.Wrap == VXLAN || c.View.Wrap == ERSPAN || len(f) < info.Length && len(f) < 120 {
			continue
		}
		var p packet.Parsed
		packet.Parse(f, uint32(info.Length), &p)
		if p.Kind != packet.RoCEv2 && want.Kind != Notification || p.DestQP != want.Half.Conn.QP[want.From^1] || want.Kind != Notification && p.PSN != want.wire() {
			t.Fatalf("seed %d: frame %d is %v %+v", c.Seed, i+1, p.Kind, p)
		}
		if len(f) == info.Length && packet.VerifyICRC(f, &p) != (want.Fate != CorruptedBefore) {
			t.Fatalf("seed %d: frame %d has ICRC %v", c.Seed, i+1, packet.VerifyICRC(f, &p))
		}
	}
}
