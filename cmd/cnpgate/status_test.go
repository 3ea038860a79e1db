package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatus: what the lines say of a gateway that is well, of one that isn't, and of one that notifies nobody.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct {
		health, mode, fleet string
		status              int
		want                []string
	}{
		{`{"healthy":true,"problems":{}}`, `[{"port":"dc","mode":"send"},{"port":"wan","mode":"send"}]`, `{"enabled":false}`, 0,
			[]string{"gw runs for ", ", mode send\n", "received packets: 100\n", "dropped packets: 7 (link-down:3,queue-full-bytes:4)\n", "notifications: 0\n", "\nhealthy\n",
				"packets lost before the gateway read them: 5 at dc (device_missed_packets_total)\n"}},
		{`{"healthy":false,"problems":{"wan":"no link"},"services":{"bypass":"no such file"},"notices":["gw.yaml differs from the configuration in force"]}`,
			`[{"port":"dc","mode":"send"},{"port":"wan","mode":"observe"}]`,
			`{"enabled":true,"site":"dc-a","members":[{"name":"gw","self":true,"state":"active"},{"name":"gw-2","state":"silent"}]}`, 1,
			[]string{"mode send, and observe of port wan\n", "fleet dc-a: 1 of 2 gateways are active\n", "wan: no link\nbypass doesn't work, and is tried again: no such file\ngw.yaml differs"}},
		{`{"healthy":true,"problems":{}}`, `[{"port":"dc","mode":"observe"},{"port":"wan","mode":"observe"}]`, `{"enabled":false}`, 0,
			[]string{"mode observe: nobody is notified\n", "notifications that would have been sent: 9 (standard-cnp:9)\n"}},
	} {
		socket := filepath.Join(dir, string(rune('a'+i))+".sock")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		answers := map[string]string{
			"health": c.health, "mode": `{"ports":` + c.mode + `}`, "fleet": c.fleet,
			"counters": `{"gateway":"gw","start_time":"2026-01-02T03:04:05Z","counters":{"received_packets_total":100,"dropped_packets_total":{"link-down":3,"queue-full-bytes":4},"notifications_observed_total":{"standard-cnp":9}},"ports":[{"name":"dc","device":{"device_missed_packets_total":5}},{"name":"wan","device":{"device_missed_packets_total":0}}]}`,
		}
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1/{resource}", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.PathValue("resource") == "health" && c.status != 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = io.WriteString(w, answers[r.PathValue("resource")])
		})
		server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
		server.Start()
		got := within(t, dir, "status", "--socket", socket)
		server.Close()
		if got.status != c.status {
			t.Errorf("%d: %+v", i, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%d: no %q in\n%s", i, want, got.stdout)
			}
		}
	}
}
