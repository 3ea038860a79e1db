package rdmanet

import (
	"maps"
	"slices"
	"testing"
)

// TestExpected: the verdicts of connections with one thing wrong; and what is true, but can't be seen.
func TestExpected(t *testing.T) {
	many := func(h *Half) {
		for range 20 {
			h.Post(Write, 8*1024, 0)
		}
	}
	one := func(h *Half) { h.Post(Write, 1024, 0) }
	lossy := func(end, part int, l Loss) func(*Conn, *Capture) {
		return func(c *Conn, _ *Capture) { c.Path.Segments[end][part].Loss = []*Loss{&l} }
	}
	data := Loss{Data: true, OneIn: 1, Burst: 1, Most: 1, From: 30 * usec}
	acks := Loss{Acks: true, OneIn: 1, Burst: 1 << 20, Most: 1, From: 30 * usec, Until: 300 * usec}
	all := Loss{Data: true, Acks: true, OneIn: 1, Burst: 1}
	hole := func(c *Conn, _ *Capture) {
		c.Scene.Kind, c.Scene.Over = BigHole, 512
		lossy(0, 1, Loss{Data: true, OneIn: 1, Burst: 1, Over: 512})(c, nil)
	}
	large := func(small int) func(h *Half) {
		return func(h *Half) {
			for range small {
				h.Post(Write, 64, 0)
			}
			h.Post(Write, 1024, 50*usec)
		}
	}
	for _, c := range []struct {
		name    string
		nic     func(n *NIC)
		post    func(h *Half)
		trouble func(c *Conn, capture *Capture)
		must    []string
		may     []string // true as well
	}{
		{name: "nothing", post: many},
		{name: "lost before", post: many, trouble: lossy(0, 0, data), must: []string{"loss-upstream"}},
		{name: "lost behind", post: many, trouble: lossy(0, 1, data), must: []string{"loss-downstream"}},
		{name: "ACKs lost before", post: many, trouble: lossy(1, 0, acks), must: []string{"loss-downstream"}},
		{name: "ACKs lost behind", post: many, trouble: lossy(1, 1, acks), must: []string{"ack-loss"}},
		{
			name: "ACKs lost behind, by two clocks", post: many, trouble: func(c *Conn, capture *Capture) {
				lossy(1, 1, acks)(c, capture)
				capture.View.Skew = usec
			}, may: []string{"ack-loss"},
		},
		{
			name: "READ response lost before", post: func(h *Half) { h.Post(Read, 64*1024, 0) },
			trouble: lossy(1, 0, Loss{Data: true, OneIn: 1, Burst: 1, Most: 1, From: 23 * usec}), must: []string{"loss-upstream"},
		},
		{
			name: "lost before, one side", post: many, trouble: func(c *Conn, capture *Capture) {
				lossy(0, 0, data)(c, capture)
				capture.View.Hidden[1] = true
			}, may: []string{"asymmetric-path", "loss-upstream"},
		},
		{
			name: "lost before, sampled", post: many, trouble: func(c *Conn, capture *Capture) {
				lossy(0, 0, data)(c, capture)
				capture.View.Sample = 2
			}, must: []string{"capture-incomplete"}, may: []string{"loss-upstream"},
		},
		{
			name: "time-out too short", nic: func(n *NIC) { n.TimeOut, n.Window = 30*usec, 8 }, post: many, must: []string{"timeout-shorter-than-rtt"},
		},
		{name: "no answer", post: one, trouble: func(c *Conn, _ *Capture) { c.Scene.Kind = Hole; lossy(0, 1, all)(c, nil) }, must: []string{"no-answer"}, may: []string{"loss-downstream"}},
		{name: "dead", post: one, trouble: func(c *Conn, _ *Capture) { c.Host[1].Down = 1 }, must: []string{"no-answer"}},
		{
			name: "answers lost", post: one, trouble: func(c *Conn, _ *Capture) { c.Scene.Kind = Hole; lossy(1, 1, all)(c, nil) },
			must: []string{"ack-loss"}, may: []string{"no-answer", "loss-downstream"},
		},
		{
			name: "large packets lost", post: large(fewSmall), trouble: hole, must: []string{"mtu-black-hole"}, may: []string{"loss-downstream", "no-answer"},
		},
		{
			name: "large packets lost, unless the peer went down just then", post: large(1), trouble: hole,
			may: []string{"loss-downstream", "mtu-black-hole", "no-answer"},
		},
		{name: "refused", post: one, trouble: func(c *Conn, _ *Capture) { c.Half[0].RefuseAt, c.Half[0].RefuseHow = 1, 2 }, must: []string{"request-refused"}},
		{
			name: "receiver not ready", post: func(h *Half) { h.Post(Send, 64, 0) }, trouble: func(c *Conn, _ *Capture) { c.Half[0].Receives, c.Half[0].Supply = 0, 4e3 },
			must: []string{"receiver-not-ready"},
		},
		{
			name: "overtaken", post: many, trouble: func(c *Conn, _ *Capture) { c.Path.Segments[0][0].Late = &Late{OneIn: 8, By: 2 * usec} },
			must: []string{"reordering"},
		},
		{
			name: "overtaken, and accepted", nic: func(n *NIC) { n.Selective, n.Tolerance = true, -1 }, post: many,
			trouble: func(c *Conn, _ *Capture) { c.Path.Segments[0][0].Late = &Late{OneIn: 8, By: 2 * usec} },
		},
		{
			name: "overtaken behind", post: many, trouble: func(c *Conn, _ *Capture) { c.Path.Segments[0][1].Late = &Late{OneIn: 8, By: 2 * usec} },
			may: []string{"loss-downstream", "reordering"},
		},
		{name: "copied", post: many, trouble: func(c *Conn, _ *Capture) { c.Path.Segments[0][0].CopyOneIn = 10 }, must: []string{"duplicate-packets"}},
		{name: "twins", post: many, trouble: func(_ *Conn, capture *Capture) { capture.View.Twins, capture.View.TwinLag = Switched, usec }, must: []string{"duplicate-packets"}},
		{name: "missed", post: many, trouble: func(_ *Conn, capture *Capture) { capture.View.MissOne, capture.View.MissMany = 10, 2 }, must: []string{"capture-incomplete"}},
		{
			name: "corrupted", post: many, trouble: lossy(0, 0, Loss{Data: true, OneIn: 1, Burst: 1, Most: 1, From: 30 * usec, Corrupts: true}),
			must: []string{"wrong-icrc"}, may: []string{"loss-upstream"},
		},
		{
			name: "corrupted, frames cut", post: many, trouble: func(c *Conn, capture *Capture) {
				lossy(0, 0, Loss{Data: true, OneIn: 1, Burst: 1, Most: 1, From: 30 * usec, Corrupts: true})(c, nil)
				capture.View.Snap = 128
			}, may: []string{"loss-upstream", "loss-downstream"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, conn, capture := aConn(c.nic)
			c.post(conn.Half[0])
			if c.trouble != nil {
				c.trouble(conn, capture)
			}
			run(n)
			capture.sort()
			e := capture.Expected()
			checkClaims(t, "must", e.Must, c.must, conn)
			delete(e.True, Claim{"retransmission-unexplained", Subject(conn.Host[0].Addr.String(), conn.Host[1].Addr.String())})
			checkClaims(t, "true", e.True, append(c.must, c.may...), conn)
		})
	}
}

// checkClaims: these verdicts about the two hosts, and no others.
func checkClaims(t *testing.T, what string, got map[Claim]bool, want []string, conn *Conn) {
	t.Helper()
	claims := map[Claim]bool{}
	for _, v := range want {
		claims[Claim{v, Subject(conn.Host[0].Addr.String(), conn.Host[1].Addr.String())}] = true
	}
	if !maps.Equal(got, claims) {
		t.Errorf("%s: %v, expected %v", what, slices.Collect(maps.Keys(got)), want)
	}
}

// TestCauses: what a capture shows of what was sent again.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		name  string
		lost  int // part of the path
		skip  int // frames
		again map[string]uint64
	}{
		{"lost behind", 1, 0, map[string]uint64{"nak-sequence-error": 6}},
		{"lost before, which leaves a gap", 0, 0, map[string]uint64{"nak-sequence-error": 6}},
		{"the capture begins later", 1, 6, map[string]uint64{"nak-sequence-error": 6}},
		{"the capture begins behind the first transmissions", 1, 9, map[string]uint64{}},
	} {
		n, conn, capture := aConn(nil)
		l := third()
		l.From += int64(c.lost) * 10 * usec
		conn.Path.Segments[0][c.lost].Loss = []*Loss{l}
		capture.View.Skip = c.skip
		conn.Half[0].Post(Write, 8*1024, 0)
		run(n)
		if got := capture.Causes(conn.Half[0]); !maps.Equal(got, c.again) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.again)
		}
	}
}

// TestPauses: short pauses are none, a second of them is, and one without a break is a storm.
func TestPauses(t *testing.T) {
	from := [6]byte{2, 0, 0, 9, 9, 1}
	for _, c := range []struct {
		name   string
		quanta uint16
		every  int64 // ns
		until  int64
		must   string
	}{
		{"short", 100, msec, 50 * msec, ""},
		{"often", 20_000, msec, 50 * msec, "pfc-pauses"},
		{"all the time", 65_535, 300 * usec, 50 * msec, "pfc-storm"},
	} {
		capture := &Capture{Network: &Network{}}
		for at := int64(0); at < c.until; at += c.every {
			capture.Records = append(capture.Records, Record{At: at, Pause: &Pause{from, 3, c.quanta}})
			if c.quanta < 65_535 {
				capture.Records = append(capture.Records, Record{At: at + int64(c.quanta)*512/100, Pause: &Pause{from, 3, 0}})
			}
		}
		e := capture.Expected()
		want := map[Claim]bool{}
		if c.must != "" {
			want[Claim{c.must, "02:00:00:09:09:01"}] = true
		}
		must := maps.Equal(e.Must, want)
		if c.must == "pfc-storm" {
			want[Claim{"pfc-pauses", "02:00:00:09:09:01"}] = true // it is many pauses, too
		}
		if !must || !maps.Equal(e.True, want) {
			t.Errorf("%s: %v, %v; expected %v", c.name, e.Must, e.True, want)
		}
	}
}
