package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// operable is a gateway at a socket that answers what an operator asks for, and says what that was.
func operable(t *testing.T, socket string, answers map[string]string) (asked func() string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	var last string
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		defer mutex.Unlock()
		last = strings.TrimSpace(r.Method + " " + r.URL.RequestURI() + " " + string(body))
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if status, text, refused := strings.Cut(answer, "!"); refused || !ok {
			w.WriteHeader(http.StatusConflict)
			answer = fmt.Sprintf(`{"error":%q}`, status+text)
		}
		fmt.Fprint(w, answer)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return func() string {
		mutex.Lock()
		defer mutex.Unlock()
		return last
	}
}

// TestOperate: what each command of the operator's asks the gateway for, prints, and ends with.
func TestOperate(t *testing.T) {
	dir := workspace(t)
	const modes = `{"ports":[{"port":"dc","mode":"send","configured":"send"},{"port":"wan","mode":"observe","configured":"send"}]}`
	for i, c := range []struct {
		args, answer string // the answer to all requests; with a !, a refusal
		asked        string // the last request
		status       int
		stdout       string
		stderr       string // a part of it
	}{
		{"reload", `{"changes":["ports[1].rtt"],"config_hash":""}`, "POST /v1/reload", 0, "reloaded; changed: ports[1].rtt\n", ""},
		{"reload -o json", `{"changes":[],"config_hash":"ab"}`, "POST /v1/reload", 0, `{"changes":[],"config_hash":"ab"}` + "\n", ""},
		{"reload --dry-run", `{"changes":["ports[1].rtt"],"config_hash":""}`, "POST /v1/reload?dry_run=true", 0, "dry run; would change: ports[1].rtt\n", ""},
		{"reload --dry-run", `{"changes":[],"config_hash":""}`, "POST /v1/reload?dry_run=true", 0, "dry run; nothing would change\n", ""},
		{"reload --dry-run", `{"changes":["ports[1].device"],"config_hash":"","needs_restart":["gw.yaml:1:2: ports[1].device: differs"]}`, "POST /v1/reload?dry_run=true", 3,
			"dry run; would change: ports[1].device\ngw.yaml:1:2: ports[1].device: differs\n", "a reload would be refused: 1 changes need a restart"},
		{"reload --dry-run", "gw.yaml:1:1: wrong!", "POST /v1/reload?dry_run=true", 1, "", "gw.yaml:1:1: wrong"},
		{"reload --confirm 60s", `{"changes":["ports[1].rtt"],"config_hash":"","confirm_by":"2026-01-02T03:04:05Z"}`, "POST /v1/reload?confirm=1m0s", 0,
			"reloaded; changed: ports[1].rtt\nThe gateway goes back to the former configuration at " + time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local().Format(time.TimeOnly) + ", unless:\n  cnpgate reload --confirmed\n", ""},
		{"reload --confirmed", `{"changes":["ports[1].rtt"],"config_hash":""}`, "POST /v1/reload/confirm", 0, "confirmed; changed: ports[1].rtt\n", ""},
		{"reload --revert", `{"changes":["ports[1].rtt"],"config_hash":""}`, "POST /v1/reload/revert", 0, "reverted; changed: ports[1].rtt\n", ""},
		{"reload --confirmed", "no reload waits to be confirmed!", "POST /v1/reload/confirm", 1, "", "no reload waits to be confirmed"},
		{"set mode observe --port wan -o json", modes, `PUT /v1/mode {"mode":"observe","port":"wan"}`, 0, modes + "\n", ""},
		{"set mode notify -o json", modes, `PUT /v1/mode {"mode":"send"}`, 0, modes + "\n", ""},
		{"set mode send", "a mirror port!", `PUT /v1/mode {"mode":"send"}`, 1, "", "a mirror port"},
		{"set log-level -o json", `{"log_level":"info","configured":"info"}`, "GET /v1/log-level", 0, `{"log_level":"info","configured":"info"}` + "\n", ""},
		{"set log-level warn", `{"log_level":"warn","configured":"info"}`, `PUT /v1/log-level {"log_level":"warn"}`, 0, "log level warn (info after a reload)\n", ""},
		{"hint 10.1.0.1,17 10.2.0.1,18", `{"hint":{"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18},"replaced":[{"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":19}]}`,
			`PUT /v1/hints {"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18}`, 0, "connected: QP 17 at 10.1.0.1 and QP 18 at 10.2.0.1\nreplaced: QP 17 at 10.1.0.1 and QP 19 at 10.2.0.1\n", ""},
		{"hint 10.1.0.1,17 10.2.0.1,18 --tunnel vxlan:5000 --remove", `{"deleted":{"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18,"tunnel":"vxlan:5000"}}`,
			"DELETE /v1/hints?destination_ip=10.2.0.1&destination_qp=18&source_ip=10.1.0.1&source_qp=17&tunnel=vxlan%3A5000", 0, "withdrawn: QP 17 at 10.1.0.1 and QP 18 at 10.2.0.1\n", ""},
		{"hint 10.1.0.1,17 10.2.0.1,18 -o json", "contradicts qp_map!", `PUT /v1/hints {"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18}`, 1, "", "contradicts qp_map"},
		{"drain", `{"draining":true,"safe":true,"waits":[]}`, "PUT /v1/drain", 0, "drained; it is safe to stop the gateway\n", ""},
		{"drain --wait 1ms", `{"draining":true,"safe":false,"waits":["2 senders"]}`, "GET /v1/drain", 3, "", "it is not safe yet to stop the gateway: 2 senders; wait longer, or end the drain"},
		{"drain --wait 0s -o json", `{"draining":true,"safe":false,"waits":["2 senders"]}`, "PUT /v1/drain", 3, `{"draining":true,"safe":false,"waits":["2 senders"]}` + "\n", "not safe yet"},
		{"drain --off", `{"draining":false,"safe":false,"waits":[]}`, "DELETE /v1/drain", 0, "the drain has ended; ports in mode send notify senders again\n", ""},
		{"show health", `{"healthy":true,"problems":{},"notices":["port wan: mode observe"]}`, "GET /v1/health", 0, "healthy\nport wan: mode observe\n", ""},
		{"show health --fleet", `{"answers":{"gw-1":{"healthy":true},"gw-3":{"healthy":false,"problems":{"wan":"no link"}}},"missing":{"gw-2":"it has been silent for 1m12s"}}`,
			"GET /v1/fleet/answers?path=%2Fv1%2Fhealth", 1, "gw-1:\nhealthy\ngw-3:\nwan: no link\ngw-2:\nno answer: it has been silent for 1m12s\n", "1 gateways of the fleet don't answer: gw-2"},
		{"show health --fleet", `{"answers":{"gw-1":{"healthy":true}}}`, "GET /v1/fleet/answers?path=%2Fv1%2Fhealth", 0, "gw-1:\nhealthy\n", ""},
		{"show health", `{"healthy":false,"problems":{"wan":"no link"},"notices":["drained"]}`, "GET /v1/health", 1, "wan: no link\ndrained\n", "not all ports forward"},
	} {
		t.Run(c.args, func(t *testing.T) {
			socket := filepath.Join(dir, fmt.Sprint(i, ".sock"))
			method, path, _ := strings.Cut(c.asked, " ")
			path, _, _ = strings.Cut(path, " ")
			path, _, _ = strings.Cut(path, "?")
			asked := operable(t, socket, map[string]string{method + " " + path: c.answer, "PUT /v1/drain": c.answer})
			got := within(t, dir, append(strings.Fields(c.args), "--socket", socket)...)
			if got.status != c.status || got.stdout != c.stdout || !strings.Contains(got.stderr, c.stderr) || asked() != c.asked {
				t.Errorf("%+v, asked %q; want %+v", got, asked(), c)
			}
		})
	}
}

// TestReloadOfAnotherFile: a reload reads the gateway's own file, so a --config that is another one is refused. A link to it, and the same path spelled
// otherwise, are the gateway's.
func TestReloadOfAnotherFile(t *testing.T) {
	dir := workspace(t)
	reloads := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/config", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"file":"run.yaml","path":%q,"config_hash":"","text":""}`, filepath.Join(dir, "run.yaml"))
	})
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, _ *http.Request) {
		reloads++
		fmt.Fprint(w, `{"changes":[],"config_hash":""}`)
	})
	socket := filepath.Join(dir, "api.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	text := goodConfig + fmt.Sprintf("management: {listen: 'unix:%s'}\n", socket)
	put(t, dir, "run.yaml", []byte(text))
	put(t, dir, "other.yaml", []byte(text))
	if err := os.Symlink("run.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"run.yaml", "./run.yaml", "link.yaml", filepath.Join(dir, "run.yaml")} {
		if got := cnpgate(t, dir, "reload", "--config", file); got.status != 0 || got.stdout != "reloaded; nothing has changed\n" {
			t.Errorf("%s: %+v", file, got)
		}
	}
	before := reloads
	got := cnpgate(t, dir, "reload", "--config", "other.yaml")
	if want := "the gateway runs " + filepath.Join(dir, "run.yaml"); got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, want) {
		t.Errorf("another file: %+v, expected %q", got, want)
	}
	if reloads != before {
		t.Error("the gateway was asked to reload all the same")
	}
}
