//go:build live && long && soak && !nodpdk && !nofleet

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// watchedResources are metrics that may not grow, with the growth in an hour that is none: a part of the mean, or a number.
var watchedResources = []struct {
	metric, name, unit string
	scale              float64 // of a unit
	part, number       float64
}{
	{"process_resident_memory_bytes", "RSS", "MB", 1e6, 0.02, 0},
	{"process_open_fds", "descriptors", "", 1, 0, 1},
	{"go_goroutines", "goroutines", "", 1, 0, 1},
}

// In the first minutes, warm, buffers and tables are used for the first time: memory grows then. Growth is a failure in a run of judgedHours or more.
const (
	warm        = 40 * time.Minute
	judgedHours = 2
)

// slope is the growth of values, measured at equal intervals of so many hours, in an hour, and half of its 95 % interval (least squares).
func slope(values []float64, hours float64) (each, around float64) {
	n := float64(len(values))
	var x, y, xx, xy float64
	for i, v := range values {
		at := float64(i) * hours
		x, y, xx, xy = x+at, y+v, xx+at*at, xy+at*v
	}
	spread := xx - x*x/n
	each = (xy - x*y/n) / spread
	rest := 0.0
	for i, v := range values {
		d := v - y/n - each*(float64(i)*hours-x/n)
		rest += d * d
	}
	return each, 1.96 * math.Sqrt(rest/(n-2)/spread)
}

// soakStep is the longest time between two readings: a run has at least 40.
const soakStep = time.Minute

// soaked is a gateway of a soak.
type soaked struct {
	*process
	client  *api.Client
	metrics int            // the port
	page    net.Conn       // a client of the page
	shown   *atomic.Uint64 // bytes that this client got
	frames  uint64
}

// opens connects to a service of the gateway, on the thread, which is in the namespace, and asks for a path.
func (g *soaked) opens(port int, request string) net.Conn {
	g.t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		_, err = fmt.Fprintf(c, "%s\r\nHost: 127.0.0.1:%d\r\n\r\n", request, port)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

// looks opens the page's events, in place of those that were open.
func (g *soaked) looks(port int) {
	if g.page != nil {
		_ = g.page.Close()
	}
	c, shown := g.opens(port, "GET /events HTTP/1.1"), new(atomic.Uint64)
	g.page, g.shown = c, shown
	go func() {
		for b := make([]byte, 64<<10); ; {
			n, err := c.Read(b)
			shown.Add(uint64(n))
			if err != nil {
				return
			}
		}
	}()
}

// accounts fails if the gateway doesn't account for all frames. Its ports are read one after the other while frames pass: between two bursts the sums agree.
func (g *soaked) accounts() {
	g.t.Helper()
	err := errors.New("not read")
	for reads := 0; err != nil && reads < 200; reads++ {
		var c *report.Counters
		if c, err = api.Get[report.Counters](g.t.Context(), g.client, api.CountersPath); err == nil {
			g.frames, err = c.Counters["received_packets_total"].Value, c.Counters.Check()
		} else {
			time.Sleep(20 * time.Millisecond) // the next gateway begins to listen
		}
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// measure reads the gateway's metrics of watchedResources.
func (g *soaked) measure() (values []float64) {
	g.t.Helper()
	c := g.opens(g.metrics, "GET /metrics HTTP/1.0")
	text, err := io.ReadAll(c)
	_ = c.Close()
	for _, r := range watchedResources {
		m := regexp.MustCompile(`(?m)^` + r.metric + ` (\S+)$`).FindSubmatch(text)
		if m == nil {
			g.t.Fatalf("no %s (%v)", r.metric, err)
		}
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			g.t.Fatal(err)
		}
		values = append(values, v/r.scale)
	}
	return values
}

// sendFlows sends frames of 64 flows, and of others each minute, by a host until stop is closed.
func sendFlows(h *host, f testkit.RoCE, stop <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := uint32(0); ; n++ {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		f.DestQP = 2 + n%64 + n/6000%1024*64
		frame := f.Frame()
		for range 4 {
			_ = unix.Send(h.send, frame, 0) // the link fails at times
		}
	}
}

// TestLiveSoak: a fleet of two gateways forwards old and new flows in both directions for SOAK_HOURS, with clients of the API, the metrics and the page, reloads, and links that
// fail. The first has a standby, which takes over each quarter of an hour. Behind the second, an endpoint sends more than its WAN port does. Each minute, all frames are
// accounted for. In the end, memory, descriptors and goroutines of the second don't grow.
func TestLiveSoak(t *testing.T) {
	hours, err := strconv.ParseFloat(os.Getenv("SOAK_HOURS"), 64)
	if err != nil || hours <= 0 {
		t.Fatalf("SOAK_HOURS is %q; run scripts/soak", os.Getenv("SOAK_HOURS"))
	}
	program := liveBinary(t)
	enterNamespace(t)
	makeWire(t, "c", "d")
	ip(t, "link set lo up")
	texts := liveFleet(t)
	texts[1] = strings.Replace(texts[1], "peer: fabric, rate: 10Gbps", "peer: fabric, rate: 10Mbps", 1) +
		"endpoints: [{prefix: 10.8.0.0/16, accepts: [standard-cnp]}]\nnotifications: {standard_cnp: {enabled: true}}\n"
	var gateways [2]*soaked
	var pages [2]int
	for i, text := range texts {
		metrics := freePort(t)
		pages[i] = freePort(t)
		p := startWith(t, program, strings.Replace(text, "management: {", fmt.Sprintf(`management: {metrics: "127.0.0.1:%d", web: {listen: "127.0.0.1:%d"}, `, metrics, pages[i]), 1))
		gateways[i] = &soaked{process: p, client: api.NewClient(p.dir + "/api.sock"), metrics: metrics}
	}
	first, second := gateways[0], gateways[1]
	standby := standByFor(t, program, first.process)
	receiver := startEndpoint(t, program, "endpoint receive -i d1 --address 10.8.0.1 --mac 02:00:00:18:00:01 --no-cnp --mtu 1024 --rtt 2ms --progress")
	sender := startEndpoint(t, program, "endpoint send -i c1 --address 10.8.0.2 --mac 02:00:00:18:00:02 --peer 10.8.0.1 --peer-mac 02:00:00:18:00:01 --mtu 1024 --rtt 2ms --trust 192.0.2.2 --rate 20Mbps --timeout 2s --progress")
	defer func() { _, _ = receiver.cmd.Process.Kill(), sender.cmd.Process.Kill() }()

	stop, sending := make(chan struct{}), sync.WaitGroup{}
	there := testkit.RoCE{Src: "10.0.0.1", Dst: "10.9.0.1", Size: 1000, ECN: packet.ECT0}
	back := testkit.RoCE{Src: "10.9.0.1", Dst: "10.0.0.1", Size: 100, ECN: packet.ECT0}
	for side, f := range map[string]testkit.RoCE{"a1": there, "b1": back, "c1": there, "d1": back} {
		h := newHost(t, side)
		sending.Go(func() { sendFlows(h, f, stop) })
	}
	step := min(soakStep, time.Duration(hours*float64(time.Hour))/40)
	measured := make([][]float64, len(watchedResources))
	end := time.Now().Add(time.Duration(hours * float64(time.Hour)))
	var before uint64 // frames of the first gateway's predecessors
	steps, takeovers := 0, 0
	for tick := time.NewTicker(step); time.Now().Before(end); steps++ {
		<-tick.C
		if steps%15 == 14 {
			before += first.frames
			first.stop()
			standby.says(`"message":"The page is at this address."`, 1)
			first.process, takeovers = standby, takeovers+1
			standby = standByFor(t, program, first.process)
		}
		for i, g := range gateways {
			if steps%5 == 4 {
				if _, err := g.client.Reload(t.Context(), api.ReloadRequest{}); err != nil {
					t.Errorf("step %d: %v", steps, err)
				}
			}
			if steps%5 != 0 && steps%15 != 14 && g.shown.Load() == 0 {
				t.Errorf("step %d: the page got nothing", steps)
			}
			if steps%5 == 0 || steps%15 == 14 {
				g.looks(pages[i])
			}
			g.shown.Store(0)
			g.accounts()
			if _, err := api.Get[api.FlowsBody](t.Context(), g.client, api.FlowsPath); err != nil {
				t.Fatalf("step %d: %v", steps, err)
			}
		}
		if steps%10 == 9 {
			for _, wire := range []string{"b1", "d1"} {
				ip(t, "link set "+wire+" down")
				ip(t, "link set "+wire+" up")
			}
		}
		for i, v := range second.measure() {
			measured[i] = append(measured[i], v)
		}
	}
	close(stop)
	sending.Wait()
	var line strings.Builder
	for i, r := range watchedResources {
		values := measured[i][min(int(warm/step), len(measured[i])/2):]
		each, around := slope(values, step.Hours())
		mean := 0.0
		for _, v := range values {
			mean += v / float64(len(values))
		}
		fmt.Fprintf(&line, ", %s %.1f%s %+.2f±%.2f/h", r.name, mean, r.unit, each, around)
		if hours >= judgedHours && each-around > r.part*mean+r.number {
			t.Errorf("%s grow by %.2f±%.2f %s an hour: %v", r.name, each, around, r.unit, values)
		}
	}
	counters, err := api.Get[report.Counters](t.Context(), second.client, api.CountersPath)
	if err != nil {
		t.Fatal(err)
	}
	notified := counters.Counters["notifications_sent_total"].Sum()
	if notified == 0 {
		t.Errorf("the sender got no notification: %+v", counters.Counters)
	}
	for _, p := range []*process{second.process, first.process, standby} {
		p.stop() // refuses frames that are unaccounted for
	}
	t.Logf("soak: %.2f h, %d frames, accounted for %d times, %d takeovers, %d notifications%s", hours, before+first.frames+second.frames, steps, takeovers, notified, &line)
}
