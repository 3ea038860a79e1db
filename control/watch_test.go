package control

import (
	"fmt"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestTimeline: a look keeps a sample of every port, and however long a run lasts, its whole time is covered by a bounded number of
// looks, evenly apart, oldest first.
func TestTimeline(t *testing.T) {
	for _, pairs := range []int{1, 3} {
		r := testkit.New(t, testkit.Setup{Pairs: pairs, Rate: 100_000})
		c := &config.Config{}
		for i := range 2 * pairs {
			c.Ports = append(c.Ports, config.Port{Name: fmt.Sprint("port", i), PortConfig: dataplane.PortConfig{Peer: i ^ 1}})
		}
		frame := testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: 7, Size: 500}.Frame()
		r.Inject(t, 0, frame, frame, frame) // of which one is sent at once
		r.Settle()
		g := &gateway{started: c, plane: r.Plane, begin: time.Unix(100, 0)}
		w := &watch{g: g, every: 1}
		now := g.begin
		for look := range 50_000 {
			now = now.Add(sampleStep)
			w.sample(now)
			checkTimeline(t, w, look, now)
			if t.Failed() {
				return
			}
		}
		if w.every < 8 {
			t.Errorf("still every %d looks", w.every)
		}
		r.Drain()
		r.Close(t)
	}
}

func checkTimeline(t *testing.T, w *watch, look int, now time.Time) {
	t.Helper()
	ports := len(w.g.started.Ports)
	if len(w.samples) >= maxSamples || len(w.samples)%ports != 0 {
		t.Fatalf("%d samples after %d looks", len(w.samples), look+1)
	}
	if look > 100 && look%97 != 0 && len(w.samples) > ports {
		return // the whole of it now and then
	}
	step := int64(w.every) * sampleStep.Milliseconds()
	for i, s := range w.samples {
		depth := uint64(0)
		if i%ports == 1 {
			depth = 1000
		}
		if s.Port != w.g.started.Ports[i%ports].Name || s.DepthBytes != depth {
			t.Fatalf("sample %d is %+v", i, s)
		}
		if want := step * int64(i/ports+1); s.MS != want {
			t.Fatalf("look %d, every %d: sample %d is of %d ms, expected %d", look, w.every, i, s.MS, want)
		}
	}
	if end := now.Sub(w.g.begin).Milliseconds(); len(w.samples) > 0 && end-w.samples[len(w.samples)-1].MS >= step {
		t.Fatalf("nothing for the last %d ms", end-w.samples[len(w.samples)-1].MS)
	}
}
