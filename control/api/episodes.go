package api

import (
	"context"
	"net/http"

	"github.com/cnpgate/cnpgate/control/report"
)

// Episodes is the answer to GET /v1/episodes.
type Episodes struct {
	Episodes []report.Episode `json:"episodes"` // the oldest first
}

func (s *Server) getEpisodes(w http.ResponseWriter, _ *http.Request, values map[string]string) error {
	port, filtered := values["port"]
	if filtered {
		if _, err := oneOf("port", port, s.ports); err != nil {
			return err
		}
	}
	a := Episodes{[]report.Episode{}}
	for _, e := range s.gateway.Episodes() {
		if !filtered || e.Port == port {
			a.Episodes = append(a.Episodes, e)
		}
	}
	answer(w, http.StatusOK, a)
	return nil
}

// Episodes reads the congestion episodes that the gateway keeps.
func (c *Client) Episodes(ctx context.Context) ([]report.Episode, error) {
	answer := Episodes{}
	err := c.read(ctx, http.MethodGet, EpisodesPath, nil, &answer)
	return answer.Episodes, err
}
