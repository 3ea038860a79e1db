package api

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/rdma"
	"github.com/cnpgate/cnpgate/health"
)

// rdma answers with the health of RDMA connections.
func (s *state) rdma(r *request) (any, error) {
	bad := r.word("bad", []string{"true", "false"}) == "true"
	if r.err != nil {
		return nil, r.err
	}
	report, err := s.gateway.RDMA(r.Context())
	if err != nil {
		return nil, failed(http.StatusServiceUnavailable, "%v", err)
	}
	if !bad {
		return report, nil
	}
	some := *report
	some.Connections = slices.Clone(report.Connections)
	some.Connections = slices.DeleteFunc(some.Connections, func(c health.Record) bool { return len(c.Verdicts) == 0 })
	return &some, nil
}

// trace answers with what passes of one end's requests.
func (s *state) trace(r *request) (any, error) {
	q := rdma.Wanted{
		Requester: r.host("source_ip"), Responder: r.host("destination_ip"), RequesterQP: r.qp("source_qp"), ResponderQP: r.qp("destination_qp"),
		Duration: cmp.Or(r.time("duration", 10*time.Millisecond, 5*time.Second, "such as 2s"), 2*time.Second),
	}
	if r.err != nil {
		return nil, r.err
	}
	trace, err := s.gateway.TraceRDMA(r.Context(), q)
	switch {
	case errors.Is(err, rdma.ErrNotFollowed):
		return nil, failed(http.StatusNotFound, "%v", err)
	case errors.Is(err, rdma.ErrBusy):
		return nil, failed(http.StatusConflict, "%v", err)
	case err != nil:
		return nil, failed(http.StatusServiceUnavailable, "%v", err)
	}
	return trace, nil
}
