package api

import "net/http"

// Health is the answer to GET /v1/health: with status 200 if all ports forward, else with 503.
type Health struct {
	Healthy bool `json:"healthy"`
	// Problems are the ports that don't forward, by name, with what happened to each.
	Problems map[string]string `json:"problems"`
	Notices  []string          `json:"notices,omitempty" doc:"What is in force besides the configuration file, such as another mode."`
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	h := Health{Problems: s.gateway.Problems(), Notices: s.gateway.Notices()}
	h.Healthy = len(h.Problems) == 0
	status := http.StatusOK
	if !h.Healthy {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, h)
	return nil
}
