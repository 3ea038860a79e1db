package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
)

// answered is what a gateway with three flows answers, in the order of its tables.
const answered = `{"flows":[
{"port":"wan","source_ip":"fd00:18::1","destination_ip":"fd00:18::2","source_qp":null,"destination_qp":438,"vlan":[100,7],"qp_state":"candidate","qp_evidence":"port","qp_packets":0,"qp_contradictions":1,"transport":"RC","packets":12,"bytes":1104,"ecn_marked":0,"notifications":{},"candidate_qp":439,"age_ns":0},
{"port":"dc","source_ip":"198.18.0.2","destination_ip":"198.18.0.1","source_qp":421,"destination_qp":61,"qp_state":"confirmed","qp_evidence":"psn","qp_packets":33,"qp_contradictions":0,"transport":"RC","packets":864,"bytes":933120,"queued_bytes":21600,"ecn_marked":277,"notifications":{"long-haul-cnp":7,"fast-cnp":2},"unresponsive":true,"ended":"dreq","age_ns":1234567,"rate_bps":9850123456},
{"port":"dc","source_ip":"198.18.0.2","destination_ip":"198.18.0.1","source_qp":420,"destination_qp":60,"qp_state":"confirmed","qp_evidence":"hint","qp_packets":1,"qp_contradictions":0,"transport":"RC","packets":9,"bytes":9720,"ecn_marked":0,"notifications":{},"age_ns":4123456789,"rate_bps":0}
],"more":false}
`

const shownWide = `PORT  VLAN   SOURCE      QP    DESTINATION  QP   RATE      AGE     PACKETS  BYTES   QUEUED  MARKED  REACTS  QP_STATE   ENDED  QP_EVIDENCE  QP_PACKETS  QP_CONTRADICTIONS  NOTIFICATIONS
dc    -      198.18.0.2  420   198.18.0.1   60   0bps      4.12s   9        9.72KB  0B      0       -       confirmed  -      hint         1           0                  -
dc    -      198.18.0.2  421   198.18.0.1   61   9.85Gbps  1.23ms  864      933KB   21.6KB  277     no      confirmed  dreq   psn          33          0                  fast-cnp:2,long-haul-cnp:7
wan   100.7  fd00:18::1  439?  fd00:18::2   438  -         0s      12       1.1KB   0B      0       -       candidate  -      port         -           1                  -
`

const shown = `PORT  VLAN   SOURCE      QP    DESTINATION  QP   RATE      QUEUED  REACTS  ENDED
dc    -      198.18.0.2  420   198.18.0.1   60   0bps      0B      -       -
dc    -      198.18.0.2  421   198.18.0.1   61   9.85Gbps  21.6KB  no      dreq
    notifications: fast-cnp:2,long-haul-cnp:7
wan   100.7  fd00:18::1  439?  fd00:18::2   438  -         0B      -       -
Not shown: QP_CONTRADICTIONS, QP_PACKETS, QP_EVIDENCE, AGE, BYTES, PACKETS,
QP_STATE, MARKED (--wide).
`

// TestVLANColumn: a flow's place, in a tunnel or not.
func TestVLANColumn(t *testing.T) {
	for _, c := range []struct {
		tunnel string
		id     uint32
		vids   []uint16
		want   string
	}{
		{"", 0, nil, "-"}, {"", 0, []uint16{100, 7}, "100.7"}, {"vxlan", 5000, nil, "vxlan:5000"}, {"gre", 1 << 31, []uint16{7}, "gre:2147483648.7"}, {"srv6", 0, nil, "srv6:0"},
	} {
		if got := columns.PlaceText(c.tunnel, c.id, c.vids); got != c.want {
			t.Errorf("%q %d %v: %q, want %q", c.tunnel, c.id, c.vids, got, c.want)
		}
	}
}

// counted is what a gateway of two ports answers that has forwarded three frames and dropped two.
const counted = `{"gateway":"gw","counters":{"received_packets_total":6,"forwarded_packets_total":4,"dropped_packets_total":{"queue-full-bytes":2,"shutdown":0},"flows":7},"ports":[
{"name":"dc","role":"fabric","peer":"wan","counters":{"received_packets_total":5,"forwarded_packets_total":1,"dropped_packets_total":{"queue-full-bytes":0,"shutdown":0}},"rate_bps":2500000000,"k_min_bytes":32000,"k_max_bytes":64000,"queue_capacity_bytes":1048576,"queues":[{"class":"all","queue_depth_bytes":0,"queue_watermark_bytes":70}],"facts":{"driver":"net_af_packet","interface":"eth1","mac":"02:00:00:00:00:01","mtu":9000,"link_up":true,"speed_bps":25000000000}},
{"name":"wan","role":"wan","peer":"dc","counters":{"received_packets_total":1,"forwarded_packets_total":3,"dropped_packets_total":{"queue-full-bytes":2,"shutdown":0},"notifications_sent_total":{"fast-cnp":3}},"device":{"device_missed_packets_total":9}}],"histograms":[
{"name":"reaction_time_nanoseconds","port":"dc","count":4,"sum":18000,"buckets":[{"at_most":4096,"count":3},{"at_most":16384,"count":1}]},
{"name":"reaction_time_nanoseconds","port":"wan","count":0,"sum":0,"buckets":[]},
{"name":"queue_occupancy_bytes","port":"wan","class":"all","count":2,"sum":3000,"buckets":[{"at_most":1024,"count":1},{"at_most":2048,"count":1}]},
{"name":"loop_gap_nanoseconds","worker":"0","count":100,"sum":2000000000,"buckets":[{"at_most":128,"count":99},{"count":1}]}]}
`

// congested is what a gateway answers that was congested twice, the second time still.
const congested = `{"episodes":[
{"id":1,"port":"wan","class":"data","start":"2026-01-02T03:04:05.006Z","end":"2026-01-02T03:04:07.256Z","peak_bytes":90000,"ecn_marked":12,"notifications":{"fast-cnp":3},"notifications_observed":2,"notifications_lost":7,
"flows":[{"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18,"bytes":500000,"queued_bytes":60000,"notifications":3,"rate_before_bps":2500000000,"rate_after_bps":1250000,"slowed":true},
{"source_ip":"10.1.0.2","destination_ip":"10.2.0.1","source_qp":null,"destination_qp":19,"bytes":4000,"queued_bytes":3000,"notifications":0}],
"senders":[{"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18,"notifications":3},
{"source_ip":"10.1.0.3","destination_ip":"10.2.0.1","source_qp":null,"destination_qp":20,"bytes":30,"queued_bytes":20,"notifications":1,"rate_before_bps":9000000,"rate_after_bps":9000000,"slowed":false}],"more_senders":0},
{"id":2,"port":"wan","class":"data","start":"2026-01-02T04:00:00Z","end":null,"peak_bytes":50,"ecn_marked":0,"notifications":{},"notifications_observed":0,"flows":[],"senders":[],"more_senders":0}]}
`

const shownEpisodes = `1: queue wan/data from 2026-01-02 03:04:05.006, 2.25s; peak 90KB; 12 packets
  marked; notifications: fast-cnp:3; observed, not sent: 2; 7 notifications of
  the gateway were overwritten before they were counted
  SOURCE    QP  DESTINATION  QP  BYTES  NOTIFIED  BEFORE   AFTER     SLOWED
  10.1.0.1  17  10.2.0.1     18  500KB  3         2.5Gbps  1.25Mbps  yes
  10.1.0.2  -   10.2.0.1     19  4KB    0         -        -         -
  10.1.0.3  -   10.2.0.1     20  30B    1         9Mbps    9Mbps     no
Not shown: QUEUED (--wide).
2: queue wan/data from 2026-01-02 04:00:00.000, ongoing; peak 50B; 0 packets
  marked; notifications: -
  SOURCE  QP  DESTINATION  QP  BYTES  QUEUED  NOTIFIED  BEFORE  AFTER  SLOWED
`

// proxied is what a gateway with two proxies answers.
const proxied = `{"proxies":[
{"prefix":"10.1.0.0/16","proxy":"10.1.0.1","origin":"static"},
{"prefix":"2001:db8:1::/48","proxy":"10.1.0.1","origin":"bgp"}
]}
`

const shownProxies = `PREFIX           PROXY     ORIGIN
10.1.0.0/16      10.1.0.1  static
2001:db8:1::/48  10.1.0.1  bgp
`

const speaking = `{"running":true,"as":65001,"router_id":"192.0.2.9","announced":["10.1.0.0/16"],"prefixes_learned":5,"peers":[
{"address":"192.0.2.10","as":65002,"session_state":"established","uptime_ns":3723000000000,"announced":1,"received":9,"learned":5,"ignored":{"no-attribute":3,"malformed":1}},
{"address":"2001:db8::10","as":65001,"session_state":"active","problem":"the session has ended","uptime_ns":0,"announced":0,"received":0,"learned":0,"ignored":{},"stale":true}]}
`

const shownBGP = `AS 65001, router ID 192.0.2.9; 1 prefixes announced, 5 learned
PEER          AS     STATE                UPTIME  ANNOUNCED  RECEIVED  LEARNED
192.0.2.10    65002  established          1h2m3s  1          9         5
    malformed:1,no-attribute:3
2001:db8::10  65001  active (restarting)  -       0          0         0
    the session has ended
`

const observedOnly = "Observe mode of port wan: nobody is notified; notifications and marks are those\nthat would have been.\n"

const ailing = `{"healthy":false,"problems":{"wan":"no link"},"notices":["gw.yaml differs"]}
`

const shownPorts = `PORT  PEER  RATE     RX    TX    RX_PACKETS  DROPPED  MARKED  NOTIFICATIONS
dc    wan   2.5Gbps  0bps  0bps  5           0        0       0
    net_af_packet on eth1, MAC 02:00:00:00:00:01, MTU 9000, link up at 25Gbps
wan   dc    0bps     0bps  0bps  1           2        0       3
    no link
Not shown: RX_PPS, TX_PPS, ROLE, TX_PACKETS (--wide).
`

const shownPortsOnce = `PORT  PEER  RATE     RX_PACKETS  TX_PACKETS  DROPPED  MARKED  NOTIFICATIONS
dc    wan   2.5Gbps  5           1           0        0       0
    net_af_packet on eth1, MAC 02:00:00:00:00:01, MTU 9000, link up at 25Gbps
wan   dc    0bps     1           3           2        0       3
    no link
Not shown: ROLE (--wide).
`

// hinted is what a gateway with two hints answers.
const hinted = `{"hints":[
{"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18},
{"source_ip":"fd00::1","destination_ip":"fd00::2","source_qp":19,"destination_qp":20,"tags":"10","tunnel":"vxlan:5000"}],"capacity":65536}
`

const shownHints = `SOURCE    QP  DESTINATION  QP  TAGS  TUNNEL
10.1.0.1  17  10.2.0.1     18  -     -
fd00::1   19  fd00::2      20  10    vxlan:5000
`

// streamed is what a gateway streams that ends after two notifications.
const streamed = `{"notification":{"time":"2026-01-02T03:04:05.006Z","worker":0,"number":1,"outcome":"sent","why":"because","port":"wan","class":"all","sent_by":"dc","kind":"standard-cnp","action":"notify","level":180,"source_ip":"10.1.0.1","destination_ip":"10.9.0.9","source_qp":17,"destination_qp":18,"qp_state":"confirmed","qp_evidence":"psn","flow_bytes":1,"flow_queued_bytes":1,"flow_rate_bps":null,"trigger":"depth","threshold":1,"queue_depth_bytes":1,"growth_bytes_per_millisecond":0,"marking_percent":0}}
{"lost":3}
`

const shownStream = `TIME             KIND          ACTION    SOURCE       QP    DESTINATION  QP
03:04:05.006000  standard-cnp  notify    10.1.0.1     17    10.9.0.9     18
    because
3 notifications were overwritten before they could be read
`

// shownByRate are two columns of the two fastest flows.
const shownByRate = `RATE      DESTINATION_QP
9.85Gbps  61
0bps      60
`

const shownQueues = `PORT  CLASS  DEPTH  PEAK  Q_REF/K_MIN  NOTIFIES_ABOVE  CAPACITY
dc    all    0B     70B   32KB         64KB            1.05MB
`

const shownCounters = `COUNTER                                  DC  WAN  ALL
received_packets_total                   5   1    6
forwarded_packets_total                  1   3    4
dropped_packets_total{queue-full-bytes}  0   2    2
notifications_sent_total{fast-cnp}       0   3    3
device_missed_packets_total              0   9    9
flows                                    -   -    7

HISTOGRAM                  PORT  VALUES  MEAN   P50 <=   P99 <=    MAX <=
reaction_time_nanoseconds  dc    4       4.5µs  4.096µs  16.384µs  16.384µs
queue_occupancy_bytes      wan   2       1500   1024     2048      2048
loop_gap_nanoseconds       -     100     20ms   128ns    128ns     -
Not shown: CLASS, WORKER (--wide).
`

const versioned = `{"gateway":"gw","version":"v1.2.3","start_time":"2026-01-02T03:04:05Z","config_hash":"0123","go_version":"go1.26","platform":"linux/amd64"}
`

const shownVersion = "running: gw, v1.2.3 (go1.26, linux/amd64), since 2026-01-02T03:04:05Z, configuration 0123\n"

// gatewayAt answers GET /v1/flows and /v1/counters at a socket with a text, as a whole or cut off.
func gatewayAt(t *testing.T, path, text string, whole bool) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/{resource}", func(w http.ResponseWriter, r *http.Request) {
		text := text
		switch resource := r.PathValue("resource"); {
		case resource == "counters" && whole:
			text = counted
		case resource == "bgp" && whole && text == answered:
			text = speaking
		case resource == "bgp" && whole:
			text = `{"running":false,"announced":[],"prefixes_learned":0,"peers":[]}`
		case resource == "bgp":
			text = `{"running":false,"error":"BGP: no address","announced":[],"prefixes_learned":0,"peers":[]}`
		case resource == "proxies" && whole && text == answered:
			text = proxied
		case resource == "proxies":
			text = `{"proxies":[]}`
		case resource == "version" && whole:
			text = versioned
		case resource == "log-level" && whole:
			text = `{"log_level":"debug","configured":"info"}`
		case resource == "health" && whole:
			w.WriteHeader(http.StatusServiceUnavailable)
			text = ailing
		case resource == "senders":
			text = `{"senders":[]}`
		case resource == "episodes" && whole && text == answered:
			text = congested
		case resource == "episodes":
			text = `{"episodes":[]}`
		case resource == "hints":
			text = hinted
		case resource == "explain" && whole && text == answered:
			text = explained
		case resource == "explain":
			text = unexplained
		case resource == "mode" && text != answered && whole:
			text = `{"ports":[{"port":"wan","mode":"observe","configured":"send"},{"port":"dc","mode":"send","configured":"send"}]}`
		case resource == "mode":
			text = `{"ports":[{"port":"wan","mode":"send","configured":"send"}]}`
		case resource == "config" && whole:
			text = `{"file":"gw.yaml","config_hash":"0123","text":"gateway: {}\n","effective":"gateway: {}\n# dpdk:\n"}`
		}
		_, _ = io.WriteString(w, text)
		if !whole {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	mux.HandleFunc("GET /v1/notifications/stream", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, streamed) })
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"changes":["ports[0].rate"],"config_hash":"0123","values":[{"key":"ports[0].rate","before":"10Gbps","after":"40Gbps"}]}`)
	})
	mux.HandleFunc("POST /v1/mark", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"time":"2026-01-02T03:04:05Z"}`)
	})
	serve(t, l, mux)
}

func TestShow(t *testing.T) {
	t.Setenv("TZ", "UTC")
	dir := workspace(t)
	gatewayAt(t, filepath.Join(dir, "gw.sock"), answered, true)
	gatewayAt(t, filepath.Join(dir, "idle.sock"), "{\"flows\":[\n],\"more\":false}\n", true)
	gatewayAt(t, filepath.Join(dir, "cut.sock"), answered[:len(answered)/2], false)
	gatewayAt(t, filepath.Join(dir, "broken.sock"), `{"flows":7}`, true)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "dead.sock")})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "api.yaml", []byte(goodConfig+"management: {listen: \"unix:"+filepath.Join(dir, "gw.sock")+"\"}\n"))
	own := within(t, dir, "version").stdout
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string // the whole, and a part; "" for nothing at all
	}{
		{"show flows --socket gw.sock", 0, shown, ""},
		{"show flows --socket unix:gw.sock --wide", 0, shownWide, ""},
		{"show flows --config api.yaml -o text", 0, shown, ""},
		{"show flows --socket gw.sock -o json", 0, answered, ""},
		{"show flows --socket gw.sock --interval 0", 0, shown, ""},
		{"show flows --socket gw.sock --interval 1ms", 1, "", "--interval is 1ms, expected 10ms to 5s, or 0 for no rates"},
		{"show flows -c api.yaml --output json", 0, answered, ""},
		{"show flows --socket idle.sock", 0, observedOnly + "no such flow\n", ""},
		{"show senders --socket idle.sock", 0, observedOnly + "no sender has a flow\n", ""},
		{"show flows --socket cut.sock", 1, "", "the answer of the gateway at cut.sock: unexpected EOF; try again"},
		{"show flows --socket cut.sock -o json", 1, answered[:len(answered)/2], "the answer is incomplete"},
		{"show flows --socket broken.sock", 1, "", "the answer of the gateway at broken.sock: json: "},
		{"show flows --socket none.sock", 1, "", "no socket at none.sock: the gateway isn't running, or its management.listen isn't unix:none.sock;"},
		{"show flows --socket dead.sock", 1, "", "nothing answers at dead.sock: its gateway has ended"},
		{"show flows --socket gw.yaml", 1, "", "gw.yaml is not a socket"},
		{"show flows --socket=", 1, "", "--socket is empty; expected the path of the gateway's socket"},
		{"show flows --config gw.yaml", 1, "", "gw.yaml has no management.listen, so its gateway has no API; expected one such as unix:/run/cnpgate/cnpgate.sock"},
		{"show flows --config none.yaml", 1, "", "none.yaml"},
		{"show flows --config api.yaml --socket gw.sock", 1, "", "--config and --socket exclude each other"},
		{"show flows -o xml", 1, "", `--output: "xml" is not known; expected text or json`},
		{"show flows more", 1, "", `"more"`},
		{"show counters --socket gw.sock", 0, shownCounters, ""},
		{"show counters --socket gw.sock -o json", 0, counted, ""},
		{"show counters --socket none.sock", 1, "", "no socket at none.sock"},
		{"show counters --socket cut.sock", 1, "", "the answer of the gateway at cut.sock: unexpected EOF; try again"},
		{"show ports --socket gw.sock --interval 10ms", 0, shownPorts, ""},
		{"show ports --socket gw.sock --interval 0", 0, shownPortsOnce, ""},
		{"show notifications --follow --socket gw.sock", 0, shownStream, ""},
		{"show notifications -f --socket gw.sock -o json", 0, streamed, ""},
		{"show counters --mark --socket gw.sock", 0, "marked at 03:04:05\n", ""},
		{"show counters --mark --socket none.sock", 1, "", "no socket at none.sock"},
		{"hint --socket gw.sock", 0, shownHints, ""},
		{"hint --socket gw.sock -o json", 0, hinted, ""},
		{"show flows --socket gw.sock --sort rate -n 2 --columns rate,Destination_QP", 0, shownByRate, ""},
		{"show flows --socket gw.sock --sort rate -o json", 1, "", "--sort and --columns are for text"},
		{"show counters --socket gw.sock --since-mark", 0, shownCounters, ""},
		{"show ports --socket gw.sock -o json", 0, counted, ""},
		{"show ports --socket none.sock", 1, "", "no socket at none.sock"},
		{"show queues --socket gw.sock", 0, shownQueues, ""},
		{"show health --socket gw.sock", 1, "wan: no link\ngw.yaml differs\n", "not all ports forward"},
		{"show health --socket gw.sock -o json", 1, ailing, "not all ports forward"},
		{"show config --socket gw.sock", 0, "# gw.yaml, SHA-256 0123\n# gw.yaml differs\ngateway: {}\n# dpdk:\n", ""},
		{"show config --as-read --socket gw.sock", 0, "# gw.yaml, SHA-256 0123\ngateway: {}\n", ""},
		{"show config --diff --socket gw.sock", 0, "dry run; would change: ports[0].rate\n  ports[0].rate: 10Gbps -> 40Gbps\n", ""},
		{"show config --diff --as-read --socket gw.sock", 1, "", "exclude each other"},
		{"set mode --socket gw.sock", 0, "PORT  MODE  AFTER A RELOAD\nwan   send  send\ngw.yaml differs\n", ""},
		{"show proxies --socket gw.sock", 0, shownProxies, ""},
		{"show proxies --socket gw.sock -o json", 0, proxied, ""},
		{"show proxies --socket idle.sock", 0, "No sender is behind a proxy: the configuration has no proxy.senders, or\nproxy.enabled is false, and no protocol has learned one.\n", ""},
		{"show proxies --socket none.sock", 1, "", "no socket at none.sock"},
		{"show proxies --bgp --socket gw.sock", 0, shownBGP, ""},
		{"show proxies --bgp --socket gw.sock -o json", 0, speaking, ""},
		{"show proxies --bgp --socket idle.sock", 0, "The configuration has no proxy.bgp, or proxy.enabled is false.\n", ""},
		{"show proxies --bgp --socket none.sock", 1, "", "no socket at none.sock"},
		{"version --socket gw.sock", 0, own + shownVersion, ""},
		{"version --socket none.sock", 1, own, "no socket at none.sock"},
		{"set log-level --socket gw.sock", 0, "log level debug (info after a reload)\n", ""},
		{"set log-level --socket none.sock", 1, "", "no socket at none.sock"},
		{"show episodes --socket gw.sock", 0, shownEpisodes, ""},
		{"show episodes --socket idle.sock", 0, observedOnly + "no congestion since the gateway started\n", ""},
		{"show episodes --socket gw.sock -o json", 0, congested, ""},
		{"show health --socket none.sock --watch 1s", 1, "", "no socket at none.sock"},
		{"show flows --socket gw.sock --watch 1ms", 1, "", "--watch is 1ms, expected at least 100ms"},
		{"show counters more", 1, "", `"more"`},
		{"show", 1, "", "  notifications  Print the latest notifications of the running gateway"},
		{"show pairs --socket gw.sock", 1, "", "show pairs was removed; use cnpgate show flows"},
		{"show connections --bad", 1, "", "show connections was removed; use cnpgate show health --rdma"},
		{"mark", 1, "", "mark was removed; use cnpgate show counters --mark"},
		{"show flow", 1, "", `unknown command "flow"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := within(t, dir, strings.Fields(c.args)...)
			if got.status != c.status || got.stdout != c.stdout || !tells(got.stderr, c.stderr) {
				t.Errorf("exit status %d, want %d\nstdout: %s\nwant    %s\nstderr: %s\nwant    %s", got.status, c.status, got.stdout, c.stdout,
					got.stderr, c.stderr)
			}
			for line := range strings.SplitSeq(got.stdout, "\n") {
				if strings.HasPrefix(c.args, "show ") && len([]rune(line)) > usualColumns && !strings.Contains(c.args, "json") && !strings.Contains(c.args, "--wide") {
					t.Errorf("a line of %d columns, expected at most %d:\n%s", len([]rune(line)), usualColumns, line)
				}
			}
		})
	}
}

// TestShowWithoutPermission: the error says whose the socket is.
func TestShowWithoutPermission(t *testing.T) {
	dir := workspace(t)
	path := filepath.Join(dir, "gw.sock")
	gatewayAt(t, path, answered, true)
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mode := os.FileMode(0o660)
	if nobody() == nil {
		mode = 0
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	c := command(dir, "show", "flows", "--socket", path)
	c.SysProcAttr = nobody()
	got := finished(t, c)
	if want := "no permission to connect to " + path + " (mode 0"; got.status != 1 || !strings.Contains(got.stderr, want) ||
		!strings.Contains(got.stderr, "expected root, the owner, or a member of the socket's group") {
		t.Errorf("exit status %d, stderr %q", got.status, got.stderr)
	}
}

// TestShowCannotBeWritten: standard output is full.
func TestShowCannotBeWritten(t *testing.T) {
	dir := workspace(t)
	gatewayAt(t, filepath.Join(dir, "gw.sock"), answered, true)
	for _, output := range []string{"text", "json"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := command(dir, "show", "flows", "--socket", "gw.sock", "-o", output)
		c.Stdout = full
		if got := finished(t, c); got.status != 1 || !strings.Contains(got.stderr, "no space left on device") {
			t.Errorf("%s: exit status %d, stderr %q", output, got.status, got.stderr)
		}
		_ = full.Close()
	}
}

// TestWatchInterrupted: Ctrl-C is how --watch ends, also during a request.
func TestWatchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := showFlags{watch: time.Second}
	err := f.repeat(ctx, io.Discard, func(io.Writer) error {
		cancel()
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}

// serve answers requests at a listener until the test ends.
func serve(t *testing.T, l net.Listener, h http.Handler) {
	server := http.Server{Handler: h}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
}

// TestNoHints: that there are none is said.
func TestNoHints(t *testing.T) {
	var text strings.Builder
	if err := printHints(&text, &api.HintsBody{}); err != nil || text.String() != "no hint is in force\n" {
		t.Errorf("%v, %q", err, &text)
	}
}
