package api

import (
	"net/http"
	"testing"

	"github.com/cnpgate/cnpgate/control/rdma"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestRDMA: a connection that a worker follows is in the answer, which is as documented; with bad=true only if something is wrong with it.
func TestRDMA(t *testing.T) {
	g := newGate(t, 1)
	g.rdma = rdma.New(g.Plane, []string{"dc", "line"})
	request := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", Opcode: packet.RCSendOnly, DestQP: 200}
	g.see(t, 0, 0, request)
	g.Advance(2e9)                  // a worker begins to inspect a second after its first frame
	for psn := range uint32(5000) { // without an answer: its pair isn't known
		request.PSN = psn
		g.see(t, 0, 0, request)
		g.Advance(20_000)
	}
	g.run(0)
	const path = "/v1/rdma"
	g.want(t, http.MethodGet, path, "", http.StatusOK, `"ip":"10.1.0.1"`, `"qp":200`, `"paired":false`, `"not_paired":1`, `"verdicts":[`)
	g.want(t, http.MethodGet, path+"?bad=true", "", http.StatusOK, `"asymmetric-path"`, `"qp":200`)
	g.want(t, http.MethodGet, path+"?bad=maybe", "", http.StatusBadRequest)
}
