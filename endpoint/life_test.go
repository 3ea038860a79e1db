package endpoint

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// TestWrongConfig: an error names the field that is wrong.
func TestWrongConfig(t *testing.T) {
	good := Config{Addr: address(0), LineRate: 100 * gigabit}
	for _, c := range []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"no address", func(c *Config) { c.Addr = packet.Addr{} }, "set Addr"},
		{"no rate", func(c *Config) { c.LineRate = 0 }, "LineRate is 0 bit/s"},
		{"MTU", func(c *Config) { c.MTU = 10_000 }, "MTU is 10000 bytes, expected 1 to 9216"},
		{"priority", func(c *Config) { c.Priority = 8 }, "priority 8"},
		{"window", func(c *Config) { c.Window = -1 }, "Window"},
		{"access list", func(c *Config) { c.Reaction.Trusted = []netip.Prefix{{}} }, "Trusted"},
		{"g", func(c *Config) { c.Reaction.DCQCN.G = 2 }, "DCQCN.G is 2"},
		{"timer", func(c *Config) { c.Reaction.DCQCN.AlphaTimer = -1 }, "AlphaTimer"},
		{"least rate", func(c *Config) { c.Reaction.DCQCN.MinRate = 101 * gigabit }, "MinRate is 101000000000"},
		{"start rate", func(c *Config) { c.Reaction.DCQCN.StartRate = 1000 }, "StartRate 1000"},
		{"hops", func(c *Config) { c.Reaction.HPCC.Hops = 10 }, "expected 0 to 9"},
		{"base RTT", func(c *Config) { c.Reaction.HPCC.BaseRTT = -1 }, "HPCC.BaseRTT is -1"},
		{"recovery", func(c *Config) { c.Reaction.RecoveryInterval = -1 }, "RecoveryInterval -1"},
	} {
		config := good
		c.change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.says)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

// TestWrongQP: errors about QPs and streams name what is wrong.
func TestWrongQP(t *testing.T) {
	h, err := New(Config{Addr: address(0), LineRate: gigabit})
	if err != nil {
		t.Fatal(err)
	}
	peer := Peer{Addr: address(1), QP: 7}
	for _, c := range []struct {
		qp   QP
		says string
	}{
		{QP{Number: 5, Peer: peer}, ""},
		{QP{Number: 5, Peer: peer}, "open already"},
		{QP{Peer: peer}, "QP number 0"},
		{QP{Number: 1 << 24, Peer: peer}, "expected 1 to 16777215"},
		{QP{Number: 8, Peer: Peer{Addr: ipv6, QP: 7}}, "IP version"},
		{QP{Number: 8, Peer: peer, SendPSN: 1 << 24}, "24 bits"},
	} {
		if err := h.Open(c.qp); err == nil != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want %q in it", c.qp, err, c.says)
		}
	}
	for _, c := range []struct {
		stream Stream
		says   string
	}{
		{Stream{QP: 5, Bytes: 1 << 31}, ""},
		{Stream{QP: 9}, "no QP 0x000009"},
		{Stream{QP: 5, Messages: -1}, "negative"},
		{Stream{QP: 5, Op: 1}, "operation 1"},
		{Stream{QP: 5, Bytes: 1<<31 + 1}, "too long"},
	} {
		if err := h.Start(c.stream); err == nil != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want %q in it", c.stream, err, c.says)
		}
	}
}

// TestManyConnections: connections come and go, opened and closed as their messages complete; the hosts keep nothing of them, and numbers are
// given out anew.
func TestManyConnections(t *testing.T) {
	const connections = 5000
	n := newNetwork(t, Config{FirstQP: packet.MaxQP - 1000}, 1000)
	open, done := 0, 0
	next := func(at int64) {
		if open == connections {
			return
		}
		open++
		a, b := n.connect()
		n.start(0, Stream{QP: a, Bytes: 5000, ID: uint64(a)<<24 | uint64(b), At: at})
	}
	n.hosts[0].c.Completed = func(c Completion) {
		done++
		n.hosts[0].Close(uint32(c.ID >> 24))
		n.hosts[1].Close(uint32(c.ID & packet.PSNMask))
		next(c.Done)
	}
	for range 20 {
		next(0)
	}
	n.run(never)
	if done != connections {
		t.Errorf("%d messages complete, want %d", done, connections)
	}
	for i, h := range n.hosts {
		if len(h.byNumber) != 0 || len(h.reaction.byQP) != 0 || len(h.reaction.byPeer) != 0 || len(h.timers.entries) != 0 || len(h.pacing.entries) != 0 {
			t.Errorf("host %d keeps %d QPs, %d flows, %d timers", i, len(h.byNumber), len(h.reaction.byQP), len(h.timers.entries))
		}
		if _, ok := h.Due(); ok {
			t.Errorf("host %d has something to do", i)
		}
	}
}

// TestNotForQPs: frames that aren't for one of the host's QPs are dropped, and counted by reason.
func TestNotForQPs(t *testing.T) {
	n := newNetwork(t, Config{Payload: PayloadReal}, 1000)
	a, _ := n.connect()
	n.start(0, Stream{QP: a, Bytes: 100})
	_, length := n.hosts[0].Next(0, n.buf[:])
	frame := slices.Clone(n.buf[:length])
	h := n.hosts[1]
	other := func(change func([]byte), repairs bool) {
		b := slices.Clone(frame)
		change(b)
		if repairs {
			repair(b)
		}
		h.Receive(0, b, len(b))
	}
	other(func(b []byte) { b[l3+19]++ }, true)                                              // destination address
	other(func(b []byte) { b[l3+15] += 7 }, true)                                           // source address
	other(func(b []byte) { b[l3+packet.IPv4Len+packet.UDPLen+7]++ }, true)                  // DestQP
	other(func(b []byte) { b[len(b)-10]++ }, false)                                         // payload
	other(func(b []byte) { b[l3+packet.IPv4Len+packet.UDPLen] = 0x04 | 0x20 }, true)        // UC
	other(func(b []byte) { b[l3+packet.IPv4Len+packet.UDPLen] = 0x1d }, true)               // ATOMIC WRITE
	other(func(b []byte) { b[l3+packet.IPv4Len+packet.UDPLen] = 0x12 }, true)               // ATOMIC Acknowledge
	other(func(b []byte) { b[l3+packet.IPv4Len+packet.UDPLen] = 0xb1 }, true)               // XRC Acknowledge
	labelled := slices.Concat(frame[:l3-2], []byte{0x88, 0x47, 0, 1, 0x11, 64}, frame[l3:]) // one label: no tunnel ends at a host
	h.Receive(0, labelled, len(labelled))
	other(func([]byte) {}, false)
	c := h.Counters()
	if c.WrongDestination != 2 || c.WrongPeer != 1 || c.UnknownQP != 1 || c.WrongICRC != 1 || c.Unsupported != 4 || c.InSequence != 1 {
		t.Errorf("counted %+v", c)
	}
	checkAccount(t, c)
}

// TestTimerHeap compares the heap with a list.
func TestTimerHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap timerHeap
		qps := make([]qp, 20)
		model := map[*qp]int64{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			q := &qps[rapid.IntRange(0, len(qps)-1).Draw(t, "qp")]
			at := rapid.Int64Range(0, 50).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				heap.remove(&q.timer)
				delete(model, q)
			case 1:
				due := heap.popDue(at)
				least := never
				for _, other := range model {
					least = min(least, other)
				}
				if due == nil != (least > at) || due != nil && model[due] != least {
					t.Fatalf("popDue(%d) is %v, the earliest is %d", at, due, least)
				}
				delete(model, due)
			default:
				heap.set(q, &q.timer, at)
				model[q] = at
			}
			if len(heap.entries) != len(model) {
				t.Fatalf("%d entries, want %d", len(heap.entries), len(model))
			}
		}
	})
}

// TestCloseInCompleted: once Completed has closed a QP, no other message of it completes or fails. A QP opened in its place isn't mistaken
// for it.
func TestCloseInCompleted(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse bool // the messages fail
	}{{"done", false}, {"failed", true}} {
		t.Run(c.name, func(t *testing.T) {
			var done []Completion
			var host *Host
			var qp uint32
			h, err := New(Config{Addr: address(0), LineRate: 100 * gigabit, AckEvery: 100, Completed: func(d Completion) {
				done = append(done, d)
				host.Close(qp)
				if err := host.Open(QP{Number: qp, Peer: Peer{Addr: address(1), QP: 77}}); err != nil {
					t.Error(err)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			peer, err := New(Config{Addr: address(1), LineRate: 100 * gigabit})
			if err != nil {
				t.Fatal(err)
			}
			host = h
			a, b, err := Connect(h, peer, [2]uint32{})
			if err != nil {
				t.Fatal(err)
			}
			qp = a
			if err := h.Start(Stream{QP: a, Bytes: 10, Messages: 3}); err != nil {
				t.Fatal(err)
			}
			out := make([]byte, MaxFrame)
			for at, ok := h.Due(); ok && h.Counters().DataSent < 3; at, ok = h.Due() {
				h.Next(at, out)
			}
			syndrome, psn := uint8(transport.SyndromeACK), uint32(2)
			if c.refuse {
				syndrome, psn = 0x63, 0 // NAK: remote operational error
			}
			q := peer.byNumber[b]
			q.ack.put(out, 0, packet.RCAcknowledge, psn, packet.AETHLen+packet.ICRCLen)
			(&packet.AETH{Syndrome: syndrome}).Put(out[q.ack.bth+packet.BTHLen:])
			length := q.ack.bth + packet.BTHLen + packet.AETHLen + packet.ICRCLen
			h.Receive(1_000_000, out[:length-packet.ICRCLen], length)
			if len(done) != 1 || done[0].Failed != c.refuse {
				t.Errorf("completions %+v, want the first one only", done)
			}
			if err := h.Start(Stream{QP: a, Bytes: 10}); err != nil {
				t.Errorf("the QP that was opened in its place: %v", err)
			}
		})
	}
}
