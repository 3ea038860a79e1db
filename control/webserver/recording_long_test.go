//go:build long

package webserver

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// replayed is the recording of a small replay.
func replayed(t *testing.T) *Recording {
	t.Helper()
	const dir = root + "/testdata/golden/limits/"
	c, err := config.Load(dir + "config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	capture, err := replay.Open(dir+"in.pcap", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	recorder := &replay.Recorder{}
	result, err := replay.Run(c, capture, replay.Options{Fabric: []netip.Prefix{netip.MustParsePrefix("fd00::/16")}, Recorder: recorder})
	if err != nil {
		t.Fatal(err)
	}
	recording := &Recording{Title: "in.pcap"}
	recording.AddReplay(result, recorder)
	return recording
}

// TestRecordings: a replay has its title, is opened at its start and played: at its end the page shows what the report says, in the middle less; a simulation's
// results are plotted.
func TestRecordings(t *testing.T) {
	browser.Build(t, root) // not in each attempt
	if ontime.Again(t) {
		return
	}
	page := serve(t, Local("127.0.0.1:0"), replayed(t), os.DirFS(browser.Build(t, root)))
	p := browser.Open(t, page.URL()+"#notifications", laptop)
	p.Wait(`Number(document.querySelector('input[type=range]')?.value) < document.querySelector('input[type=range]')?.max / 10 && document.title === 'Notifications: in.pcap' && document.querySelector('h1').textContent.includes('recording of in.pcap')`)
	if n := browser.Eval[int](p, "document.querySelectorAll('tbody .why').length"); n == 16 {
		t.Error("a recording is opened at its end, expected at its start")
	}
	browser.Eval[string](p, `(() => { const s = document.querySelector('input[type=range]'); s.value = s.max; s.dispatchEvent(new Event('input')); return ''; })()`)
	p.Wait(`document.querySelectorAll('tbody .why').length === 16 && document.body.textContent.includes('16 sent')`)
	p.Fits("recording-notifications", laptop)
	browser.Eval[string](p, `location.hash = 'episodes'; fetch('/recording').then((r) => r.json()).then((r) => {
		const s = document.querySelector('input[type=range]'), sent = r.events.filter((e) => e.kind === 'notifications');
		s.value = (sent[0].at_ms + sent.at(-1).at_ms) / 2;
		s.dispatchEvent(new Event('input'));
		return '';
	})`)
	p.Wait(`document.querySelectorAll('.timeline rect').length > 0`)
	browser.Eval[string](p, "location.hash = 'notifications'")
	p.Wait(`document.querySelectorAll('tbody .why').length > 0 && document.querySelectorAll('tbody .why').length < 16`)
	browser.Eval[string](p, `[...document.querySelectorAll('button')].find((b) => b.textContent === 'Play').click(); ''`)
	p.Wait(`document.querySelectorAll('tbody .why').length === 16`)
	browser.Eval[string](p, "location.hash = 'senders'")
	p.Wait(`document.querySelectorAll('tbody')[1].rows.length === 4`)
	p.NoErrors()

	sim := &Recording{}
	for name, text := range map[string]string{
		"run.csv":     "time_ns,gateway_queue_bytes,host_1_bps,host_1_notifications\n1000,5,100,0\n2000,70,90,1\n",
		"result.json": `[{"scenario":"incast","response":"standard CNP","seed":1,"lost_packets":0,"gateway":{"peak_bytes":70}}]`,
	} {
		if err := sim.AddFile(name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	page = serve(t, Local("127.0.0.1:0"), sim, os.DirFS(browser.Build(t, root)))
	p.Go(page.URL())
	p.Wait(`document.querySelectorAll('.plot canvas').length === 3 && document.body.textContent.includes('standard CNP') && document.body.textContent.includes('70') && document.querySelector('.tabs').textContent === 'Results'`)
	p.Fits("results", laptop)
	p.NoErrors()
}
