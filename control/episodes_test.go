package control

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/episode"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestEpisodeOfGateway: two flows fill a queue of 1 Mbit/s. The sender of the larger one is notified, and slows down to the rate of the other, which keeps it; the queue
// drains; the episode says so, and so does the log.
func TestEpisodeOfGateway(t *testing.T) {
	p := testkit.DefaultPolicy(2)
	p.Ports[1].Thresholds = congestion.Thresholds{KMin: 20_000, KMax: 40_000}
	p.Ports[1].Interval, p.Ports[1].PerFlow = 1e6, 100e6
	p.Who = &congestion.Policy{Enabled: [packet.SentNotifications]bool{packet.FastCNP: true}, HasIPv6: true,
		Endpoints: prefix.New([]prefix.Entry[congestion.Preference]{{Prefix: netip.MustParsePrefix("fd00:18::/32"), Value: congestion.Prefer(packet.FastCNP)}})}
	p.Build = cnpgen.Gateway{IPv6: packet.AddrFrom(netip.MustParseAddr("2001:db8::1")), HasIPv6: true, Code: packet.DefaultCodePoints}
	r := testkit.New(t, testkit.Setup{Rate: 1_000_000, Policy: p, Buffers: 4096, Forget: true})
	classes := []string{"data"}
	c := &config.Config{Ports: []config.Port{{Name: "dc", PortConfig: dataplane.PortConfig{Peer: 1}, ClassNames: classes}, {Name: "wan", ClassNames: classes}}}
	var log bytes.Buffer
	g := &gateway{started: c, plane: r.Plane, options: Options{Log: zerolog.New(&log)}}
	g.running.Store(c)
	g.episodes = newEpisodes(g)
	frame := func(qp uint32) []byte {
		return testkit.RoCE{Src: "fd00:18::1", Dst: "fd00:19::1", DestQP: qp, Size: 1000, ECN: packet.ECT0}.Frame()
	}
	large, small := frame(7), frame(8)
	tick := func(larges, smalls int) {
		for range larges {
			r.Inject(t, 0, large)
			r.Settle()
		}
		for range smalls {
			r.Inject(t, 0, small)
			r.Settle()
		}
		for range sampleStep / time.Millisecond {
			r.Advance(time.Millisecond.Nanoseconds())
			r.Settle()
		}
		g.episodes.look(time.Unix(0, r.Now))
		r.Plane.Worker(0).Step() // and it answers
	}
	for range 8 { // 6.25 frames leave in a tick
		tick(9, 4)
	}
	for range 10 {
		tick(1, 1)
	}
	if all := g.Episodes(); len(all) != 1 || all[0].End != nil {
		t.Errorf("while it goes on: %+v", all)
	}
	for range 40 {
		tick(1, 1)
	}
	all := g.Episodes()
	if len(all) != 1 || all[0].End == nil {
		t.Fatalf("%+v", all)
	}
	e := all[0]
	marked := r.Plane.Port(1).Marked[0]
	if e.Port != "wan" || e.Class != "data" || e.PeakBytes < 50_000 || e.PeakBytes != r.Plane.Port(1).Watermark[0] || e.ECNMarked != marked || marked == 0 ||
		e.Notifications["fast-cnp"] == 0 || len(e.Notifications) != 1 || e.Suppressed["flow-limit"] == 0 {
		t.Errorf("%+v", e)
	}
	if took := e.End.Sub(e.Start); took < 300*time.Millisecond || took > time.Second {
		t.Errorf("from %v to %v", e.Start, e.End)
	}
	if len(e.Flows) != 2 || e.Flows[0].DestinationQP != 7 || e.Flows[1].DestinationQP != 8 || e.Flows[0].Bytes <= e.Flows[1].Bytes || e.Flows[0].Queued < 10_000 {
		t.Errorf("flows %+v", e.Flows)
	}
	if len(e.Senders) == 0 || e.Senders[0].DestinationQP != 7 || e.Senders[0].Slowed == nil || !*e.Senders[0].Slowed || *e.Senders[0].Before < 1_000_000 ||
		*e.Senders[0].After > 500_000 || e.SlowedSenders() != 1 {
		t.Errorf("senders %+v", e.Senders)
	}
	for _, part := range []string{`"message":"Congestion of the queue began."`, `"message":"Congestion of the queue ended."`, `"port":"wan","class":"data"`, `"top_flow_destination_qp":7`, `"senders_slowed":1`,
		`"top_suppression":"flow-limit"`} {
		if strings.Count(log.String(), part) != map[bool]int{true: 2, false: 1}[strings.Contains(part, "port")] {
			t.Errorf("the log should have %s:\n%s", part, &log)
		}
	}
	r.Drain()
	r.Close(t)
}

// TestEpisodesInLog: of short episodes, one per minute and queue is logged at level info, with its end.
func TestEpisodesInLog(t *testing.T) {
	e := episodes{logged: map[episode.Queue]loggedEpisode{}}
	id, lines := uint64(0), map[zerolog.Level]int{}
	for second := range int64(150) {
		for class := range 2 {
			id++
			one := episode.Episode{ID: id, Queue: episode.Queue{Port: 1, Class: class}, Start: second * 1e9}
			lines[e.level(&one, episode.Began)]++
			lines[e.level(&one, episode.Ended)]++
		}
	}
	if want := 2 * 2 * 3; lines[zerolog.InfoLevel] != want || lines[zerolog.DebugLevel] != 2*2*150-want {
		t.Errorf("%v lines by level, want %d at info", lines, want)
	}
}

// TestEpisodesInLogAfterClockStep: while a clock that was set back has not caught up, episodes are logged as before.
func TestEpisodesInLogAfterClockStep(t *testing.T) {
	e := episodes{logged: map[episode.Queue]loggedEpisode{}}
	for i, c := range []struct {
		second int64
		want   zerolog.Level
	}{{7200, zerolog.InfoLevel}, {0, zerolog.InfoLevel}, {59, zerolog.DebugLevel}, {60, zerolog.InfoLevel}} {
		one := episode.Episode{ID: uint64(i + 1), Start: c.second * 1e9}
		if level := e.level(&one, episode.Began); level != c.want {
			t.Errorf("an episode at %d s is logged at %v, want %v", c.second, level, c.want)
		}
	}
}

// TestEpisodeLoses: notifications that the worker overwrote before they were read are counted as such: else the episode would have fewer than were sent.
func TestEpisodeLoses(t *testing.T) {
	p := testkit.DefaultPolicy(2)
	p.Ports[1].Thresholds = congestion.Thresholds{KMin: 0, KMax: 1}
	p.Who = &congestion.Policy{Enabled: [packet.SentNotifications]bool{packet.FastCNP: true}, HasIPv6: true,
		Endpoints: prefix.New([]prefix.Entry[congestion.Preference]{{Prefix: netip.MustParsePrefix("fd00:18::/32"), Value: congestion.Prefer(packet.FastCNP)}})}
	p.Build = cnpgen.Gateway{IPv6: packet.AddrFrom(netip.MustParseAddr("2001:db8::1")), HasIPv6: true, Code: packet.DefaultCodePoints}
	r := testkit.New(t, testkit.Setup{Policy: p, Forget: true})
	classes := []string{"data"}
	c := &config.Config{Ports: []config.Port{{Name: "dc", PortConfig: dataplane.PortConfig{Peer: 1}, ClassNames: classes}, {Name: "wan", ClassNames: classes}}}
	g := &gateway{started: c, plane: r.Plane, options: Options{Log: zerolog.Nop()}}
	g.running.Store(c)
	g.episodes = newEpisodes(g)
	const many, keeps = 1500, 1024
	for range many {
		r.Inject(t, 0, testkit.RoCE{Src: "fd00:18::1", Dst: "fd00:19::1", DestQP: 7, Size: 1000}.Frame())
		r.Drain()
	}
	g.episodes.look(time.Unix(0, r.Now))
	all := g.Episodes()
	if n := r.Plane.Worker(0).Notifications().Recorded(); n != many || len(all) != 1 || all[0].Notifications["fast-cnp"] != keeps || all[0].Lost != many-keeps {
		t.Errorf("%d notifications: %+v", n, all)
	}
	r.Close(t)
}
