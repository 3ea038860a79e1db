//go:build live && long && secondopinion && !nodpdk

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const pageAddress = "127.0.0.1:8420"

// bridge forwards connections from this process's namespace, where the browser is, to an address within another one, and returns its own address.
func bridge(t *testing.T, to *os.File, address string) string {
	t.Helper()
	listening := make(chan net.Listener)
	go func() { // not on the test's thread, which is in the other namespace
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Error(err)
		}
		listening <- l
	}()
	l := <-listening
	if l == nil {
		t.FailNow()
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		runtime.LockOSThread() // never unlocked: the thread stays in the other namespace
		if unix.Setns(int(to.Fd()), unix.CLONE_NEWNET) != nil {
			return
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("tcp4", address)
			if err != nil {
				_ = c.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{c, d}, {d, c}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

// shows is what cnpgate show prints as JSON.
func shows[T any](o *operator, args ...string) *T {
	o.t.Helper()
	return asks(o, "an answer", func(*T) bool { return true }, append([]string{"show"}, args...)...)
}

// TestLiveWeb: a page that the gateway serves under load shows what `show` prints; it sees within 2 s that the gateway was killed, and goes on with the next
// one. Clients that send 10,000 half-open connections, huge headers and wrong hosts change neither forwarding nor the API.
func TestLiveWeb(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	here := namespace(t)
	ip(t, "link set lo up")
	setMTU(t, 4300, "a0", "a1", "b0", "b1")
	var fabric, wan *os.File
	elsewhere(t, "a1", func() { fabric = namespace(t) })
	elsewhere(t, "b1", func() { wan = namespace(t) })
	hub(t, fabric, "a1")
	hub(t, wan, "b1")
	dir, text := t.TempDir(), strings.Replace(strings.Replace(operatorConfig, "mode: observe, ", "", 1), "management: {", "management: {web: {listen: \""+pageAddress+"\"}, ", 1)
	p := startIn(t, program, dir, text)
	o := &operator{process: p, t: t, config: filepath.Join(dir, "c.yaml"), socket: filepath.Join(dir, "api.sock")}
	sending, receiving := startPair(t, program, fabric, wan, 1, "300Mbps", 300, 400)

	page := browser.Open(t, "http://"+bridge(t, here, pageAddress)+"/#episodes", browser.View{Width: 1280, Height: 900})
	page.Wait(`document.querySelector('.timeline rect') && document.querySelector('tbody').rows[0].cells[6].textContent.includes('long-haul-cnp')`)
	browser.Eval[string](page, "location.hash = 'notifications'")
	page.Wait(`document.querySelectorAll('tbody .why').length > 5`)
	why := browser.Eval[[]string](page, "[...document.querySelectorAll('tbody .why')].map((e) => e.textContent)")
	if said := o.does("show", "notifications", "-o", "json", "--limit", "4096"); !strings.Contains(said, why[len(why)-1]) {
		t.Errorf("the page gives the reason %q, show does not", why[len(why)-1])
	}
	hostile(t, o, page)
	for _, e := range []*endpointProcess{sending, receiving} {
		if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = e.cmd.Wait()
	}
	agree(t, o, page)

	killed := time.Now()
	p.signal(syscall.SIGKILL)
	<-p.ended
	page.Wait(`document.querySelector('.status').classList.contains('bad')`)
	if d := time.Since(killed); d > 2*time.Second {
		t.Errorf("the page sees after %v that the gateway was killed, expected at most 2 s", d)
	}
	p = startIn(t, program, dir, text)
	page.Wait(`!document.querySelector('.status').classList.contains('bad') && document.querySelector('.status').textContent.includes('connected')`)
	p.stop()
	for _, e := range page.Errors() {
		if !strings.Contains(e, "ERR_") { // the browser's own words for a gateway that is gone
			t.Errorf("the page reports: %s", e)
		}
	}
}

// agree compares the page with show, once nothing passes any more.
func agree(t *testing.T, o *operator, page *browser.Page) {
	t.Helper()
	last := asks(o, "an ended episode", func(e *api.Episodes) bool { return len(e.Episodes) > 0 && e.Episodes[len(e.Episodes)-1].End != nil }, "show", "episodes")
	newest := &last.Episodes[len(last.Episodes)-1]
	browser.Eval[string](page, "location.hash = 'episodes'")
	page.Wait(fmt.Sprintf(`document.querySelector('tbody').rows.length === %d && document.querySelector('tbody').rows[0].cells[3].textContent !== 'goes on'`, len(last.Episodes)))
	row := browser.Eval[[]string](page, "[...document.querySelector('tbody').rows[0].cells].map((c) => c.textContent)")
	if want := fmt.Sprint(newest.ID); row[0] != want || row[1] != newest.Port+"/"+newest.Class || !strings.Contains(row[6], "long-haul-cnp") {
		t.Errorf("the page's newest episode is %q, that of show %+v", row, newest)
	}
	browser.Eval[string](page, "location.hash = 'ports'; document.querySelector('details') && 0; ''")
	page.Wait(`document.querySelectorAll('.plot canvas').length === 3`)
	browser.Eval[string](page, `[...document.querySelectorAll('button.link')].find((b) => b.textContent === 'wan').click(); [...document.querySelectorAll('details')].at(-1).open = true; ''`)
	page.Wait(`[...document.querySelectorAll('details')].at(-1).querySelector('tbody').rows.length > 0`)
	want := map[string]string{}
	c := shows[report.Counters](o, "counters").Ports[1]
	for name, reading := range c.Counters.NonZero() {
		if len(reading.By) == 0 {
			want[name] = fmt.Sprint(reading.Value)
		}
		for label, n := range reading.By {
			want[name+"{"+label+"}"] = fmt.Sprint(n)
		}
	}
	for name, reading := range c.Device.NonZero() {
		want[name] = fmt.Sprint(reading.Value)
	}
	var got map[string]string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		got = browser.Eval[map[string]string](page, `Object.fromEntries([...[...document.querySelectorAll('details')].at(-1).querySelectorAll('tbody tr')].map((r) => [r.cells[0].textContent, r.cells[1].textContent.replaceAll(',', '')]))`)
		if reflect.DeepEqual(got, want) {
			break
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the page counts %v, show %v", got, want)
	}
	flows := shows[api.FlowsBody](o, "flows").Flows
	browser.Eval[string](page, "location.hash = 'host=fd00:18::2'")
	page.Wait(fmt.Sprintf(`document.querySelectorAll('section.panel')[2].querySelectorAll('tbody tr').length === 1 && document.body.textContent.includes('fd00:18::1') && %t`, len(flows) > 0))
	page.Accessible()
}

// hostile attacks the page while the load goes on.
func hostile(t *testing.T, o *operator, page *browser.Page) {
	t.Helper()
	forwarded := func() (uint64, time.Duration) {
		begin := time.Now()
		n := shows[report.Counters](o, "counters").Ports[1].Counters["forwarded_packets_total"].Value
		return n, time.Since(begin)
	}
	rate := func() (perSecond float64, slowest time.Duration) {
		first, _ := forwarded()
		begin := time.Now()
		var last uint64
		for time.Since(begin) < 2*time.Second {
			var took time.Duration
			last, took = forwarded()
			slowest = max(slowest, took)
		}
		return float64(last-first) / time.Since(begin).Seconds(), slowest
	}
	calm, calmAPI := rate()
	end := attack(t)
	busy, busyAPI := rate()
	end()
	t.Logf("forwarded %.0f packets/s, %.0f under attack; show takes at most %v, %v under attack", calm, busy, calmAPI, busyAPI)
	if busy < 0.8*calm {
		t.Errorf("%.0f packets/s are forwarded under attack, and %.0f without", busy, calm)
	}
	if busyAPI > calmAPI+2*time.Second {
		t.Errorf("show takes %v under attack, and %v without", busyAPI, calmAPI)
	}
	c := shows[report.Counters](o, "counters")
	if lost := c.Counters["dropped_packets_total"].By["link-down"]; lost != 0 {
		t.Errorf("%d packets lost", lost)
	}
	page.Wait(`!document.querySelector('.status').classList.contains('bad')`)
}

// attack holds 10,000 connections to the page: silent, with half a request, with huge headers, and with a wrong host.
func attack(t *testing.T) (end func()) {
	t.Helper()
	limit := unix.Rlimit{Cur: 20000, Max: 20000}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	requests := []string{"", "GET /events HTTP/1.1\r\nHost: 127.0.0.1", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 32<<10),
		"GET /v1/flows?interval=5s HTTP/1.1\r\nHost: evil.example\r\n\r\n", "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"}
	var all []int
	for i := range 10_000 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fd)
		_ = unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 8420}) // in progress, or refused by a full backlog
		_, _ = unix.Write(fd, []byte(requests[i%len(requests)]))
	}
	return func() {
		for _, fd := range all {
			_ = unix.Close(fd)
		}
	}
}

// openedPage opens the page whose address a command prints.
func openedPage(t *testing.T, hash string, program string, args ...string) *browser.Page {
	t.Helper()
	c := exec.Command(program, args...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ := strings.Cut(strings.TrimPrefix(string(line[:n]), "The page is at "), ";")
	return browser.Open(t, url+hash, browser.View{Width: 1280, Height: 900})
}

// TestLiveReplayWeb: replay --web prints the page's address, and at its end the recording has all notifications; with --health it shows what is wrong, or reads what is dropped.
func TestLiveReplayWeb(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	page := openedPage(t, "#notifications", program, "replay", "-c", "../../testdata/golden/limits/config.yaml", "--fabric", "fd00::/16", "--web", "--listen", "127.0.0.1:0",
		"../../testdata/golden/limits/in.pcap")
	page.Wait(`document.querySelector('input[type=range]') !== null`)
	browser.Eval[string](page, `(() => { const s = document.querySelector('input[type=range]'); s.value = s.max; s.dispatchEvent(new Event('input')); return ''; })()`)
	page.Wait(`document.querySelectorAll('tbody .why').length === 16`)
	var r struct{ Events []json.RawMessage }
	if err := json.Unmarshal([]byte(browser.Eval[string](page, "fetch('/recording').then((r) => r.text())")), &r); err != nil || len(r.Events) < 40 {
		t.Errorf("%d events, %v", len(r.Events), err)
	}
	page.NoErrors()
	page = openedPage(t, "", program, "replay", "--health", "--web", "--listen", "127.0.0.1:0", "../../control/replay/testdata/cases/wrap.pcap.zst")
	page.Wait(`document.querySelectorAll(".verdict").length === 1 && document.querySelector(".sequence:not(.stale) canvas") !== null`)
	page.NoErrors()
	page = openedPage(t, "", program, "replay", "--health", "--web", "--listen", "127.0.0.1:0")
	page.Wait(`document.getElementById("drop-title").textContent.includes("Drop a capture here")`)
	page.NoErrors()
}
