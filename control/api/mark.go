package api

import (
	"context"
	"net/http"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
)

// Mark is the answer to POST /v1/mark.
type Mark struct {
	Time time.Time `json:"time" doc:"When the counters were marked."`
}

// mark has the counters at the time of a request to mark them.
type mark struct {
	time     time.Time
	counters *report.Counters
}

// setMark notes the present counters, in place of an earlier mark.
func (s *Server) setMark(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	m := &mark{time.Now().UTC(), s.gateway.Counters()}
	s.mark.Store(m)
	answer(w, http.StatusOK, Mark{m.time})
	return nil
}

// getCounters answers with the counters since the gateway's start, or since the mark.
func (s *Server) getCounters(w http.ResponseWriter, _ *http.Request, values map[string]string) error {
	c := s.gateway.Counters()
	if since, given := values["since"]; given {
		if _, err := oneOf("since", since, sinceWords); err != nil {
			return err
		}
		m := s.mark.Load()
		if m == nil {
			return failed(http.StatusConflict, "no counters are marked since the gateway started; mark them: cnpgate mark, or POST %s", markPath)
		}
		c.Since(m.counters, m.time)
	}
	answer(w, http.StatusOK, c)
	return nil
}

// sinceWords are what counters may count from.
var sinceWords = []string{"mark"}

// CountersSinceMark is the path of the counters since the mark.
const CountersSinceMark = CountersPath + "?since=mark"

// Mark notes the present counters.
func (c *Client) Mark(ctx context.Context) (*Mark, error) {
	out := &Mark{}
	return out, c.read(ctx, http.MethodPost, markPath, nil, out)
}
