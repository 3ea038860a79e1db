package api

import (
	"context"
	"net/http"

	"github.com/cnpgate/cnpgate/control/advertise"
)

func (s *Server) getBGP(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	answer(w, http.StatusOK, s.gateway.BGP())
	return nil
}

// BGP reads the state of BGP.
func (c *Client) BGP(ctx context.Context) (advertise.Status, error) {
	answer := advertise.Status{}
	err := c.read(ctx, http.MethodGet, BGPPath, nil, &answer)
	return answer, err
}
