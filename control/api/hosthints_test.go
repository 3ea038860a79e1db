package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

var noon = time.Unix(1_700_000_000, 0)

func hostSays(source string, sourceQP uint32, destination string, destinationQP uint32) fleet.Hint {
	h := fleet.Hint{Source: netip.MustParseAddr(source), SourceQP: sourceQP, DestinationQP: destinationQP}
	if destination != "" {
		h.Destination = netip.MustParseAddr(destination)
	}
	return h
}

// TestHostHints: they are valid for their lifetime, may be repeated and withdrawn, and those of another host stay.
func TestHostHints(t *testing.T) {
	h := newHints(noMap)
	a, b := hostSays("10.1.0.1", 17, "10.2.0.1", 30), hostSays("10.1.0.1", 18, "", 31)
	now := noon
	take := func(host string, m fleet.HintMessage, taken, withdrawn int) {
		t.Helper()
		if n, w, err := h.takeHost(host, &m, now); err != nil || n != taken || w != withdrawn {
			t.Errorf("%+v: %d taken, %d withdrawn, %v; expected %d, %d", m, n, w, err, taken, withdrawn)
		}
	}
	says := func(want ...string) {
		t.Helper()
		h.expire(now)
		var got []string
		for _, v := range h.listHosts(now) {
			got = append(got, fmt.Sprintf("%s: %d to %d, %dms", v.Host, v.SourceQP, v.DestinationQP, v.Remaining))
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("%q, expected %q", got, want)
		}
	}
	take("h1", fleet.HintMessage{Lifetime: 4000, Hints: []fleet.Hint{a, b}}, 2, 0)
	says("h1: 17 to 30, 4000ms", "h1: 18 to 31, 4000ms")
	now = now.Add(3 * time.Second)
	take("h1", fleet.HintMessage{Lifetime: 2000, Hints: []fleet.Hint{a}}, 1, 0)
	says("h1: 17 to 30, 2000ms", "h1: 18 to 31, 1000ms")
	now = now.Add(time.Second)
	says("h1: 17 to 30, 1000ms")
	other := a
	other.SourceQP = 19
	take("h2", fleet.HintMessage{Lifetime: 9000, Hints: []fleet.Hint{other}}, 0, 0) // of the same direction
	take("h2", fleet.HintMessage{Withdrawn: []fleet.Hint{a}}, 0, 0)
	says("h1: 17 to 30, 1000ms")
	take("h1", fleet.HintMessage{Lifetime: 9000, Hints: []fleet.Hint{other}, Withdrawn: []fleet.Hint{a}}, 1, 1) // the QP was replaced
	take("h1", fleet.HintMessage{Withdrawn: []fleet.Hint{a}}, 0, 0)                                             // late
	says("h1: 19 to 30, 9000ms")
	take("h1", fleet.HintMessage{Withdrawn: []fleet.Hint{other}}, 0, 1)
	says()
	if len(h.hosts) != 0 {
		t.Errorf("hosts without hints are counted: %v", h.hosts)
	}
}

// TestHostHintsAreChecked: a message with a hint that can't be is refused, and nothing of it is taken.
func TestHostHintsAreChecked(t *testing.T) {
	good := hostSays("10.1.0.1", 17, "10.2.0.1", 30)
	tags := func(tags, tunnel string) fleet.Hint {
		h := good
		h.Tags, h.Tunnel = tags, tunnel
		return h
	}
	for name, c := range map[string]struct {
		hint fleet.Hint
		want string
	}{
		"no source":           {fleet.Hint{SourceQP: 17, DestinationQP: 30}, "expected addresses"},
		"a zone":              {hostSays("fe80::1%eth0", 17, "", 30), "without a zone"},
		"two versions":        {hostSays("10.1.0.1", 17, "2001:db8::1", 30), "of the same IP version"},
		"itself":              {hostSays("10.1.0.1", 17, "10.1.0.1", 30), "expected another address"},
		"the GSI":             {hostSays("10.1.0.1", 1, "", 30), "expected 2 to 16777214"},
		"no destination QP":   {hostSays("10.1.0.1", 17, "", 0), "expected 2 to 16777214"},
		"a wide QP":           {hostSays("10.1.0.1", 17, "", 1<<24), "expected 2 to 16777214"},
		"tags":                {tags("many", ""), "tags"},
		"two tags, in tunnel": {tags("10/20", "vxlan:5"), "one VID counts"},
	} {
		h := newHints(noMap)
		_, _, err := h.takeHost("h", &fleet.HintMessage{Lifetime: 4000, Hints: []fleet.Hint{good, c.hint}}, noon)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(h.ofHosts) > 0 {
			t.Errorf("%s: %v, %d hints; expected %q", name, err, len(h.ofHosts), c.want)
		}
	}
}

// TestHostHintsAreBounded: a host has at most its part of the space, and all together with the hints of both directions have the whole.
func TestHostHintsAreBounded(t *testing.T) {
	h := newHints(noMap)
	fill := func(host string, n int) (err error) {
		for i := 0; i < n && err == nil; i += fleet.MaxHintsAMessage {
			m := fleet.HintMessage{Lifetime: 4000}
			for j := i; j < min(n, i+fleet.MaxHintsAMessage); j++ {
				m.Hints = append(m.Hints, hostSays("10.1.0."+host, uint32(2+j), "", uint32(2+j)))
			}
			_, _, err = h.takeHost(host, &m, noon)
		}
		return err
	}
	var f *failure
	if err := fill("1", maxHostHints+1); !errors.As(err, &f) || f.status != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "of one host") {
		t.Errorf("one host: %v", err)
	}
	if _, _, err := h.put(config.QPPair{Source: netip.MustParseAddr("10.9.0.1"), Destination: netip.MustParseAddr("10.9.0.2"), SourceQP: 5, DestinationQP: 6}); err != nil {
		t.Fatal(err)
	}
	for host := 2; host <= 3; host++ {
		if err := fill(fmt.Sprint(host), maxHostHints); err != nil {
			t.Errorf("host %d: %v", host, err)
		}
	}
	if err := fill("4", maxHostHints); err == nil || !strings.Contains(err.Error(), "65536 hints") {
		t.Errorf("more than fit: %v", err)
	}
	if m, err := h.table(); m == nil || err != nil {
		t.Errorf("table %v, %v", m, err)
	}
	h.expire(noon.Add(4 * time.Second))
	if len(h.ofHosts) != 0 || h.n != 1 {
		t.Errorf("%d hints of hosts, %d others after a lifetime", len(h.ofHosts), h.n)
	}
}

// TestHostHintsProperty: whatever hints of both kinds come and go, the workers' map can be made; and a host's hint never says anything of another
// direction than its own, nor against a hint of both.
func TestHostHintsProperty(t *testing.T) {
	hosts := []string{"10.0.0.1", "10.0.0.2"}
	rapid.Check(t, func(t *rapid.T) {
		h, now := newHints(noMap), noon
		qp := rapid.Uint32Range(2, 4)
		draw := func(t *rapid.T) fleet.Hint {
			d := hosts[1]
			if rapid.Bool().Draw(t, "no destination") {
				d = ""
			}
			return hostSays(hosts[0], qp.Draw(t, "source QP"), d, qp.Draw(t, "destination QP"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				_, _, _ = h.put(config.QPPair{Source: netip.MustParseAddr(hosts[0]), Destination: netip.MustParseAddr(hosts[1]), SourceQP: qp.Draw(t, "a"), DestinationQP: qp.Draw(t, "b")})
			},
			"host": func(t *rapid.T) {
				m := &fleet.HintMessage{Lifetime: rapid.IntRange(1000, 5000).Draw(t, "life"), Hints: []fleet.Hint{draw(t)}, Withdrawn: []fleet.Hint{draw(t)}}
				if _, _, err := h.takeHost(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "host"), m, now); err != nil {
					t.Fatal(err)
				}
			},
			"time": func(*rapid.T) { now = now.Add(time.Second); h.expire(now) },
			"": func(t *rapid.T) {
				m, err := h.table()
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, count := range h.hosts {
					n += count
				}
				if n != len(h.ofHosts) {
					t.Fatalf("%d hints are counted as %d", len(h.ofHosts), n)
				}
				src, dst := packet.AddrFrom(netip.MustParseAddr(hosts[0])), packet.AddrFrom(netip.MustParseAddr(hosts[1]))
				for q := uint32(2); q <= 4; q++ {
					_, known := h.by[direction{netip.MustParseAddr(hosts[1]), netip.MustParseAddr(hosts[0]), q, "", ""}]
					if _, ok := m.Lookup(dst, src, q); ok != known {
						t.Fatalf("packets to QP %d of the host: %v, by a hint of both directions: %v", q, ok, known)
					}
					if both, ok := h.by[direction{netip.MustParseAddr(hosts[0]), netip.MustParseAddr(hosts[1]), q, "", ""}]; ok {
						want := both.SourceQP
						if both.Source.String() == hosts[1] {
							want = both.DestinationQP
						}
						if got, _ := m.Lookup(src, dst, q); got != want {
							t.Fatalf("packets to QP %d: %d, expected %d", q, got, want)
						}
					}
				}
			},
		})
	})
}

// TestHostHintsOnLiveFlows: the agent's hints through the socket confirm the flows of their host, and not those of the other end; they die by
// their lifetime. One without a destination names nothing while two flows match.
func TestHostHintsOnLiveFlows(t *testing.T) {
	g := newGate(t, 2)
	g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.5", Dst: "10.9.0.9", DestQP: 18}, testkit.RoCE{Src: "10.1.0.6", Dst: "10.9.0.9", DestQP: 20})
	g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.7", Dst: "10.9.0.9", DestQP: 22}, testkit.RoCE{Src: "10.1.0.7", Dst: "10.9.0.8", DestQP: 22})
	g.see(t, 1, 1, testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.5", DestQP: 17, Opcode: packet.RCAcknowledge})
	g.run(0, 1)
	const body = `{"lifetime_ms":600000,"hints":[{"source_ip":"10.1.0.5","destination_ip":"10.9.0.9","source_qp":17,"destination_qp":18},` +
		`{"source_ip":"10.1.0.6","source_qp":19,"destination_qp":20},{"source_ip":"10.1.0.7","source_qp":21,"destination_qp":22}]}`
	g.want(t, http.MethodPost, HintsPath, body, 200, `{"taken":3,"withdrawn":0}`)
	g.eventually(t, "?source_ip=10.1.0.5", `"source_qp":17,"destination_qp":18,"qp_state":"confirmed","qp_evidence":"hint"`)
	g.eventually(t, "?source_ip=10.1.0.6", `"source_qp":19,"destination_qp":20,"qp_state":"confirmed","qp_evidence":"hint"`)
	g.eventually(t, "?source_ip=10.1.0.7&destination_ip=10.9.0.8", `"source_qp":null`)
	g.eventually(t, "?source_ip=10.9.0.9", `"source_qp":null,"destination_qp":17`)
	g.want(t, http.MethodPost, HintsPath, `{"withdrawn":[{"source_ip":"10.1.0.6","source_qp":19,"destination_qp":20}]}`, 200, `{"taken":0,"withdrawn":1}`)
	g.eventually(t, "?source_ip=10.1.0.6", `"qp_state":"unknown"`)
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"lifetime_ms":5,"hints":[{"source_ip":"10.1.0.6","source_qp":19,"destination_qp":20}]}`, 400, "expected 1s to 10m0s"},
		{`{"lifetime_ms":5000,"hints":[{"source_ip":"10.1.0.6","source_qp":1,"destination_qp":20}]}`, 400, "hint 1: source_qp 1"},
		{`{"life":5}`, 400, "expected one JSON object, such as"},
		{`{} {}`, 400, "text after the object"},
		{`{"withdrawn":[` + strings.Repeat(" ", 300_000) + `]}`, 413, "longer than"},
	} {
		g.want(t, http.MethodPost, HintsPath, c.body, c.status, c.want)
	}
	g.server.hints.expire(time.Now().Add(11 * time.Minute))
	g.eventually(t, "?source_ip=10.1.0.5", `"qp_state":"unknown"`)
	g.want(t, http.MethodGet, HintsPath, "", 200, `"host_hints":[]`)
}
