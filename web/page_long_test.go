//go:build long

package web

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

var views = map[string]browser.View{
	"laptop-light": laptop,
	"phone-dark":   {Width: 360, Height: 740, Dark: true, Still: true},
	"4k-dark":      {Width: 3840, Height: 2160, Dark: true, Still: true},
}

// TestPictures: the page looks as it did, small and large, light and dark; with everything open, it fits each screen.
func TestPictures(t *testing.T) {
	p := open(t, "index.html"+paused, laptop)
	p.Wait(shown)
	for name, v := range views {
		p.Look(v)
		if dir := os.Getenv("CNPGATE_PICTURES"); dir != "" { // for people to look at
			p.Save(filepath.Join(dir, name+".png"))
		}
		p.Screenshot("testdata/pictures/" + name + ".png")
	}
	browser.Eval[bool](p, `document.querySelectorAll("details").forEach((d) => d.open = true), true`)
	browser.Eval[bool](p, `document.getElementById("why-1").click(), true`)
	p.Wait(`document.querySelector("#detail table") && document.getElementById("gateways").textContent && document.getElementById("json").textContent`)
	p.Fits("playground", laptop)
	p.NoErrors()
}

// smooth has the least frames a second of scenarios.
var smooth = map[string]float64{"incast-10ms": 30, "many-hosts": 12}

// TestSmooth: the first picture comes within 2 s of loading; with 8 senders, both panes are drawn 30 times a second while the simulation goes on, and with 64
// the page can be used; nothing moves that doesn't have to.
func TestSmooth(t *testing.T) {
	browser.Build(t, "..") // not in each attempt
	if ontime.Again(t) {
		return
	}
	for scenario, fps := range smooth {
		t.Run(scenario, func(t *testing.T) {
			p := open(t, "index.html#scenario="+scenario, browser.View{Width: 1280, Height: 900})
			p.Wait(`performance.getEntriesByName("first picture").length > 0`)
			if at := browser.Eval[float64](p, `performance.getEntriesByName("first picture")[0].startTime`); at > 2000 {
				t.Errorf("the first picture comes after %.0f ms, expected at most 2000", at)
			}
			got := browser.Eval[struct {
				Frames, Steps, Shift float64
				Moved                []string
			}](p, `new Promise((done) => {
				let frames = 0, steps = 0, last = "", shift = 0;
				const moved = [], box = (r) => [r.x, r.y, r.width, r.height].map(Math.round).join(" ");
				new PerformanceObserver((l) => l.getEntries().forEach((e) => {
					shift += e.value;
					e.sources.forEach((s) => moved.push(s.node?.nodeName + "." + s.node?.className + ": " + box(s.previousRect) + " to " + box(s.currentRect)));
				})).observe({type: "layout-shift", buffered: true});
				const begin = performance.now();
				const frame = () => {
					frames++;
					if (document.body.dataset.now !== last) { steps++; last = document.body.dataset.now; }
					const passed = (performance.now() - begin) / 1000;
					if (passed < 2) requestAnimationFrame(frame); else done({Frames: frames / passed, Steps: steps / passed, Shift: shift, Moved: moved});
				};
				requestAnimationFrame(frame);
			})`)
			t.Logf("%.0f frames a second, %.0f of them with new figures; layout shift %.4f", got.Frames, got.Steps, got.Shift)
			if got.Frames < fps || got.Steps < fps/2 {
				t.Errorf("%.0f frames a second, %.0f with new figures; expected at least %.0f, and half of them with new figures", got.Frames, got.Steps, fps)
			}
			if got.Shift > 0.01 {
				t.Errorf("a layout shift of %.4f, expected none:\n%s", got.Shift, strings.Join(got.Moved, "\n"))
			}
			p.NoErrors()
		})
	}
}

// TestPauseThenAnother: another scenario, chosen while the page is paused, plays from its start, and so does a restart; a link to a start that is paused has a picture.
func TestPauseThenAnother(t *testing.T) {
	p := open(t, "index.html"+paused, laptop)
	p.Wait(shown)
	browser.Eval[bool](p, `(() => {
		const s = document.getElementById("scenario");
		s.value = "incast-40ms";
		s.onchange();
		return true;
	})()`)
	const playing = `document.body.dataset.paused === "false" && Number(document.body.dataset.now) > 0`
	p.Wait(`location.hash.includes("incast-40ms") && !location.hash.includes("pause") && ` + playing)
	browser.Eval[bool](p, `document.getElementById("play").click(), true`)
	p.Wait(shown)
	browser.Eval[bool](p, `document.getElementById("restart").click(), true`)
	p.Wait(playing)
	here := browser.Eval[string](p, "location.origin")
	p.Go("about:blank")
	p.Go(here + "/index.html#scenario=incast-1ms&pause=1")
	p.Wait(shown + ` && [...document.querySelector("canvas.picture").getContext("2d").getImageData(0, 0, 200, 200).data].some((v) => v > 0)`)
	p.NoErrors()
}

// TestSameAxes: the plots of both panes have the same axes, and begin at the same height.
func TestSameAxes(t *testing.T) {
	url, p := served(t), browser.Open(t, "about:blank", laptop)
	for _, width := range []int64{1440, 768} {
		p.Go("about:blank")
		p.Look(browser.View{Width: width, Height: 900, Still: true})
		p.Go(url + "index.html#scenario=incast-10ms&t=12000000&pause=1")
		p.Wait(shown)
		tops := browser.Eval[[][]float64](p, `[...document.querySelectorAll(".plots")].map((h) => [...h.querySelectorAll(".u-over")].map((e) => e.getBoundingClientRect().top))`)
		if len(tops) != 2 || len(tops[0]) != 4 || !slices.Equal(tops[0], tops[1]) {
			t.Errorf("%d pixels: the plots begin at %v", width, tops)
		}
		axes := browser.Eval[[][]string](p, `[...document.querySelectorAll(".plots")].map((h) => [...h.querySelectorAll(".plot-body canvas")].map((c) =>
			[...c.getContext("2d").getImageData(0, 0, 70, c.height).data].join()))`)
		if len(axes) != 2 || len(axes[0]) != 4 || !slices.Equal(axes[0], axes[1]) {
			t.Errorf("%d pixels: the axes of left and right differ", width)
		}
		first := browser.Eval[float64](p, `document.querySelector("canvas.picture").getBoundingClientRect().bottom + scrollY`)
		if width == 1440 && first > 900 {
			t.Errorf("the pictures end %.0f pixels from the top, expected above the fold", first)
		}
	}
}

// day is a link that an incast congests every half hour, for 24 hours.
func day() string {
	var b strings.Builder
	b.WriteString(`
name: day
length: 24h
topology:
  dumbbell:
    senders: 4
    receivers: 1
    rate: 100Mbps
    spans: [{rate: 100Mbps, delay: 5ms, gateway: west}]
gateways: {west: {}}
traffic:
`)
	for n := range 48 {
		fmt.Fprintf(&b, "  - incast: {from: 0-3, to: 4, bytes: 1MB, start: %dm}\n", 30*n)
	}
	return b.String()
}

// TestDay: over 24 simulated hours the page's memory does not grow: that of its scripts, and that of the simulator beyond its samples.
func TestDay(t *testing.T) {
	p := open(t, "index.html#scenario=day&pause=1&t=0&speed=1e15&yaml="+deflated(t, day()), laptop)
	p.Wait(`document.querySelector("#message.wrong") || ` + shown)
	if said := browser.Eval[string](p, `document.querySelector("#message.wrong")?.textContent ?? ""`); said != "" {
		t.Fatal(said)
	}
	// used is the memory after a collection, MB: scripts and nodes of the page.
	used := func() float64 {
		return browser.Eval[float64](p, `(async () => {
			let least = Infinity;
			for (let i = 0; i < 20; i++) {
				least = Math.min(least, performance.memory.usedJSHeapSize / 1e6);
				await new Promise((r) => setTimeout(r, 100));
			}
			return least;
		})()`)
	}
	browser.Eval[bool](p, `document.getElementById("play").click(), true`)
	var at []float64
	for hour := 6; hour < 24; hour += 6 {
		p.Wait(fmt.Sprintf(`Number(document.body.dataset.now) > %d * 3600e9`, hour))
		at = append(at, used())
	}
	p.Wait(`document.body.dataset.ended === "true"`)
	if end := browser.Eval[float64](p, `Number(document.body.dataset.now)`); end < 23.5*3600e9 {
		t.Errorf("the run ends after %.0f s", end/1e9)
	}
	at = append(at, used())
	nodes := browser.Eval[int](p, `document.querySelectorAll("*").length`)
	t.Logf("%.1f MB after 6, 12, 18 and 24 hours; %d elements", at, nodes)
	if last := at[len(at)-1]; last > at[0]*1.25+5 {
		t.Errorf("the page uses %.1f MB after 6 h and %.1f MB after 24 h", at[0], last)
	}
	if nodes > 5000 {
		t.Errorf("%d elements", nodes)
	}
	p.NoErrors()
}

// deflated is text as the address bar holds it.
func deflated(t *testing.T, text string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(b.Bytes())
}
