package webserver

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

func TestMain(m *testing.M) {
	status := m.Run()
	browser.Clean()
	os.Exit(status)
}

const root = "../.."

// tabs are the page's, and an expression that is true once a tab shows what it should.
var tabs = []struct{ name, shows string }{
	{"ports", `document.querySelectorAll('.plot canvas').length === 3 && document.querySelector('tbody').rows.length === 64 && /[1-9].*bps/.test(document.querySelector('tbody').rows[63].cells[2].textContent)`},
	{"senders", `document.querySelectorAll('tbody')[0].rows.length === 50 && document.querySelectorAll('tbody')[1].rows.length === 50`},
	{"episodes", `document.querySelectorAll('.timeline rect').length === 40`},
	{"notifications", `document.querySelector('tbody').rows.length > 10 && document.querySelector('.why').textContent.includes('70KB')`},
	{"pairing", `document.body.textContent.includes('the UDP source port') && document.body.textContent.includes('confirmed')`},
	{"rdma", `document.querySelectorAll('.verdict').length === 1 && document.body.textContent.includes('Packets are lost behind this point') && document.querySelector('.tables tbody').rows.length === 2`},
	{"health", `['no link since noon', 'p5 does not forward', 'send, and observe of p1'].every((text) => document.querySelector('main').textContent.includes(text))`},
	{"fleet", `["Fleet of dc-a", "gw-2", "silent", "9.00\u00a0s", "4,711", "connection refused", "signature: 7", "was full: 3"].every((text) => document.body.textContent.includes(text))`},
	{"reloads", `document.body.textContent.includes('ports[0].rate: missing') && document.querySelector('p.bad').checkVisibility() && document.querySelector('p.bad').textContent.includes('file differs')`},
	{"host=10.1.0.0", `document.querySelectorAll('.explanation').length === 1 && document.body.textContent.includes('10.1.0.0 now') === false && document.querySelectorAll('tbody tr').length > 20`},
}

// TestPage: every tab shows what the gateway says, with 64 ports and 100,000 flows, without an error of the browser or of axe-core.
func TestPage(t *testing.T) {
	browser.Build(t, root) // not in each attempt
	if ontime.Again(t) {
		return
	}
	f := newFake(t, 64, 100_000)
	f.congest(40)
	f.unhealthy["p5"], f.differs = "no link since noon", true
	f.rdma = diagnosed(t).Report
	page := serve(t, Local("127.0.0.1:0"), NewLive(api.NewClient(f.socket)), os.DirFS(browser.Build(t, root)))
	p := browser.Open(t, page.URL(), laptop)
	p.Wait(`document.querySelector('.tabs [aria-current]')?.textContent === 'Health'
		&& ['mode send, and observe of p1', 'p5 does not forward', 'the configuration file differs from what is in force.'].every((text) => document.querySelector('header .status').textContent.includes(text))`)
	for _, tab := range tabs {
		browser.Eval[string](p, "location.hash = '"+tab.name+"'")
		p.Wait(tab.shows)
		p.Fits("live-"+tab.name, laptop)
		if n := browser.Eval[int](p, "document.querySelectorAll('*').length"); n > 6000 {
			t.Errorf("%s: the page has %d elements", tab.name, n)
		}
	}
	p.NoErrors()
	f.stop()
	begin := time.Now()
	p.Wait(`document.querySelector('.status').classList.contains('bad')`)
	t.Logf("the page sees after %v that the gateway has gone", time.Since(begin))
	f.start()
	p.Wait(`!document.querySelector('.status').classList.contains('bad') && document.querySelector('.status').textContent.includes('connected')`)
	p.NoErrors("502 (Bad Gateway)") // the browser reports each request of the time without a gateway
}

// TestLiveTrace: of a running gateway's connection, the page shows the same plot as of a capture's, but only once it is asked for.
func TestLiveTrace(t *testing.T) {
	browser.Build(t, root) // not in each attempt
	if ontime.Again(t) {
		return
	}
	f, d := newFake(t, 2, 10), diagnosed(t)
	f.rdma = d.Report
	var asked atomic.Pointer[url.Values]
	f.trace = func(r *http.Request) any {
		q := r.URL.Query()
		if asked.Swap(&q) != nil { // the second time
			return map[string]any{"requester": 0, "points": []any{}}
		}
		trace, err := d.Trace(0, 0)
		if err != nil {
			t.Error(err)
		}
		return trace
	}
	page := serve(t, Local("127.0.0.1:0"), NewLive(api.NewClient(f.socket)), os.DirFS(browser.Build(t, root)))
	p := browser.Open(t, page.URL()+"#rdma", laptop)
	p.Wait(`document.querySelectorAll('.verdict').length === 1 && document.querySelector('.evidence [role=status]').textContent.startsWith('Choose a connection')`)
	if asked.Load() != nil || browser.Eval[bool](p, `document.querySelector('.sequence').checkVisibility()`) {
		t.Error("a connection is recorded although nobody asked for it")
	}
	p.Accessible()
	browser.Eval[string](p, `[...document.querySelectorAll('.verdict button')].at(-1).click(); ''`)
	p.Wait(`document.querySelector('.sequence:not(.stale) canvas')`)
	ends := d.Report.Connections[0].Ends
	want := url.Values{"source_ip": {ends[0].IP.String()}, "destination_ip": {ends[1].IP.String()}, "source_qp": {fmt.Sprint(ends[0].QP)}, "destination_qp": {fmt.Sprint(ends[1].QP)},
		"duration": {"2s"}}
	if got := *asked.Load(); got.Encode() != want.Encode() {
		t.Errorf("asked for %v, want %v", got, want)
	}
	p.Fits("live-rdma-trace", laptop)
	browser.Eval[string](p, `document.querySelector('.tables button.link').click(); ''`)
	p.Wait(`document.querySelector('.evidence [role=status]').textContent.startsWith('No packet of it')`)
	p.NoErrors()
}

// diagnosed is what is wrong with a small capture.
func diagnosed(t *testing.T) *replay.Diagnosis {
	t.Helper()
	capture, err := replay.Open(root+"/control/replay/testdata/cases/selrep_behind.pcap.zst", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = capture.Close() })
	d, err := replay.Diagnose(capture, replay.HealthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDiagnosis: the page shows the report that the server has, and a plot of each connection; a trace of what isn't there is refused.
func TestDiagnosis(t *testing.T) {
	browser.Build(t, root) // not in each attempt
	if ontime.Again(t) {
		return
	}
	page := serve(t, Local("127.0.0.1:0"), &Diagnosis{Diagnosis: diagnosed(t)}, os.DirFS(browser.Build(t, root)))
	p := browser.Open(t, page.URL()+"diagnose.html#report", laptop)
	p.Wait(`document.querySelectorAll('.verdict').length === 1 && document.querySelector('.sequence:not(.stale) canvas')`)
	p.Fits("diagnosis", laptop)
	p.NoErrors()
	for query, want := range map[string]int{"connection=0&requester=0": 200, "connection=0&requester=1": 200, "connection=1&requester=0": 400, "connection=-1&requester=0": 400,
		"connection=0&requester=2": 400, "connection=0": 400, "": 400} {
		if got := browser.Eval[int](p, "fetch('/diagnosis/trace?"+query+"').then((r) => r.json().then((j) => Array.isArray(j.points) === r.ok ? r.status : 0))"); got != want {
			t.Errorf("%s: status %d, expected %d", query, got, want)
		}
	}
}

// TestFiles: what is no result of the program is refused, with the reason.
func TestFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "none of the program's results",
		"gateway: {}":               "none of the program's results",
		`{"a":1}`:                   "no ports",
		`{"ports":`:                 "the report: ",
		`[{"scenario":"x"}]`:        "expected what cnpgate sim -o json prints",
		"time_ns,a_bytes\n1,x\n":    "row 2, column 2",
		"time_ns,a_bytes\nx,1\n":    "row 2: time_ns",
		"time_ns,a_bytes\n1,2,3\n":  "wrong number of fields",
		`[{"scenario":"x","respons`: "the results of a simulation: ",
	} {
		if err := (&Recording{}).AddFile("f", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	long := strings.Builder{}
	long.WriteString("time_ns,a_bytes\n")
	for i := range 10 * maxChart {
		fmt.Fprintf(&long, "%d,%d\n", i, i%1000)
	}
	r := &Recording{}
	if err := r.AddFile("f", strings.NewReader(long.String())); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Charts[0].Times); n > maxChart || n < maxChart/2 || len(r.Charts[0].Lines[0].Values) != n {
		t.Errorf("%d values of a line are kept", n)
	}
}

// laptop is how the page is looked at.
var laptop = browser.View{Width: 1280, Height: 900}
