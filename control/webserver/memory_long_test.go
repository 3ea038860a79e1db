//go:build long

package webserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// fast is a source whose time runs as fast as the page reads: for each number of hours received it sends what a gateway sends in them.
type fast struct {
	gateway *fake
	hours   chan int
	looks   int
	played  int // hours
}

func (s *fast) run(ctx context.Context) { <-ctx.Done() }

func (*fast) entry() string { return "" } // the live view

func (s *fast) routes(get func(string, http.HandlerFunc)) {
	get("/source", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"live": true, "tables": api.PageTables()})
	})
	get(api.FlowsPath, func(w http.ResponseWriter, r *http.Request) { answer(w, http.StatusOK, s.gateway.flowsOf(r)) })
	get("/events", s.events)
}

// events is called for one page at a time.
func (s *fast) events(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_, _ = c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})
	beat := time.NewTicker(lookEvery)
	defer beat.Stop()
	for {
		s.send(w, "version", map[string]any{"gateway": "fast", "version": fmt.Sprintf("hour %d", s.played), "start_time": "2026-05-04T10:00:00Z"})
		if c.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			s.look(w)
		case n := <-s.hours:
			for range n * int(time.Hour/lookEvery) {
				s.look(w)
			}
			s.played += n
		}
	}
}

// look sends what a gateway sends at a look: counters, and 20 notifications a second; an episode each 30 s, senders each 2 s.
func (s *fast) look(w http.ResponseWriter) {
	s.looks++
	s.send(w, "counters", Brief(s.gateway.counters()))
	if s.looks%2 == 0 {
		s.send(w, "notifications", s.gateway.notifications(query("")))
	}
	if s.looks%4 == 0 {
		s.send(w, "senders", s.gateway.senders(query("limit=50")))
	}
	if s.looks%60 == 0 {
		s.gateway.congest(1)
		s.send(w, "episodes", api.Episodes{Episodes: s.gateway.episodes[len(s.gateway.episodes)-1:]})
	}
}

func (s *fast) send(w http.ResponseWriter, kind string, value any) {
	text, err := json.Marshal(value)
	if err == nil {
		_, _ = fmt.Fprintf(w, "event: %s\nid: %d\ndata: %s\n\n", kind, s.gateway.now().UnixMilli(), text)
	}
}

// TestDay: after the first hour, 23 further hours of events make neither the page's memory nor its document grow.
func TestDay(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	s := &fast{gateway: newFake(t, 4, 1000), hours: make(chan int)}
	page := serve(t, Local("127.0.0.1:0"), s, os.DirFS(browser.Build(t, root)))
	p := browser.Open(t, page.URL(), browser.View{Width: 1280, Height: 900})
	for _, tab := range []string{"senders", "notifications", "episodes", "ports"} { // each is made once
		browser.Eval[string](p, "location.hash = '"+tab+"'")
		p.Wait("document.querySelector('tbody tr') !== null || document.querySelector('.empty') !== null")
	}
	played := 0
	play := func() {
		s.hours <- 1
		played++
		p.Wait(fmt.Sprintf("document.querySelector('.status').textContent.includes('hour %d')", played))
	}
	play()
	first, elements := size(p)
	for played < 24 {
		play()
	}
	last, more := size(p)
	t.Logf("after 1 h %.1f MB and %d elements, after 24 h %.1f MB and %d elements", first/1e6, elements, last/1e6, more)
	if last > 1.2*first+2e6 || more > elements+500 {
		t.Errorf("the page grows from %.1f to %.1f MB, and from %d to %d elements", first/1e6, last/1e6, elements, more)
	}
	p.NoErrors()
}

// size is the page's memory after collecting garbage, bytes, and its number of elements.
func size(p *browser.Page) (bytes float64, elements int) {
	used := browser.Run(p, func(ctx context.Context, _ *chromedp.Target) (runtime.GetHeapUsageResult, error) {
		for range 3 {
			if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				return runtime.GetHeapUsageResult{}, err
			}
		}
		return chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
	})
	return used.UsedSize, browser.Eval[int](p, "document.querySelectorAll('*').length")
}

// query is a request with a query alone.
func query(text string) *http.Request { return &http.Request{URL: &url.URL{RawQuery: text}} }
