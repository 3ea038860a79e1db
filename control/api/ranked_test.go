package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestRanking: a page has what sorting all rows gives, in memory for twice as many rows as it ends at.
func TestRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 20), 0, 100).Draw(t, "values")
		p := &page{offset: rapid.Uint64Range(0, 20).Draw(t, "offset"), limit: rapid.Uint64Range(1, 20).Draw(t, "limit")}
		type numbered struct {
			value uint64
			place int
		}
		var all []numbered
		top := newRanking[numbered](p)
		for i, v := range values {
			row := numbered{v, i}
			all = append(all, row)
			top.add(v, func() numbered { return row })
			if len(top.rows) > 2*top.keep {
				t.Fatalf("%d rows are kept for %d", len(top.rows), top.keep)
			}
		}
		slices.SortStableFunc(all, func(a, b numbered) int { return int(b.value) - int(a.value) })
		begin := min(int(p.offset), len(all))
		end := min(begin+int(p.limit), len(all))
		rows, more := top.page(p)
		if !slices.Equal(rows, all[begin:end]) || more != (end < len(all)) {
			t.Fatalf("page %v, %t; want %v, %t", rows, more, all[begin:end], end < len(all))
		}
	})
}

// TestSorted: flows and pairs come in pages, sorted ones with the largest values first.
func TestSorted(t *testing.T) {
	g := scene(t)
	g.want(t, http.MethodGet, FlowsPath+"?sort=bytes&limit=1", "", 200, `"flows":[{"port":"dc","source_ip":"10.1.0.1"`, `"more":true`)
	g.want(t, http.MethodGet, FlowsPath+"?sort=bytes&offset=1&limit=3", "", 200, `"source_ip":"10.1.0.2"`, `"source_ip":"fd00::1"`, `"vlan":[100]`, `"more":false`)
	g.want(t, http.MethodGet, FlowsPath+"?sort=bytes&offset=9", "", 200, `{"flows":[],"more":false,"total":4}`)
	g.want(t, http.MethodGet, FlowsPath+"?offset=3", "", 200, `"vlan":[100]`, `"more":false`)
	g.want(t, http.MethodGet, FlowsPath+"?offset=1&limit=1", "", 200, `"source_ip":"10.1.0.2"`, `"more":true`)
	g.want(t, http.MethodGet, PairsPath+"?offset=1", "", 200, `{"pairs":[`, `"source_ip":"10.1.0.2"`)
	g.want(t, http.MethodGet, FlowsPath+"?sort=name", "", 400, "expected rate, queued, bytes, notifications")
	g.want(t, http.MethodGet, FlowsPath+"?sort=rate&offset=4000&limit=97", "", 400, "at most 4096")
	g.want(t, http.MethodGet, FlowsPath+"?offset=0", "", 400, "offset is")
	g.want(t, http.MethodGet, ReloadsPath, "", 200, `"outcome":"started"`)
}

// TestSenders: a sender is an address in a VLAN; its flows are added up, with their rates.
func TestSenders(t *testing.T) {
	other := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 101}
	tagged := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100, Tags: []uint32{0x8100_0064}}
	g := newGate(t, 1)
	g.see(t, 0, 0, other, other, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.8", DestQP: 7, Opcode: packet.RCSendOnly}, tagged)
	g.run(0)
	g.want(t, http.MethodGet, SendersPath+"?sort=bytes", "", 200,
		`{"senders":[{"source_ip":"10.1.0.1","flows":2,"rate_bps":null,"bytes":1500,"queued_bytes":`, `{"source_ip":"10.1.0.1","vlan":[100],"flows":1,`, `"total":2,"more":false,"flows_left_out":0`)
	g.want(t, http.MethodGet, SendersPath+"?limit=1", "", 200, `"total":2,"more":true`)
	g.want(t, http.MethodGet, SendersPath+"?source_ip=10.1.0.2", "", 200, `{"senders":[],"total":0`)
	g.want(t, http.MethodGet, SendersPath+"?qp_state=unknown", "", 400, "no parameter")
}

// TestLocal: a client within the process needs no socket, and ends with the server.
func TestLocal(t *testing.T) {
	g := newGate(t, 1)
	client := g.server.Local()
	if v, err := Get[Version](t.Context(), client, VersionPath); err != nil || v.Gateway != "gw" {
		t.Errorf("%+v, %v", v, err)
	}
	g.cancel()
	if err := <-g.served; err != nil {
		t.Error(err)
	}
	g.served <- nil
	if _, err := Get[Version](t.Context(), client, VersionPath); err == nil {
		t.Error("a server that has ended answers")
	}
}

// TestSendersSend: a host that only acknowledges isn't a sender; one that answers READs is.
func TestSendersSend(t *testing.T) {
	g := newGate(t, 1)
	g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", Opcode: packet.RCSendOnly, DestQP: 200})
	for _, answer := range []testkit.RoCE{
		{Src: "10.9.0.9", Dst: "10.1.0.1", Opcode: packet.RCAcknowledge, DestQP: 100},
		{Src: "10.9.0.8", Dst: "10.1.0.1", Opcode: packet.RCReadRespOnly, DestQP: 101, Size: 1100},
	} {
		g.InjectAt(t, 0, 1, answer.Frame())
		g.Drain()
	}
	g.run(0)
	_, _, body := g.ask(t, http.MethodGet, "/v1/senders", "")
	for host, sends := range map[string]bool{"10.1.0.1": true, "10.9.0.9": false, "10.9.0.8": true} {
		if strings.Contains(body, `"source_ip":"`+host+`"`) != sends {
			t.Errorf("%s is a sender: %v, want %v: %s", host, !sends, sends, body)
		}
	}
	g.want(t, http.MethodGet, "/v1/senders", "", http.StatusOK, `"total":2`)
}
