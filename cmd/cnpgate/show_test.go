package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// answered is what a gateway with three flows answers, in the order of its tables.
const answered = `{"flows":[
{"port":"wan","source_ip":"fd00:18::1","destination_ip":"fd00:18::2","source_qp":null,"destination_qp":438,"vlan":[100,7],"qp_state":"candidate","qp_evidence":"port","qp_packets":0,"qp_contradictions":1,"transport":"RC","packets":12,"bytes":1104,"ecn_marked":0,"notifications":{}},
{"port":"dc","source_ip":"198.18.0.2","destination_ip":"198.18.0.1","source_qp":421,"destination_qp":61,"qp_state":"confirmed","qp_evidence":"psn","qp_packets":33,"qp_contradictions":0,"transport":"RC","packets":864,"bytes":933120,"ecn_marked":277,"notifications":{"long-haul-cnp":7,"fast-cnp":2},"ended":"dreq"},
{"port":"dc","source_ip":"198.18.0.2","destination_ip":"198.18.0.1","source_qp":420,"destination_qp":60,"qp_state":"confirmed","qp_evidence":"hint","qp_packets":1,"qp_contradictions":0,"transport":"RC","packets":9,"bytes":9720,"ecn_marked":0,"notifications":{}}
],"more":false}
`

const shown = `PORT  VLAN   SOURCE      QP   DESTINATION  QP   STATE             EVIDENCE  TOOK  CONTRADICTIONS  PACKETS  BYTES   MARKED  NOTIFICATIONS
dc    -      198.18.0.2  420  198.18.0.1   60   confirmed         hint      1     0               9        9720    0       -
dc    -      198.18.0.2  421  198.18.0.1   61   confirmed (dreq)  psn       33    0               864      933120  277     fast-cnp 2, long-haul-cnp 7
wan   100.7  fd00:18::1  -    fd00:18::2   438  candidate         port      -     1               12       1104    0       -
`

// gatewayAt answers GET /v1/flows at a socket with a text, as a whole or cut off.
func gatewayAt(t *testing.T, path, text string, whole bool) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/flows", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text)
		if !whole {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	server := http.Server{Handler: mux}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
}

func TestShowFlows(t *testing.T) {
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
	header, _, _ := strings.Cut(shown, "\n")
	header = strings.Join(strings.Fields(header), "  ") + "\n" // as narrow as it can be
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string // the whole, and a part; "" for nothing at all
	}{
		{"show flows --socket gw.sock", 0, shown, ""},
		{"show flows --socket unix:gw.sock", 0, shown, ""},
		{"show flows --config api.yaml -o text", 0, shown, ""},
		{"show flows --socket gw.sock -o json", 0, answered, ""},
		{"show flows -c api.yaml --output json", 0, answered, ""},
		{"show flows --socket idle.sock", 0, header, ""},
		{"show flows --socket cut.sock", 1, "", "the answer of the gateway at cut.sock: unexpected EOF; try again"},
		{"show flows --socket cut.sock -o json", 1, answered[:len(answered)/2], "the answer is not whole"},
		{"show flows --socket broken.sock", 1, "", "the answer of the gateway at broken.sock: json: "},
		{"show flows --socket none.sock", 1, "", "no socket at none.sock: is the gateway running, and is its management.listen unix:none.sock?"},
		{"show flows --socket dead.sock", 1, "", "nobody answers at dead.sock: the gateway that made it is gone"},
		{"show flows --socket gw.yaml", 1, "", "nobody answers at gw.yaml"},
		{"show flows --socket=", 1, "", "--socket is empty; expected the path of the gateway's socket"},
		{"show flows --config gw.yaml", 1, "", "gw.yaml has no management.listen, so its gateway has no API; expected such as unix:/run/cnpgate/cnpgate.sock"},
		{"show flows --config none.yaml", 1, "", "none.yaml"},
		{"show flows --config api.yaml --socket gw.sock", 1, "", "[config socket] were all set"},
		{"show flows -o xml", 1, "", `--output is "xml", expected "text" or "json"`},
		{"show flows more", 1, "", `"more"`},
		{"show", 1, "", "show what? Expected cnpgate show flows"},
		{"show flow", 1, "", `unknown command "flow"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := cnpgate(t, dir, strings.Fields(c.args)...)
			if got.status != c.status || got.stdout != c.stdout || !tells(got.stderr, c.stderr) {
				t.Errorf("exit status %d, want %d\nstdout: %s\nwant    %s\nstderr: %s\nwant    %s", got.status, c.status, got.stdout, c.stdout,
					got.stderr, c.stderr)
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
