package api

import (
	"context"
	"net/http"
)

// Drain is the answer to the requests at /v1/drain.
type Drain struct {
	Draining bool     `json:"draining" doc:"Whether no sender is asked to slow down any more."`
	Safe     bool     `json:"safe" doc:"Whether the gateway can be stopped without leaving a sender slowed down."`
	Waits    []string `json:"waits" doc:"What a stop would leave, in words."`
}

func (s *Server) getDrain(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	d := s.gateway.Drained()
	d.Waits = append([]string{}, d.Waits...)
	answer(w, http.StatusOK, d)
	return nil
}

func (s *Server) beginDrain(w http.ResponseWriter, r *http.Request, parameters map[string]string) error {
	s.gateway.SetDrain(true)
	return s.getDrain(w, r, parameters)
}

func (s *Server) endDrain(w http.ResponseWriter, r *http.Request, parameters map[string]string) error {
	s.gateway.SetDrain(false)
	return s.getDrain(w, r, parameters)
}

// Drain begins or ends a drain.
func (c *Client) Drain(ctx context.Context, on bool) (*Drain, error) {
	answer, method := &Drain{}, http.MethodDelete
	if on {
		method = http.MethodPut
	}
	return answer, c.read(ctx, method, drainPath, nil, answer)
}

// Drained reads how far a drain is.
func (c *Client) Drained(ctx context.Context) (*Drain, error) {
	answer := &Drain{}
	return answer, c.read(ctx, http.MethodGet, drainPath, nil, answer)
}
