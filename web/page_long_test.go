//go:build long

package web

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/browser"
)

func init() {
	views["4k-dark"] = browser.View{Width: 3840, Height: 2160, Dark: true, Still: true}
	smooth["many-hosts"] = 12
	oneIn = 1
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
