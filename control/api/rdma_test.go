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
	testTrace(t, g)
}

// testTrace: a trace is of a connection that is followed, and takes as long as is asked for.
func testTrace(t *testing.T, g *gate) {
	t.Helper()
	const path = "/v1/rdma/trace?source_ip=10.1.0.1&destination_ip=10.9.0.9&duration=10ms"
	g.want(t, http.MethodGet, path, "", http.StatusOK, `"requester":0`, `"points":[]`)
	g.want(t, http.MethodGet, path+"&destination_qp=200", "", http.StatusOK, `"requester":0`)
	g.want(t, http.MethodGet, path+"&destination_qp=201", "", http.StatusNotFound, "GET /v1/rdma lists them")
	g.want(t, http.MethodGet, path+"&source_qp=1", "", http.StatusNotFound)
	g.want(t, http.MethodGet, "/v1/rdma/trace?source_ip=10.1.0.1", "", http.StatusBadRequest, "destination_ip")
	g.want(t, http.MethodGet, path+"0000", "", http.StatusBadRequest)
	g.want(t, http.MethodGet, "/v1/rdma/trace?source_ip=10.1.0.1&destination_ip=10.9.0.9&duration=1h", "", http.StatusBadRequest, "10ms to 5s")
}
