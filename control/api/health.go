package api

import "net/http"

// Health is the answer to GET /v1/health: with status 200 of a gateway whose ports all forward, else with 503.
type Health struct {
	Healthy bool `json:"healthy"`
	// Problems are the ports that don't forward, by name, with what happened to each.
	Problems map[string]string `json:"problems"`
}

// WatchHealth has the server ask for the ports that don't forward. It must be called before Serve; without it, all ports are healthy.
func (s *Server) WatchHealth(problems func() map[string]string) { s.problems = problems }

func (s *Server) getHealth(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r, nil); err != nil {
		return err
	}
	h := Health{Problems: map[string]string{}}
	if s.problems != nil {
		h.Problems = s.problems()
	}
	h.Healthy = len(h.Problems) == 0
	status := http.StatusOK
	if !h.Healthy {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, h)
	return nil
}
