package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/telemetry"
)

const dataSize = 4000 // bytes of a frame

// data is the sender's i-th packet.
func data(i int) []byte {
	f := testkit.RoCE{Src: "fd00:18::2", Dst: "fd00:18::1", ECN: 2, DestQP: receiverFirstQP, PSN: uint32(i), Size: dataSize}.Frame()
	copy(f[6:], senderMAC[:])
	return f
}

func at(ms int, frames ...[]byte) (all []captured) {
	for i, f := range frames {
		all = append(all, captured{int64(ms+i) * 1e6, f})
	}
	return all
}

// TestConfiguration: the gateway accepts what the demo writes, and notifies only where the run is to.
func TestConfiguration(t *testing.T) {
	for _, format := range append([]string{off}, formats...) {
		c, err := config.Parse("demo.yaml", []byte(configuration(format, 0)))
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Warnings) != 0 || len(c.Endpoints) == 0 != (format == off) {
			t.Errorf("%s: warnings %v, endpoints %v", format, c.Warnings, c.Endpoints)
		}
	}
}

func TestLoad(t *testing.T) {
	l := newLoad(4)
	if got, want := l.String(), "50000000bps:800ms,300000000bps:2.4s,50000000bps:800ms"; got != want {
		t.Errorf("the load is %s, want %s", got, want)
	}
	for ms, want := range map[int]string{0: "before", 799: "before", 800: "during", 3199: "during", 3200: "after", 4000: ""} {
		if got := l.phaseAt(time.Duration(ms) * time.Millisecond); got != want {
			t.Errorf("after %d ms the phase is %q, want %q", ms, got, want)
		}
	}
}

// TestStream: a frame that was changed, reordered or made up is distinguished from one that was dropped or marked.
func TestStream(t *testing.T) {
	a, b, c, d := data(1), data(2), data(3), data(4)
	marked := func(f []byte) []byte {
		f = slices.Clone(f)
		testkit.SetECN(f, packet.EthernetLen, packet.CE)
		return f
	}
	notECT := slices.Clone(c)
	testkit.SetECN(notECT, packet.EthernetLen, packet.NotECT)
	changed := slices.Clone(b)
	changed[len(changed)-9] ^= 1
	wrong := func(f []byte) []byte {
		f = slices.Clone(f)
		f[len(f)-1] ^= 1
		return f
	}
	for _, c := range []struct {
		name          string
		sent, arrived [][]byte
		strangers, ce int
		notECT, wrong int
		lost          int
	}{
		{"as sent", [][]byte{a, b, c, d}, [][]byte{a, b, c, d}, 0, 0, 0, 0, 0},
		{"some dropped", [][]byte{a, b, c, d}, [][]byte{b, d}, 0, 0, 0, 0, 2},
		{"sent again", [][]byte{a, b, a, b}, [][]byte{a, a, b}, 0, 0, 0, 0, 1},
		{"marked", [][]byte{a, b, c, d}, [][]byte{marked(a), marked(b), c, d}, 0, 2, 0, 0, 0},
		{"marked though not ECN-capable", [][]byte{notECT}, [][]byte{marked(notECT)}, 0, 1, 1, 0, 0},
		{"a byte changed", [][]byte{a, b, c, d}, [][]byte{a, changed, c, d}, 1, 0, 0, 0, 1},
		{"out of order", [][]byte{a, b}, [][]byte{b, a}, 1, 0, 0, 0, 1},
		{"twice", [][]byte{a}, [][]byte{a, a}, 1, 0, 0, 0, 0},
		{"a wrong ICRC", [][]byte{wrong(a)}, [][]byte{wrong(a)}, 0, 0, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStream(at(0, c.sent...), at(0, c.arrived...), 0)
			got := []int{s.strangers, s.ceMarked, s.ceOnNotECT, s.wrongICRC, s.lost(0, time.Hour)}
			if want := []int{c.strangers, c.ce, c.notECT, c.wrong, c.lost}; !slices.Equal(got, want) {
				t.Errorf("strangers, CE, CE on Not-ECT, wrong ICRC, lost: %v, want %v", got, want)
			}
		})
	}
}

// TestRates: only what is in sequence counts as goodput, and the port's rate goes from frame to frame.
func TestRates(t *testing.T) {
	sent := at(0, data(1), data(2), data(3), data(2), data(3))
	s := newStream(sent, at(10, data(1), data(3), data(2), data(3)), 0)
	line := float64(8*(dataSize+endpoint.EthernetOverhead)) * 1000 // bit/s, of a frame each ms
	payload := float64(8*(dataSize-packet.EthernetLen-packet.IPv6Len-packet.UDPLen-packet.BTHLen-packet.ICRCLen)) * 1000
	ms := time.Millisecond
	if rate, goodput := s.portRate(0, time.Second); rate != line || goodput != payload*2/3 {
		t.Errorf("%g bit/s and a goodput of %g, want %g and %g", rate, goodput, line, payload*2/3)
	}
	if in, out := s.rates(0, 10*ms); in != line/2 || out != 0 {
		t.Errorf("%g bit/s sent and %g arrived, want %g and 0", in, out, line/2)
	}
	if in, out := s.rates(10*ms, 12*ms); in != 0 || out != line {
		t.Errorf("%g bit/s sent and %g arrived, want 0 and %g", in, out, line)
	}
}

// good is a run that passes all checks.
func good(name string) *run {
	frames := at(0)
	l := newLoad(4)
	from, to := l.overload()
	for us := from.Microseconds(); us < to.Microseconds(); us += 322 {
		frames = append(frames, captured{us * 1000, data(len(frames))})
	}
	marked := slices.Clone(frames)
	marked[0].data = slices.Clone(marked[0].data)
	testkit.SetECN(marked[0].data, packet.EthernetLen, packet.CE)
	lost := []captured{}
	dropped, peak := uint64(0), uint64(capacity/5)
	if name == off {
		dropped, peak = 100, capacity
		for i := range int(dropped) {
			lost = append(lost, captured{int64(to), data(i)})
		}
	}
	n := uint64(len(frames))
	r := &run{
		name: name, data: newStream(append(frames, lost...), marked, 0), answers: newStream(nil, nil, 0),
		wan: &report.Port{Name: "wan", WatermarkBytes: peak, Counters: telemetry.Values{}}, fabric: &report.Port{Counters: telemetry.Values{}},
		gateway: report.Report{Counters: telemetry.Values{}},
	}
	r.wan.Counters.Add(telemetry.DroppedPackets, "queue-full-bytes", dropped)
	r.gateway.Counters.Add(telemetry.ReceivedPackets, "", n+dropped)
	r.gateway.Counters.Add(telemetry.ForwardedPackets, "", n)
	r.gateway.Counters.Add(telemetry.DroppedPackets, "queue-full-bytes", dropped)
	r.gateway.Counters.Add(telemetry.ECNMarkedPackets, "", 1)
	if name != off {
		r.notifications = []notification{readNotification(captured{int64(from), fastCNP(data(1))})}
		r.name = "fast-cnp"
		r.fabric.Counters.Add(telemetry.NotificationsSent, "fast-cnp", 1)
		r.endpoint = runner.Report{Notifications: runner.Notifications{Accepted: map[string]uint64{"slowed-down": 1}}}
	}
	return r
}

func fastCNP(about []byte) []byte {
	var p packet.Parsed
	packet.Parse(about, uint32(len(about)), &p)
	gw := &cnpgen.Gateway{IPv6: gateway6, HasIPv6: true, Code: packet.DefaultCodePoints, ICRCExtensionHeaders: true}
	out := make([]byte, 256)
	target, _ := cnpgen.TargetOf(about, &p)
	n, _ := cnpgen.FastCNP(out, &target, gw, packet.IOAMTrace{})
	return out[:n]
}

// TestJudge: each check passes if all is right, and fails if its subject is not.
func TestJudge(t *testing.T) {
	l := newLoad(4)
	renotified := func(change func(f []byte) []byte) func(without, with *run) {
		return func(_, with *run) {
			with.notifications[0] = readNotification(captured{0, change(fastCNP(data(1)))})
		}
	}
	otherQP := fastCNP(testkit.RoCE{Src: "fd00:18::2", Dst: "fd00:18::1", ECN: 2, DestQP: 9}.Frame())
	for _, c := range []struct {
		name   string
		spoil  func(without, with *run)
		failed []string // beginnings of the checks
	}{
		{"as it should be", func(*run, *run) {}, nil},
		{"a frame wasn't received", func(w, _ *run) { w.data.frames = append(w.data.frames, fate{}) }, []string{"every frame sent"}},
		{"an answer didn't arrive", func(_, w *run) { w.data.arrived-- }, []string{"every frame the gateway"}},
		{"a frame was changed", func(_, w *run) { w.answers.strangers = 1 }, []string{"forwarded as sent"}},
		{"a mark isn't in the report", func(_, w *run) { w.data.ceMarked = 2 }, []string{"CE on"}},
		{"Not-ECT was marked", func(_, w *run) { w.data.ceOnNotECT = 1 }, []string{"CE on"}},
		{"a frame isn't accounted for", func(w, _ *run) { w.gateway.Counters.Add(telemetry.ConsumedPackets, "x", 1) }, []string{"received ="}},
		{"the queue stays short", func(w, _ *run) { w.wan.WatermarkBytes = capacity / 2 }, []string{"without notifications", "helped: the peak"}},
		{"a notification isn't in the report", func(_, w *run) { w.fabric.Counters = telemetry.Values{} }, []string{"notifications arrived"}},
		{"a notification went astray", func(_, w *run) { w.leaked = 1 }, []string{"each has"}},
		{"to another MAC address", renotified(func(f []byte) []byte { f[5] ^= 1; return f }), []string{"each has"}},
		{"about another QP", renotified(func([]byte) []byte { return otherQP }), []string{"each has"}},
		{"the sender refuses one", func(_, w *run) { w.endpoint.Notifications.Refused = map[string]uint64{"disabled": 1} }, []string{"the sender obeys"}},
		{"much is lost", func(_, w *run) { w.wan.Counters.Add(telemetry.DroppedPackets, "queue-full-bytes", 11) }, []string{"helped: at most"}},
		{"some is lost late", func(_, w *run) { w.data.frames[len(w.data.frames)-1].lost = true }, []string{"helped: none"}},
		{"the queue is long", func(_, w *run) { w.wan.WatermarkBytes++ }, []string{"helped: the peak"}},
		{"the WAN isn't used", func(_, w *run) {
			for i := range w.data.frames {
				w.data.frames[i].payload /= 2
			}
		}, []string{"helped: the goodput"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			without, with := good(off), good("fast-cnp")
			c.spoil(without, with)
			var failed []string
			for _, v := range judge([]*run{without, with}, l) {
				if !v.ok {
					failed = append(failed, v.what+": "+v.got)
				}
			}
			same := len(failed) == len(c.failed)
			for i := range failed {
				same = same && strings.HasPrefix(failed[i], c.failed[i])
			}
			if !same {
				t.Errorf("failed: %q, want %q", failed, c.failed)
			}
		})
	}
	slow := good(off)
	for i := range slow.data.frames {
		slow.data.frames[i].bytes /= 2
	}
	if v := congested(l)[1].of([]*run{slow}); v.ok {
		t.Errorf("half of the rate passes: %s", v.got)
	}
}

// TestShow: the table has a line for each interval, with the queue of its time; notifications are decoded; a plot is drawn.
func TestShow(t *testing.T) {
	l, r := newLoad(4), good("fast-cnp")
	r.gateway.BeganMS = 500
	r.start = 1e9
	for i := range 20 { // one each 200 ms, beginning with the first frame
		r.gateway.Timeline = append(r.gateway.Timeline, report.Depth{MS: int64(500 + 200*i), Port: "wan", DepthBytes: uint64(1000 * i)},
			report.Depth{MS: int64(500 + 200*i), Port: "fabric", DepthBytes: 1e9})
	}
	r.notifications[0].at += r.start
	var b bytes.Buffer
	showTable(&b, []*run{r}, l)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2+intervals {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), 2+intervals, b.String())
	}
	for i, want := range map[int]string{0: "0 before 0 0 1 0 0", 2: "800 during 100 100 5 0 1", 9: "3600 after 0 0 19 0 0"} {
		if got := strings.Join(strings.Fields(strings.ReplaceAll(lines[2+i], "|", "")), " "); got != want {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
	b.Reset()
	showNotifications(&b, []*run{r, {name: off}})
	for _, want := range []string{"fast-cnp: 1. The first, 800.0 ms", "congested dst      fd00:18::1", "off: 0\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	svg := filepath.Join(t.TempDir(), "demo.svg")
	if err := draw(svg, []*run{r}, l); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(svg); err != nil || !strings.Contains(string(text), "fast-cnp") {
		t.Errorf("the plot doesn't name the run: %v", err)
	}
}

// TestReadme: the README's sample has the table's headings, and only checks that the demo makes, whatever their figures.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	figures := regexp.MustCompile(`[0-9.]+`)
	l, runs := newLoad(4), []*run{good(off), good("fast-cnp")}
	shown := regexp.MustCompile(`(?m)^  PASS  .*`).FindAllString(string(readme), -1)
	for _, line := range shown {
		if !slices.ContainsFunc(judge(runs, l), func(v verdict) bool {
			return strings.HasPrefix(figures.ReplaceAllString(line, "#"), figures.ReplaceAllString("  PASS  "+v.what+": ", "#"))
		}) {
			t.Errorf("README.md has %q, which the demo doesn't check", line)
		}
	}
	if len(shown) < 3 {
		t.Errorf("README.md shows %d checks, expected 3", len(shown))
	}
	var table strings.Builder
	showTable(&table, runs, l)
	lines := strings.Split(table.String(), "\n")
	_, row, _ := strings.Cut(lines[1], "|")
	for _, want := range []string{"HOSTS AND WAN QUEUE, " + l.explain(), "|" + row} {
		if text := figures.ReplaceAllString(string(readme), "#"); !strings.Contains(text, figures.ReplaceAllString(want, "#")) {
			t.Errorf("README.md has no %q", want)
		}
	}
}

// TestConclude: a check that failed is inconclusive if something kept the runs off their cores, and the demo says what.
func TestConclude(t *testing.T) {
	const why = "other work had 80 % of the machine\n"
	for _, c := range []struct {
		good bool
		busy string
		want error
	}{{true, why, nil}, {false, why, errBusy}, {false, "", errFailed}} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, coresFile), []byte(c.busy), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		if err := conclude(&said, dir, c.good); !errors.Is(err, c.want) || strings.Contains(said.String(), why) != errors.Is(c.want, errBusy) && c.want != nil {
			t.Errorf("%+v: %v\n%s", c, err, &said)
		}
	}
}

// TestReadRunsMissing: what is missing is named.
func TestReadRunsMissing(t *testing.T) {
	_, err := readRuns(t.TempDir())
	if err == nil || !strings.Contains(fmt.Sprint(err), filepath.Join(off, "")) {
		t.Errorf("the error is %v", err)
	}
}
