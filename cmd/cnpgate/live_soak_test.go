//go:build live && soak && !nodpdk

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

// TestLiveSoak: a gateway forwards new and old RDMA flows in both directions for SOAK_HOURS, with requests to the API, reloads and links that fail. Each minute, all frames
// are accounted for. In the end, memory, descriptors and goroutines don't grow.
func TestLiveSoak(t *testing.T) {
	hours, err := strconv.ParseFloat(os.Getenv("SOAK_HOURS"), 64)
	if err != nil || hours <= 0 {
		t.Fatalf("SOAK_HOURS is %q; run scripts/soak", os.Getenv("SOAK_HOURS"))
	}
	program := liveBinary(t)
	enterNamespace(t)
	ip(t, "link set lo up")
	port := freePort(t)
	p := startWith(t, program, strings.Replace(liveConfig, "management: {", fmt.Sprintf("management: {metrics: \"127.0.0.1:%d\", ", port), 1))
	stop, sending := make(chan struct{}), sync.WaitGroup{}
	for side, f := range map[string]testkit.RoCE{
		"a1": {Src: "10.0.0.1", Dst: "10.9.0.1", Size: 1000, ECN: packet.ECT0}, "b1": {Src: "10.9.0.1", Dst: "10.0.0.1", Size: 100, ECN: packet.ECT0},
	} {
		socket := newHost(t, side).send
		sending.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for n := uint32(0); ; n++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				f.DestQP = 2 + n%64 + n/6000%1024*64 // 64 flows, and others each minute
				frame := f.Frame()
				for range 16 {
					_ = unix.Send(socket, frame, 0) // the link fails at times
				}
			}
		})
	}
	client := api.NewClient(p.dir + "/api.sock")
	step := min(time.Minute, time.Duration(hours*float64(time.Hour))/40)
	measured := make([][]float64, len(watchedResources))
	var frames uint64
	end := time.Now().Add(time.Duration(hours * float64(time.Hour)))
	steps := 0
	for tick := time.NewTicker(step); time.Now().Before(end); steps++ {
		<-tick.C
		if steps%5 == 4 {
			if _, err := client.Reload(t.Context(), api.ReloadRequest{}); err != nil {
				t.Errorf("step %d: %v", steps, err)
			}
		}
		if steps%10 == 9 {
			ip(t, "link set b1 down")
			ip(t, "link set b1 up")
		}
		// The ports are read one after the other while frames pass: between two bursts the sums agree.
		err := errors.New("not read")
		for reads := 0; err != nil && reads < 100; reads++ {
			var c *report.Counters
			if c, err = api.Get[report.Counters](t.Context(), client, api.CountersPath); err == nil {
				frames, err = c.Counters["received_packets_total"].Value, c.Counters.Check()
			}
		}
		if _, failed := api.Get[api.FlowsBody](t.Context(), client, api.FlowsPath); err != nil || failed != nil {
			t.Fatalf("step %d: %v, %v", steps, err, failed)
		}
		metrics, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)) // on this thread, which is in the namespace
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(metrics, "GET /metrics HTTP/1.0\r\nHost: gateway\r\n\r\n")
		text, err := io.ReadAll(metrics)
		_ = metrics.Close()
		for i, r := range watchedResources {
			m := regexp.MustCompile(`(?m)^` + r.metric + ` (\S+)$`).FindSubmatch(text)
			if m == nil {
				t.Fatalf("no %s (%v)", r.metric, err)
			}
			v, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				t.Fatal(err)
			}
			measured[i] = append(measured[i], v/r.scale)
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
	p.stop() // refuses frames that are unaccounted for
	t.Logf("soak: %.2f h, %d frames, accounted for %d times%s", hours, frames, steps, &line)
}
