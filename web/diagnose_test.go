package web

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

const cases = "../control/replay/testdata/cases/"

// choose gives the page the files of a capture, as a person does who chooses them.
func choose(p *browser.Page, paths ...string) {
	p.Do(chromedp.SetUploadFiles("#file", paths))
}

// judged waits until the page shows what is wrong with a file, and the plot.
func judged(p *browser.Page, name string) {
	p.Wait(`document.querySelector("#message.wrong") || document.title.startsWith("` + name + `: ") && document.querySelector(".sequence:not(.stale)")`)
}

// shownVerdict is a verdict as the page shows it.
type shownVerdict struct{ Name, Subject, Evidence, Advice, Commands string }

// answer is what `replay --health` says of a capture.
func answer(t *testing.T, paths ...string) (*health.Report, []string) {
	t.Helper()
	c, err := replay.OpenAll(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d, err := replay.Diagnose(c, replay.HealthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Report, c.Warnings
}

// TestDiagnose: of each capture (in the default run, of some) the page shows the verdicts that replay --health prints, with its conclusion, and the connections, hosts and frames of its report.
func TestDiagnose(t *testing.T) {
	p := open(t, "diagnose.html", laptop)
	files, err := filepath.Glob(cases + "*.zst")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for i := range files {
		if files[i], err = filepath.Abs(files[i]); err != nil {
			t.Fatal(err)
		}
	}
	captures := [][]string{files[:3]} // of one capture, as far as the page knows
	for i := 0; i < len(files); i += 12*effort.Short + 12*effort.Race + effort.Long {
		captures = append(captures, files[i:i+1])
	}
	for _, capture := range captures {
		name := filepath.Base(capture[0])
		if len(capture) > 1 {
			name = strconv.Itoa(len(capture)) + " files"
		}
		r, warnings := answer(t, capture...)
		choose(p, capture...)
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
