package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/sim/scenario"
	"github.com/cnpgate/cnpgate/sim/scenarios"
	_ "github.com/cnpgate/cnpgate/web/engine" // what the page runs: the tests depend on it
)

func TestMain(m *testing.M) {
	status := m.Run()
	browser.Clean()
	os.Exit(status)
}

// open opens a file of the page, served with its headers.
func open(t *testing.T, file string, v browser.View) *browser.Page {
	t.Helper()
	return browser.Open(t, served(t)+file, v)
}

// served is the address at which the page is served with its headers, with a slash at its end.
func served(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(Handler(os.DirFS(browser.Build(t, ".."))))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

const (
	paused = "#scenario=incast-1ms&t=2000000&pause=1"
	shown  = `document.body.dataset.paused === "true"` // the page has run to the time of the address, and shows it
)

var laptop = browser.View{Width: 1280, Height: 900, Still: true}

// TestFile: the single file works from a file: once a run has ended, it has the bytes that cnpgate sim -o json prints. The page that needs a server says so.
func TestFile(t *testing.T) {
	browser.Build(t, "..") // not in each attempt
	if ontime.Again(t) {
		return
	}
	dir := browser.Build(t, "..")
	page, err := SingleFile(os.DirFS(dir), "scenario=incast-1ms&bytes=4MB&seed=5&set=hosts.mtu%3D2048&right=long-haul-cnp&speed=1e15")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "playground.html")
	if err := os.WriteFile(name, page, 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t, "file://"+name, laptop)
	p.Wait(`document.body.dataset.ended === "true"`)
	browser.Eval[bool](p, `document.getElementById("json-details").open = true`)
	p.Wait(`document.getElementById("json").textContent.endsWith("]\n")`)
	got := browser.Eval[string](p, `document.getElementById("json").textContent`)
	text, _ := scenarios.Find("incast-1ms")
	var all []*scenario.Outcome
	for _, r := range []scenario.Response{scenario.ECN, scenario.LongHaulCNP} {
		s, err := scenario.Parse("incast-1ms", text, []scenario.Setting{{Key: "hosts.mtu", Value: "2048"}, {Key: "traffic[0].incast.bytes", Value: "4MB"}, {Key: "seed", Value: "5"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Run(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	var want bytes.Buffer
	if err := scenario.WriteJSON(&want, all); err != nil {
		t.Fatal(err)
	}
	if got != want.String() {
		t.Errorf("the page has\n%s\ncnpgate sim\n%s", got, want.String())
	}
	if verdict := browser.Eval[string](p, `document.getElementById("verdict").textContent`); !strings.Contains(verdict, "times sooner") {
		t.Errorf("the page says %q", verdict)
	}
	p.NoErrors()
	p.Go("file://" + dir + "/index.html")
	p.Wait(`document.getElementById("message").textContent.includes("--web")`)
}

// TestUse: what a user does: clicks in the picture, keys, controls, the address bar, YAML.
func TestUse(t *testing.T) {
	p := open(t, "index.html"+paused, laptop)
	p.Wait(shown)
	// pointer finds a place of a picture whose tip has a word in it, clicks it, and says what is shown then.
	const pointer = `(async (pane, tip) => {
		const canvas = document.querySelectorAll("canvas.picture")[pane], box = canvas.getBoundingClientRect(), detail = document.getElementById("detail");
		for (let y = 4; y < box.height; y += 4) for (let x = 4; x < box.width; x += 4) {
			const at = {clientX: box.left + x, clientY: box.top + y, bubbles: true};
			canvas.dispatchEvent(new MouseEvent("mousemove", at));
			if (!canvas.title.includes(tip)) continue;
			const shown = new Promise((done) => new MutationObserver(done).observe(detail, {childList: true}));
			canvas.dispatchEvent(new MouseEvent("click", at));
			await shown;
			return detail.textContent;
		}
		return "";
	})`
	for _, c := range []struct{ pane, tip, shows, also string }{
		{"0", "standard-cnp", "Sent by the receiver", "DestQP"}, {"0", "host", "The steps of the decision", "endpoints"},
		{"1", "standard-cnp", "Built by a gateway", "IBTA Annex A17"}, {"1", "host", "The steps of the decision", "notified"},
	} {
		if text := browser.Eval[string](p, pointer+"("+c.pane+", "+`"`+c.tip+`")`); !strings.Contains(text, c.shows) || !strings.Contains(text, c.also) {
			t.Errorf("pane %s: a click on a %s shows %q, expected %q and %q", c.pane, c.tip, text, c.shows, c.also)
		}
	}
	browser.Eval[bool](p, `document.body.focus(), document.dispatchEvent(new KeyboardEvent("keydown", {key: ".", bubbles: true})), true`)
	p.Wait(`Number(document.body.dataset.now) > 2000000 && location.hash.includes("pause=1") && !location.hash.includes("t=2000000")`)
	browser.Eval[bool](p, `(() => {
		const rtt = document.querySelector("#knobs select[name=rtt]");
		rtt.value = "2ms";
		rtt.onchange();
		return true;
	})()`)
	p.Wait(`location.hash.includes("rtt=2ms")`)
	browser.Eval[bool](p, `document.getElementById("editor").open = true`)
	p.Wait(`document.getElementById("yaml").value.includes("delay: 1ms")`)
	browser.Eval[bool](p, `(() => {
		const yaml = document.getElementById("yaml");
		yaml.value = yaml.value.replace("rate: 100Gbps", "rate: fast");
		document.getElementById("apply").click();
		return true;
	})()`)
	p.Wait(`document.getElementById("message").textContent.includes("fast")`)
	browser.Eval[bool](p, `(() => {
		const yaml = document.getElementById("yaml");
		yaml.value = yaml.value.replace("rate: fast", "rate: 50Gbps");
		document.getElementById("apply").click();
		return true;
	})()`)
	p.Wait(`location.hash.includes("yaml=") && document.getElementById("message").textContent === ""`)
	p.NoErrors()
}

// TestSize: the compressed simulator is at most 6 MB.
func TestSize(t *testing.T) {
	f, err := os.Stat(filepath.Join(browser.Build(t, ".."), "engine.wasm.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if f.Size() > 6_000_000 {
		t.Errorf("%d bytes", f.Size())
	}
}

// TestPolicy: the browser refuses markup and scripts that are made of text, on each page, also of one file; nothing of the page is inline; and the page works.
func TestPolicy(t *testing.T) {
	browser.Build(t, "..") // not in each attempt
	if ontime.Again(t) {
		return
	}
	single, err := SingleFile(os.DirFS(browser.Build(t, "..")), paused[1:])
	if err != nil {
		t.Fatal(err)
	}
	alone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(single) }))
	t.Cleanup(alone.Close)
	url, p := served(t), browser.Open(t, "about:blank", laptop)
	for name, page := range map[string]string{"playground": url + "index.html" + paused, "live": url + "live.html", "diagnosis": url + "diagnose.html", "single file": alone.URL} {
		p.Go(page)
		if name == "playground" || name == "single file" {
			p.Wait(shown)
		}
		for _, sink := range []string{
			`document.createElement("p").innerHTML = "<img onerror=alert(1)>"`, `new Worker("engine.js")`, `document.write("x")`,
			`document.createElement("script").text = "1"`, `trustedTypes.createPolicy("other", {})`,
		} {
			if got := browser.Eval[string](p, `(() => { try { `+sink+`; return "accepted" } catch (e) { return "refused" } })()`); got != "refused" {
				t.Errorf("%s: %s is %s", name, sink, got)
			}
		}
		const inline = `[...document.querySelectorAll("*")].flatMap((e) => e.getAttributeNames()).filter((a) => a.startsWith("on")).join()`
		if got := browser.Eval[string](p, inline); got != "" {
			t.Errorf("%s has inline handlers: %s", name, got)
		}
	}
}
