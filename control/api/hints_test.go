package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

func TestHints(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	hint := func(src, dst string, sqp, dqp int) string {
		return fmt.Sprintf(`{"source_ip":%q,"destination_ip":%q,"source_qp":%d,"destination_qp":%d}`, src, dst, sqp, dqp)
	}
	named := func(src, dst string, sqp, dqp int) string {
		return fmt.Sprintf("%s?source_ip=%s&destination_ip=%s&source_qp=%d&destination_qp=%d", HintsPath, src, dst, sqp, dqp)
	}
	const a, b, z = "10.1.0.1", "10.1.0.2", "10.9.0.9"
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PUT", HintsPath, hint(a, z, 17, 18), 201, `{"hint":` + hint(a, z, 17, 18) + `,"replaced":[]}`},
		{"PUT", HintsPath, hint(a, z, 17, 18), 200, `{"hint":` + hint(a, z, 17, 18) + `,"replaced":[]}`},
		{"PUT", HintsPath, hint(z, a, 18, 17), 200, `"replaced":[]`}, // the same, said at the other end
		{"PUT", HintsPath, hint("fd00::1", "fd00::2", 2, 16777214), 201, ""},
		{"PUT", HintsPath, hint(b, z, 30, 31), 201, ""},
		{"PUT", HintsPath, hint(b, z, 32, 33), 201, `"replaced":[]`},
		{"PUT", HintsPath, hint(b, z, 30, 33), 201, `"replaced":[` + hint(b, z, 32, 33) + "," + hint(b, z, 30, 31) + "]"}, // both QPs serve a new connection
		{"GET", HintsPath, "", 200, `{"hints":[` + hint(a, z, 17, 18) + "," + hint(b, z, 30, 33) + "," + hint("fd00::1", "fd00::2", 2, 16777214) + `],"capacity":65536,"host_hints":[]}`},
		{"PUT", HintsPath, hint(a, z, 50, 100), 201, ""}, // what qp_map says
		{"PUT", HintsPath, hint(a, z, 51, 100), 409, "the source QP of packets from 10.1.0.1 to QP 100 at 10.9.0.9 is 50 by the configuration's qp_map, and the hint would make it 51; the operator's map wins"},
		{"PUT", HintsPath, hint(z, a, 99, 50), 409, "from 10.9.0.9 to QP 50 at 10.1.0.1 is 100 by"},
		{"PUT", HintsPath, hint(a, z, 50, 99), 409, "from 10.9.0.9 to QP 50 at 10.1.0.1 is 100 by"},
		{"DELETE", named(a, z, 17, 19), "", 404, "no hint that QP 17 at 10.1.0.1 is connected to QP 19 at 10.9.0.9; GET /v1/hints lists them"},
		{"DELETE", named(a, z, 19, 18), "", 404, "no hint"},
		{"DELETE", named(a, z, 17, 18), "", 200, `{"deleted":` + hint(a, z, 17, 18) + "}"},
		{"DELETE", named(a, z, 17, 18), "", 404, "no hint"},
		{"DELETE", named(z, b, 33, 30), "", 200, ""}, // the other way round
		{"DELETE", named(a, z, 50, 100), "", 200, ""},
		{"GET", HintsPath, "", 200, `{"hints":[` + hint("fd00::1", "fd00::2", 2, 16777214) + "],"},
	} {
		g.want(t, c.method, c.path, c.body, c.status, c.want)
	}
}

// TestHintOnALiveFlow: both directions are confirmed by it, and not any more once it is taken back; qp_map's word stays.
func TestHintOnALiveFlow(t *testing.T) {
	g := newGate(t, 2)
	g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.5", Dst: "10.9.0.9", DestQP: 18}, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100})
	g.see(t, 1, 1, testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.5", DestQP: 17, Opcode: packet.RCAcknowledge})
	g.run(0, 1)
	const of5, of9, of1 = "?source_ip=10.1.0.5", "?source_ip=10.9.0.9", "?source_ip=10.1.0.1"
	g.eventually(t, of5, `"source_qp":null,"destination_qp":18`)
	g.eventually(t, of5, `"candidate_qp":17`)
	g.want(t, http.MethodPut, HintsPath, aHint, 201)
	g.eventually(t, of5, `"source_qp":17,"destination_qp":18,"qp_state":"confirmed","qp_evidence":"hint","qp_packets":1`)
	g.eventually(t, of9, `"source_qp":18,"destination_qp":17,"qp_state":"confirmed","qp_evidence":"hint"`)
	g.eventually(t, of1, `"source_qp":50,"destination_qp":100,"qp_state":"confirmed","qp_evidence":"static"`)
	g.want(t, http.MethodPut, HintsPath, `{"source_ip":"10.1.0.6","destination_ip":"10.9.0.9","source_qp":3,"destination_qp":4}`, 201)
	g.want(t, http.MethodDelete, HintsPath+"?source_ip=10.1.0.5&destination_ip=10.9.0.9&source_qp=17&destination_qp=18", "", 200)
	g.eventually(t, of5, `"source_qp":null,"destination_qp":18,"qp_state":"unknown","qp_evidence":null`)
	g.eventually(t, of9, `"source_qp":null,"destination_qp":17,"qp_state":"unknown","qp_evidence":null`)
	g.eventually(t, of1, `"qp_evidence":"static"`)
}

// TestHintsAreBounded: the last one that fits may still be replaced, or said again.
func TestHintsAreBounded(t *testing.T) {
	h := newHints(noMap)
	pair := func(n int) config.QPPair {
		return config.QPPair{Source: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), Destination: netip.MustParseAddr("10.9.0.9"),
			SourceQP: uint32(2 + n>>16), DestinationQP: uint32(2 + n)}
	}
	for n := range maxHints {
		if _, created, err := h.put(pair(n)); !created || err != nil {
			t.Fatalf("hint %d: %v, %v", n, created, err)
		}
	}
	var f *failure
	if _, _, err := h.put(pair(maxHints)); !errors.As(err, &f) || f.status != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "65536 hints") {
		t.Errorf("error %v", err)
	}
	if _, created, err := h.put(pair(5)); created || err != nil {
		t.Errorf("again: %v, %v", created, err)
	}
	other := pair(5)
	other.SourceQP = 77
	if replaced, created, err := h.put(other); !created || err != nil || len(replaced) != 1 {
		t.Errorf("in place of another: %v, %v, %v", replaced, created, err)
	}
	if m, err := h.table(); m == nil || err != nil {
		t.Errorf("table %v, %v", m, err)
	}
	if !h.delete(pair(6)) {
		t.Error("not deleted")
	}
	if _, created, err := h.put(pair(maxHints)); !created || err != nil {
		t.Errorf("once there is space: %v, %v", created, err)
	}
}

// noMap is the map of an operator who gives none.
func noMap() *pairing.QPMap { return nil }

// TestHintsProperty: whatever is put and deleted, the table can be made, says what the list says in both directions, and the last
// word that was accepted holds.
func TestHintsProperty(t *testing.T) {
	hosts := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	pair := rapid.Custom(func(t *rapid.T) config.QPPair {
		host, qp := rapid.SampledFrom(hosts), rapid.Uint32Range(2, 4)
		return config.QPPair{Source: host.Draw(t, "source"), Destination: host.Draw(t, "destination"), SourceQP: qp.Draw(t, "source QP"), DestinationQP: qp.Draw(t, "destination QP")}
	})
	rapid.Check(t, func(t *rapid.T) {
		static := pair.Draw(t, "static")
		operators, err := pairing.NewQPMap([]pairing.QPPair{{
			Source: packet.AddrFrom(static.Source), Destination: packet.AddrFrom(static.Destination), SourceQP: static.SourceQP, DestinationQP: static.DestinationQP,
		}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		h := newHints(func() *pairing.QPMap { return operators })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				p := pair.Draw(t, "put")
				if _, _, err := h.put(p); err != nil {
					return
				}
				m, err := h.table()
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range directions(p) {
					if qp, ok := m.Lookup(packet.AddrFrom(d.source), packet.AddrFrom(d.destination), d.destinationQP); !ok || qp != d.sourceQP {
						t.Fatalf("%+v: QP %d, %v", d, qp, ok)
					}
				}
			},
			"delete": func(t *rapid.T) { h.delete(pair.Draw(t, "delete")) },
			"": func(t *rapid.T) {
				list := h.list()
				if len(list) != h.n {
					t.Fatalf("%d hints, counted as %d", len(list), h.n)
				}
				if _, err := h.table(); err != nil {
					t.Fatal(err)
				}
				for _, p := range list {
					for _, d := range directions(p) {
						if qp, ok := operators.Lookup(packet.AddrFrom(d.source), packet.AddrFrom(d.destination), d.destinationQP); ok && qp != d.sourceQP {
							t.Fatalf("%+v contradicts qp_map's %+v", p, static)
						}
					}
				}
			},
		})
	})
}

// FuzzHint: no body does harm, and what is taken is a valid pair.
func FuzzHint(f *testing.F) {
	f.Add(aHint)
	f.Add(`{"source_ip":"fd00::1","destination_ip":"fd00::2","source_qp":2,"destination_qp":16777214}`)
	f.Add(`{"source_ip":{"source_ip":[]}}`)
	f.Add(`{"source_ip":"10.0.0.1","destination_ip":"10.0.0.2","source_qp":2,"destination_qp":3,"tags":"0x88a8:10/20"}`)
	f.Add(`{"source_ip":"10.0.0.1","destination_ip":"10.0.0.2","source_qp":2,"destination_qp":3,"tags":"10","tunnel":"vxlan:5000"}`)
	f.Fuzz(func(t *testing.T, body string) {
		values, err := flatObject(strings.NewReader(body), config.QPPairKeys)
		if err != nil {
			return
		}
		p, err := config.ParseQPPair(values)
		if err != nil {
			return
		}
		h := newHints(noMap)
		if _, created, err := h.put(p); err != nil || !created {
			t.Fatalf("%+v: %v", p, err)
		}
		if m, err := h.table(); err != nil {
			t.Fatal(err)
		} else if scope, in := p.Scope(); in {
			if qp, ok := m.LookupIn(scope, packet.AddrFrom(p.Source), packet.AddrFrom(p.Destination), p.DestinationQP); !ok || qp != p.SourceQP {
				t.Fatalf("%+v: QP %d, %v", p, qp, ok)
			}
		} else if qp, ok := m.Lookup(packet.AddrFrom(p.Source), packet.AddrFrom(p.Destination), p.DestinationQP); !ok || qp != p.SourceQP {
			t.Fatalf("%+v: QP %d, %v", p, qp, ok)
		}
	})
}

// TestHintScopes: hints about different scopes don't contradict each other. An entry of qp_map counts in its own scope, or without one in all.
func TestHintScopes(t *testing.T) {
	pair := func(qp uint32, tags, tunnel string) config.QPPair {
		return config.QPPair{Source: netip.MustParseAddr("10.0.0.1"), Destination: netip.MustParseAddr("10.0.0.2"), SourceQP: qp, DestinationQP: 9, Tags: tags, Tunnel: tunnel}
	}
	for _, c := range []struct {
		name  string
		qpMap config.QPPair
		puts  []config.QPPair
		want  []string // "": taken; otherwise whether it replaced another, or was refused
	}{
		{"four scopes", pair(5, "99", ""), []config.QPPair{pair(5, "", ""), pair(6, "10", ""), pair(7, "20", ""), pair(8, "", "vxlan:10")}, []string{"", "", "", ""}},
		{"the same scope", pair(5, "99", ""), []config.QPPair{pair(6, "10", ""), pair(7, "10", "")}, []string{"", "replaced"}},
		{"against an entry of the scope", pair(5, "10", ""), []config.QPPair{pair(6, "10", ""), pair(5, "10", ""), pair(6, "20", "")}, []string{"refused", "", ""}},
		{"against an entry without a scope", pair(5, "", ""), []config.QPPair{pair(6, "10", ""), pair(5, "10", "")}, []string{"refused", ""}},
	} {
		entry := pairing.QPPair{Source: packet.AddrFrom(c.qpMap.Source), Destination: packet.AddrFrom(c.qpMap.Destination),
			SourceQP: c.qpMap.SourceQP, DestinationQP: c.qpMap.DestinationQP}
		entry.Scope, entry.InScope = c.qpMap.Scope()
		m, err := pairing.NewQPMap([]pairing.QPPair{entry}, 1)
		if err != nil {
			t.Fatal(err)
		}
		h := newHints(func() *pairing.QPMap { return m })
		for i, p := range c.puts {
			replaced, _, err := h.put(p)
			if (err != nil) != (c.want[i] == "refused") || (len(replaced) > 0) != (c.want[i] == "replaced") {
				t.Errorf("%s: %+v: replaced %v, error %v", c.name, p, replaced, err)
			}
		}
		if _, err := h.table(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for i, p := range c.puts {
			if c.want[i] == "" && (i+1 == len(c.puts) || c.want[i+1] != "replaced") && !h.delete(p) {
				t.Errorf("%s: %+v is not there", c.name, p)
			}
		}
	}
}
