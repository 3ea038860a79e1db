package web

import (
	"bufio"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const cases = "../control/replay/testdata/cases/"

// choose gives the page a file, as a person does who chooses it.
func choose(p *browser.Page, path string) {
	p.Do(chromedp.SetUploadFiles("#file", []string{path}))
}

// judged waits until the page shows what is wrong with a file, and the plot.
func judged(p *browser.Page, name string) {
	p.Wait(`document.querySelector("#message.wrong") || document.title.startsWith("` + name + `: ") && document.querySelector(".sequence:not(.stale)")`)
}

// shownVerdict is a verdict as the page shows it.
type shownVerdict struct{ Name, Subject, Evidence, Advice, Commands string }

// answer is what `replay --health` says of a capture.
func answer(t *testing.T, path string) (r *health.Report, warnings []string) {
	t.Helper()
	c, err := replay.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err = replay.Health(c, replay.HealthOptions{}); err != nil {
		t.Fatal(err)
	}
	return r, c.Warnings
}

// oneIn is how many of the captures TestDiagnose reads: one in so many.
var oneIn = 8

// TestDiagnose: of each capture the page shows the verdicts that replay --health prints, with its conclusion, and the connections, hosts and frames of its report.
func TestDiagnose(t *testing.T) {
	p := open(t, "diagnose.html", laptop)
	files, err := filepath.Glob(cases + "*.zst")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for i := 0; i < len(files); i += oneIn {
		file := files[i]
		name := filepath.Base(file)
		r, warnings := answer(t, file)
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		choose(p, path)
		judged(p, name)
		got := browser.Eval[struct {
			Conclusion, Frames        string
			Verdicts                  []shownVerdict
			Connections, Hosts, Lines int
		}](p, `(() => {
			const text = (e, what) => e.querySelector(what)?.textContent ?? "";
			return {
				Conclusion: text(document, ".conclusion"), Frames: text(document, ".read > p"),
				Verdicts: [...document.querySelectorAll(".verdict")].map((v) => ({Name: text(v, "code"), Subject: text(v, ".subject").split(" (")[0].replace(text(v, "code"), "").trim(),
					Evidence: text(v, ".shows"), Advice: text(v, ".change"), Commands: text(v, "pre")})),
				Hosts: document.querySelectorAll(".tables tbody")[0].rows.length, Connections: document.querySelectorAll(".tables tbody")[1].rows.length,
				Lines: document.querySelectorAll(".read li").length,
			};
		})()`)
		var want []shownVerdict
		for _, v := range r.Verdicts {
			want = append(want, shownVerdict{v.Name, strings.ReplaceAll(v.Subject, " -> ", " → "), v.Evidence, v.Advice, strings.Join(v.Commands, "\n")})
		}
		if !slices.Equal(got.Verdicts, want) || got.Conclusion != r.Conclusion {
			t.Errorf("%s: the page says %q %+v\nreplay --health %q %+v", name, got.Conclusion, got.Verdicts, r.Conclusion, want)
		}
		sides := 0
		for _, c := range r.Connections {
			sides += len(c.Requests)
		}
		if got.Connections != min(sides, 200) || got.Hosts != len(r.Hosts) || got.Lines != len(r.Notes)+len(warnings) {
			t.Errorf("%s: %+v; the report has %d rows of connections, %d hosts, %d notes, %d warnings", name, got, sides, len(r.Hosts), len(r.Notes), len(warnings))
		}
		if !strings.Contains(strings.ReplaceAll(got.Frames, ",", ""), plain(r.Frames.Examined)) {
			t.Errorf("%s: the page says %q, the report has %d frames examined", name, got.Frames, r.Frames.Examined)
		}
	}
	p.NoErrors()
}

func plain(n uint64) string { return strconv.FormatUint(n, 10) }

// large writes a capture of at least so many bytes: the packets of a small one again and again, each time between other hosts and of whole length.
func large(t *testing.T, size int) (path string) {
	t.Helper()
	from, err := os.Open(cases + "selrep_behind.pcap.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	r, err := capturefile.NewReader("in", from)
	if err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	var infos []gopacket.CaptureInfo
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, append(slices.Clone(f.Octets), make([]byte, int(f.Length)-len(f.Octets))...))
		infos = append(infos, gopacket.CaptureInfo{Timestamp: time.Unix(0, f.Time), CaptureLength: int(f.Length), Length: int(f.Length)})
	}
	path = filepath.Join(t.TempDir(), "large.pcap")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	b := bufio.NewWriterSize(to, 1<<20)
	w := pcapgo.NewWriterNanos(b)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for n, written := 0, 0; written < size; n++ {
		for i, f := range frames {
			for _, ip := range []int{26, 30} { // IPv4's addresses: 10.x.0.1
				f[ip+2], f[ip+3] = byte(n>>8), byte(n)
			}
			infos[i].Timestamp = infos[i].Timestamp.Add(10 * time.Millisecond)
			if err := w.WritePacket(infos[i], f); err != nil {
				t.Fatal(err)
			}
			written += 16 + len(f)
		}
	}
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDiagnoseLarge: while a large capture is read, the page draws and says how far it is; Cancel ends that, and the next capture is read.
// CNPGATE_LARGE is another size for it, bytes.
func TestDiagnoseLarge(t *testing.T) {
	size := 40_000_000*effort.Short + 40_000_000*effort.Race + 100_000_000*effort.Long
	if text := os.Getenv("CNPGATE_LARGE"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	browser.Build(t, "..") // not in each attempt
	if ontime.Again(t) {
		return
	}
	path := large(t, size)
	p := open(t, "diagnose.html", laptop)
	choose(p, path)
	p.Wait(`!document.getElementById("busy").hidden && document.getElementById("progress").value > 0`)
	browser.Eval[bool](p, `document.getElementById("cancel").click(), true`)
	p.Wait(`document.getElementById("busy").hidden && document.getElementById("message").textContent.startsWith("Cancelled")`)
	browser.Eval[bool](p, `(() => {
		const values = new Set(), begin = performance.now();
		let frames = 0, longest = 0, last = begin;
		const frame = (now) => {
			frames++;
			[longest, last] = [Math.max(longest, now - last), now];
			values.add(document.getElementById("progress").value);
			if (!document.querySelector(".conclusion")) requestAnimationFrame(frame);
			else window.seen = {Frames: frames, Seconds: (now - begin) / 1000, Longest: longest, Values: values.size};
		};
		requestAnimationFrame(frame);
		return true;
	})()`)
	choose(p, path)
	for begin := time.Now(); time.Since(begin) < 20*time.Minute; { // each wait is bounded
		if browser.Eval[bool](p, `new Promise((done) => setTimeout(() => done(Boolean(window.seen)), 500))`) {
			break
		}
	}
	got := browser.Eval[struct{ Frames, Seconds, Longest, Values float64 }](p, `window.seen`)
	judged(p, "large.pcap")
	t.Logf("%d bytes in %.1f s: %.0f frames a second, at most %.0f ms from one to the next; %.0f steps of progress", size, got.Seconds, got.Frames/got.Seconds, got.Longest, got.Values)
	if got.Frames < 10*got.Seconds || got.Values < 3 {
		t.Errorf("%+v; expected 10 frames a second, and progress", got)
	}
	r, _ := answer(t, path)
	if text := browser.Eval[string](p, `document.querySelector(".conclusion").textContent`); text != r.Conclusion || len(r.Verdicts) == 0 {
		t.Errorf("the page says %q, replay --health %q", text, r.Conclusion)
	}
	p.NoErrors()
}

// TestDiagnoseUse: a file that is dropped is read, also once the server, which is any that has the files, is gone; filters, plot, events and commands are
// what a person asks for; what is no capture is refused with the reason.
func TestDiagnoseUse(t *testing.T) {
	browser.Build(t, "..") // not in each attempt
	if ontime.Again(t) {
		return
	}
	server := httptest.NewServer(http.FileServerFS(os.DirFS(browser.Build(t, ".."))))
	defer server.Close()
	p := browser.Open(t, server.URL+"/diagnose.html", laptop)
	drop := func(name string, content []byte) {
		browser.Eval[bool](p, `(() => {
			const data = new DataTransfer(), bytes = Uint8Array.from(atob("`+base64.StdEncoding.EncodeToString(content)+`"), (c) => c.charCodeAt(0));
			data.items.add(new File([bytes], "`+name+`"));
			document.getElementById("drop").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
			return true;
		})()`)
	}
	drop("notes.txt", []byte("this is no capture at all"))
	p.Wait(`document.querySelector("#message.wrong")?.textContent.includes("not a pcap or pcapng file")`)
	server.Close()
	content, err := os.ReadFile(cases + "cat_two.pcap.zst") // two connections, of which one is worse
	if err != nil {
		t.Fatal(err)
	}
	drop("cat_two.pcap.zst", content)
	p.Wait(`document.title.startsWith("cat_two.pcap.zst: ") && document.querySelector(".sequence:not(.stale)")`)
	for _, c := range []struct{ script, shows string }{
		// Another connection is chosen by the table.
		{`(() => { document.querySelectorAll(".tables tbody")[1].rows[1].querySelector("button").click(); return document.querySelectorAll("tr.marked").length + document.querySelector("tr.marked + tr, tr.marked").parentNode.rows[1].className; })()`, "1marked"},
		// Filters.
		{`(() => { const i = document.querySelector("input[type=search]"); i.value = "no such host"; i.oninput(); const n = document.querySelectorAll(".tables tbody tr").length; i.value = ""; i.oninput(); return n + " " + document.querySelectorAll(".tables tbody")[1].rows.length; })()`, "0 2"},
		// The table of events has what was sent again.
		{`document.querySelector(".words tbody").textContent.includes("sent again, PSN") + ""`, "true"},
		// A kind of points can be hidden, and the view be moved.
		{`(() => { const b = document.querySelector(".kinds button"); b.click(); return b.getAttribute("aria-pressed"); })()`, "false"},
		{`(() => { for (const b of document.querySelectorAll(".tools button")) b.click(); return document.querySelectorAll(".sequence canvas").length + ""; })()`, "1"},
		{`(() => { let text; navigator.clipboard.writeText = async (t) => (text = t); document.querySelector(".verdict .primary").click(); return text.split("\n")[0].slice(0, 14); })()`, "ethtool -S $IF"},
	} {
		if got := browser.Eval[string](p, c.script); got != c.shows {
			t.Errorf("%s: %q, expected %q", c.script, got, c.shows)
		}
	}
	p.Wait(`document.querySelector(".sequence:not(.stale)")`)
	p.Accessible()
	p.NoErrors()
}

// TestDiagnosePictures: the view looks as it did, and fits each screen.
func TestDiagnosePictures(t *testing.T) {
	p := open(t, "diagnose.html", laptop)
	dir := os.Getenv("CNPGATE_PICTURES") // for people to look at
	names := []string{"", "sll2_twice.pcap.zst", "restart_0_0.pcap.zst"}
	if dir != "" {
		names = append(names, "e_spur64.pcap.zst", "selrep_behind.pcap.zst", "f_ignores_cnps.pcap.zst", "e_read256.pcap.zst", "capdrop_bursts.pcap.zst", "ce_no_cnp.pcap.zst",
			"read_adaptive40.pcap.zst", "rnr_exceeded.pcap.zst", "blackhole_nak.pcap.zst")
	}
	for _, name := range names {
		if name != "" {
			path, err := filepath.Abs(cases + name)
			if err != nil {
				t.Fatal(err)
			}
			choose(p, path)
			judged(p, name)
		}
		if name == "sll2_twice.pcap.zst" {
			for _, v := range browser.Views[:3] {
				p.Look(v)
				p.Screenshot("testdata/pictures/diagnose-" + plain(uint64(v.Width)) + ".png")
			}
		}
		p.Fits("diagnose-"+strings.TrimSuffix(name, ".pcap.zst"), laptop)
	}
	p.NoErrors()
}
