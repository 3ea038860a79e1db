package web

import (
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

// TestDiagnose: of each capture the page shows the verdicts that replay --health prints, with its conclusion, and the connections, hosts and frames of its report.
func TestDiagnose(t *testing.T) {
	p := open(t, "diagnose.html", laptop)
	files, err := filepath.Glob(cases + "*.zst")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
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

// TestDiagnosePictures: the view can be used by everyone, and nothing is wider than the screen.
func TestDiagnosePictures(t *testing.T) {
	p := open(t, "diagnose.html", laptop)
	dir := os.Getenv("CNPGATE_PICTURES") // for people to look at
	for _, name := range []string{"", "e_spur64.pcap.zst", "sll2_twice.pcap.zst", "selrep_behind.pcap.zst", "restart_0_0.pcap.zst"} {
		if name != "" {
			path, err := filepath.Abs(cases + name)
			if err != nil {
				t.Fatal(err)
			}
			choose(p, path)
			judged(p, name)
		}
		for _, v := range []browser.View{{Width: 1440, Height: 900, Still: true}, {Width: 768, Height: 1024, Dark: true, Still: true}, {Width: 360, Height: 740, Still: true}} {
			p.Look(v)
			p.Accessible()
			if wide := browser.Eval[int64](p, "document.documentElement.scrollWidth"); wide > v.Width {
				t.Errorf("%s: the page is %d pixels wide on a screen of %d", name, wide, v.Width)
			}
			if dir != "" {
				p.Save(filepath.Join(dir, "diagnose-"+strings.TrimSuffix(name, ".pcap.zst")+"-"+plain(uint64(v.Width))+".png"))
			}
		}
	}
	p.NoErrors()
}
