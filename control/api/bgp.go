package api

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/cnpgate/cnpgate/control/advertise"
)

func (s *Server) getBGP(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	status := s.gateway.BGP()
	if status.Announced == nil { // lists are never null
		status.Announced = []netip.Prefix{}
	}
	if status.Peers == nil {
		status.Peers = []advertise.Peer{}
	}
	answer(w, http.StatusOK, status)
	return nil
}

// BGP reads the state of BGP.
func (c *Client) BGP(ctx context.Context) (advertise.Status, error) {
	answer := advertise.Status{}
	err := c.read(ctx, http.MethodGet, BGPPath, nil, &answer)
	return answer, err
}
