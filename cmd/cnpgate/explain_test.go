package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// explained is what a gateway answers about two flows of a sender, in two VLANs: one is notified.
const explained = `{"notified":true,"flows":[
{"port":"dc","source_ip":"10.1.0.1","destination_ip":"10.9.0.9","source_qp":50,"destination_qp":100,"vlan":[10],"qp_state":"confirmed","qp_evidence":"psn","qp_packets":1,"qp_contradictions":0,"transport":"RC","packets":2,"bytes":1000,"ecn_marked":0,"notifications":{},"age_ns":1,"worker":0,"notified":true,"gates":[
{"gate":"flow","result":"pass","text":"2 packets, 3Gbps now"},
{"gate":"limits","result":"wait","reason":"flow-limit","text":"per_flow: the last one is less than the interval ago","key":"notifications.limits.per_flow"},
{"gate":"last","result":"pass","text":"standard-cnp notify 2ms ago"}]},
{"port":"dc","source_ip":"10.1.0.1","destination_ip":"10.9.0.9","source_qp":null,"destination_qp":100,"tunnel":"vxlan","tunnel_id":5000,"qp_state":"unknown","qp_evidence":null,"qp_packets":0,"qp_contradictions":0,"transport":"RC","packets":1,"bytes":500,"ecn_marked":0,"notifications":{},"age_ns":1,"worker":1,"notified":false,"gates":[
{"gate":"flow","result":"pass","text":"1 packets, 0bps now"},
{"gate":"recipient","result":"stop","reason":"encapsulated","text":"the flow is in a tunnel","key":"proxy.senders"},
{"gate":"grant","result":"unknown","text":"accepts standard-cnp"}]}],"more":true}
`

const shownExplained = `10.1.0.1 QP 50 to 10.9.0.9 QP 100, port dc, VLAN 10, worker 0: notified
  pass  flow       2 packets, 3Gbps now
  wait  limits     per_flow: the last one is less than the interval ago (flow-limit); change notifications.limits.per_flow
  pass  last       standard-cnp notify 2ms ago

10.1.0.1 QP - to 10.9.0.9 QP 100, port dc, VLAN vxlan:5000, worker 1: not notified, because of: recipient
  stop  recipient  the flow is in a tunnel (encapsulated); change proxy.senders
  pass  flow       1 packets, 0bps now
  -     grant      accepts standard-cnp

and other flows; --qp selects one
`

// unexplained is what a gateway answers about a sender without a flow.
const unexplained = `{"notified":false,"flows":[],"gates":[{"gate":"flow","result":"stop","text":"no packet has come"}],"more":false}
`

// TestExplain: the first gate that stops is at the top, and the exit status says whether a sender is notified.
func TestExplain(t *testing.T) {
	dir := workspace(t)
	gatewayAt(t, filepath.Join(dir, "gw.sock"), answered, true)
	gatewayAt(t, filepath.Join(dir, "idle.sock"), "{}", true)
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"10.1.0.1 10.9.0.9 --socket gw.sock", 0, shownExplained, ""},
		{"10.1.0.1 10.9.0.9 --qp 0x64 --socket gw.sock -o json", 0, explained, ""},
		{"10.1.0.1 10.9.0.9 --socket idle.sock", 3, "10.1.0.1 to 10.9.0.9: not notified\n  stop  flow       no packet has come\n\n", ""},
		{"10.1.0.1 10.9.0.9 --socket idle.sock -o json", 3, unexplained, ""},
		{"10.1.0.1 10.9.0.9 --socket none.sock", 1, "", "no socket at none.sock"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := cnpgate(t, dir, append([]string{"explain"}, strings.Fields(c.args)...)...)
			if got.status != c.status || got.stdout != c.stdout || !tells(got.stderr, c.stderr) {
				t.Errorf("exit status %d, want %d\nstdout: %s\nwant    %s\nstderr: %s\nwant    %s", got.status, c.status, got.stdout, c.stdout, got.stderr, c.stderr)
			}
		})
	}
}
