package api

import "net/http"

func (s *Server) getCounters(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	answer(w, http.StatusOK, s.gateway.Counters())
	return nil
}
