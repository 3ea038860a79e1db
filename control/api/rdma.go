package api

import (
	"cmp"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/rdma"
	"github.com/cnpgate/cnpgate/health"
)

// rdma answers with the health of RDMA connections.
func (s *state) rdma(r *request) (any, error) {
	report, err := s.gateway.RDMA(r.Context())
	if err != nil {
		return nil, failed(http.StatusServiceUnavailable, "%v", err)
	}
	if get[string](r, "bad") != "true" {
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
		Requester: get[netip.Addr](r, "source_ip"), Responder: get[netip.Addr](r, "destination_ip"), RequesterQP: get[*uint32](r, "source_qp"),
		ResponderQP: get[*uint32](r, "destination_qp"), Duration: cmp.Or(get[time.Duration](r, "duration"), 2*time.Second),
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
