package api

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

const aHint = `{"source_ip":"10.1.0.5","destination_ip":"10.9.0.9","source_qp":17,"destination_qp":18}`

// TestRefused: what is not understood, with what was expected.
func TestRefused(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	put := func(old, changed string) string { return strings.Replace(aHint, old, changed, 1) }
	for _, c := range []struct {
		method, path, body string
		status             int
		allow, want        string
	}{
		{"GET", "/", "", 404, "", `{"error":"no resource \"/\"; expected /v1/bgp, /v1/config, /v1/counters, /v1/drain, /v1/episodes, /v1/explain, /v1/fleet, /v1/fleet/answers, /v1/fleet/episodes, /v1/flows, /v1/health, /v1/hints, /v1/log-level, /v1/mark, /v1/mode, /v1/notifications, /v1/notifications/stream, /v1/openapi.json, /v1/packets/stream, /v1/pairs, /v1/proxies, /v1/rdma, /v1/rdma/trace, /v1/reload, /v1/reload/confirm, /v1/reload/revert, /v1/reloads, /v1/senders, /v1/version"}`},
		{"GET", "/v1/flows/", "", 404, "", `no resource \"/v1/flows/\"`},
		{"GET", "/v2/flows", "", 404, "", "expected /v1/bgp, /v1/config, /v1/counters"},
		{"GET", "/" + strings.Repeat("x", 5000), "", 404, "", "no resource"},
		{"PUT", "/v1/flows", "", 405, "GET, HEAD", `no method \"PUT\" at /v1/flows; expected GET or HEAD`},
		{"PATCH", "/v1/hints", aHint, 405, "DELETE, GET, HEAD, POST, PUT", `no method \"PATCH\" at /v1/hints; expected DELETE or GET or HEAD or POST or PUT`},
		{"BREW", "/v1/hints", "", 405, "DELETE, GET, HEAD, POST, PUT", `\"BREW\"`},
		{"GET", "/v1/flows?src=10.0.0.1", "", 400, "", `no parameter \"src\" at GET /v1/flows; expected source_ip, destination_ip, source_qp`},
		{"GET", "/v1/flows?source_ip=1.2.3.4&source_ip=1.2.3.4", "", 400, "", "source_ip is given 2 times; expected once"},
		{"GET", "/v1/flows?source=1.2.3.4", "", 400, "", `no parameter \"source\" at GET /v1/flows`},
		{"GET", "/v1/pairs?state=confirmed", "", 400, "", `no parameter \"state\" at GET /v1/pairs`},
		{"PUT", "/v1/hints", put(`"source_ip"`, `"source_ip":"10.1.0.5","source_ip"`), 400, "", "source_ip is given twice"},
		{"PUT", "/v1/log-level", "", 400, "", `the body: it ends too early; expected one JSON object, such as {\"log_level\":\"debug\"}`},
		{"PUT", "/v1/log-level", "{}", 400, "", `log_level is \"\"; expected debug, info, warn, error`},
		{"PUT", "/v1/log-level", `{"log_level":"loud"}`, 400, "", `log_level is \"loud\"; expected debug`},
		{"PUT", "/v1/log-level", `{"level":"info"}`, 400, "", `unknown key \"level\"; known here: log_level`},
		{"GET", "/v1/flows?source_ip=host", "", 400, "", `source_ip is \"host\"; expected an address or a prefix`},
		{"GET", "/v1/flows?destination_ip=", "", 400, "", `destination_ip is \"\"; expected an address`},
		{"GET", "/v1/flows?source_qp=16777216", "", 400, "", `source_qp is \"16777216\"; expected a QP, 0 to 16777215`},
		{"GET", "/v1/flows?destination_qp=-1", "", 400, "", "destination_qp is"},
		{"GET", "/v1/flows?qp_state=sure", "", 400, "", `qp_state is \"sure\"; expected unknown, candidate, confirmed`},
		{"GET", "/v1/flows?qp_evidence=guess", "", 400, "", "expected none, static, hint, cm, deth, port, psn, cnp"},
		{"GET", "/v1/flows?limit=0", "", 400, "", `limit is \"0\"; expected a number from 1`},
		{"GET", "/v1/flows?a=%zz", "", 400, "", "the query: "},
		{"GET", "/v1/hints?source_ip=10.0.0.1", "", 400, "", `no parameter \"source_ip\" at GET /v1/hints; expected none`},
		{"PUT", "/v1/hints?source_ip=10.0.0.1", aHint, 400, "", "expected none"},
		{"PUT", "/v1/hints", "", 400, "", "the body: it ends too early; expected one JSON object"},
		{"PUT", "/v1/hints", aHint[:40], 400, "", "the body: it ends too early"},
		{"PUT", "/v1/hints", aHint + aHint, 400, "", "there is text after the object"},
		{"PUT", "/v1/hints", aHint + "x", 400, "", "the body: "},
		{"PUT", "/v1/hints", "[" + aHint + "]", 400, "", "it is [, not an object"},
		{"PUT", "/v1/hints", "source_ip=10.1.0.5", 400, "", "the body: invalid character"},
		{"PUT", "/v1/hints", "null", 400, "", "not an object"},
		{"PUT", "/v1/hints", put(`"source_ip"`, `"source"`), 400, "", `unknown key \"source\"; known here: source_ip, destination_ip, source_qp, destination_qp`},
		{"PUT", "/v1/hints", put(`"source_ip"`, `"Source"`), 400, "", `unknown key \"Source\"`},
		{"PUT", "/v1/hints", put(`"source_qp":17`, `"vlan":1,"source_qp":17`), 400, "", `unknown key \"vlan\"`},
		{"PUT", "/v1/hints", put(`"source_qp":17`, `"source_qp":17,"source_qp":17`), 400, "", "source_qp is given twice"},
		{"PUT", "/v1/hints", put(`,"source_qp":17`, ""), 400, "", "source_qp: missing; expected a whole number, 2 to 16777214"},
		{"PUT", "/v1/hints", put("17", `"17"`), 400, "", "source_qp is not a number"},
		{"PUT", "/v1/hints", put("17", "[17]"), 400, "", "source_qp is not a number"},
		{"PUT", "/v1/hints", put("17", "1.5"), 400, "", `source_qp: \"1.5\" is not a whole number`},
		{"PUT", "/v1/hints", put("17", "1"), 400, "", `source_qp: \"1\" is too low`},
		{"PUT", "/v1/hints", put("17", "16777215"), 400, "", `source_qp: \"16777215\" is too high`},
		{"PUT", "/v1/hints", put(`"10.1.0.5"`, "10"), 400, "", "source_ip is not a string"},
		{"PUT", "/v1/hints", put("10.1.0.5", "host"), 400, "", `source_ip: \"host\" is not an IP address`},
		{"PUT", "/v1/hints", put("10.1.0.5", "fd00::1"), 400, "", "destination_ip: 10.9.0.9 is not of the same IP version"},
		{"PUT", "/v1/hints", put("10.1.0.5", strings.Repeat("1", maxBody)), 413, "", "the body is longer than 4096 bytes; expected one JSON object"},
		{"DELETE", "/v1/hints", "", 400, "", "the query: source_ip: missing"},
		{"DELETE", "/v1/hints?source_ip=10.1.0.5&destination_ip=10.9.0.9&source_qp=17", "", 400, "", "the query: destination_qp: missing"},
		{"DELETE", "/v1/hints?qp=1", "", 400, "", `no parameter \"qp\" at DELETE /v1/hints; expected source_ip, destination_ip, source_qp, destination_qp`},
	} {
		status, header, got := g.ask(t, c.method, c.path, c.body)
		if status != c.status || header.Get("Allow") != c.allow || !strings.HasPrefix(got, `{"error":"`) || !strings.Contains(got, c.want) {
			t.Errorf("%s %.60s %.60s: status %d, want %d, Allow %q\n got %s\nwant %s", c.method, c.path, c.body, status, c.status, header.Get("Allow"), got, c.want)
		}
	}
	g.want(t, "GET", HintsPath, "", 200, `{"hints":[],"capacity":65536,"host_hints":[]}`)
}

// TestNotHTTP: whatever else comes in ends the connection, not the API.
func TestNotHTTP(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	for _, text := range []string{"", "\x00\x01\x02\r\n\r\n", "GET /v1/flows HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 2*maxHeader) + "\r\n\r\n"} {
		c, err := net.Dial("unix", g.path)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(c, text); _ = c.(*net.UnixConn).CloseWrite() }()
		b, _ := io.ReadAll(c) // the server may reset the connection
		if strings.Contains(string(b), " 200 ") {
			t.Errorf("%.20q was answered with %s", text, b)
		}
		_ = c.Close()
	}
	g.want(t, http.MethodGet, FlowsPath, "", 200, `{"flows":[`)
}

// TestHealth: 200 while all ports forward, 503 with what happened while one doesn't.
func TestHealth(t *testing.T) {
	g := newGate(t, 1)
	g.problems = map[string]string{}
	g.run(0)
	g.want(t, http.MethodGet, HealthPath, "", 200, `{"healthy":true,"problems":{}}`)
	g.problems = map[string]string{"wan": "interface eth1 is gone"}
	g.want(t, http.MethodGet, HealthPath, "", 503, `{"healthy":false,"problems":{"wan":"interface eth1 is gone"}}`)
}
