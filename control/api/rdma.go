package api

import (
	"net/http"
	"slices"

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
