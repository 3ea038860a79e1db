package api

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/cnpgate/cnpgate/control/config"
)

// Hint is a host agent's statement that two QPs are connected. Like an entry of qp_map it is valid for both directions.
type Hint struct {
	Source        netip.Addr `json:"source_ip" doc:"The host at one end."`
	Destination   netip.Addr `json:"destination_ip" doc:"The host at the other end."`
	SourceQP      uint32     `json:"source_qp" doc:"QP at source_ip."`
	DestinationQP uint32     `json:"destination_qp" doc:"QP at destination_ip."`
	Tags          string     `json:"tags,omitempty" doc:"VLAN tags of the connection."`
	Tunnel        string     `json:"tunnel,omitempty" doc:"Tunnel of the connection."`
}

// hintRequest describes the body of PUT /v1/hints in the OpenAPI document; flatObject reads the body.
type hintRequest struct {
	SourceIP      netip.Addr `json:"source_ip" doc:"The host at one end."`
	DestinationIP netip.Addr `json:"destination_ip" doc:"The host at the other end."`
	SourceQP      uint32     `json:"source_qp" minimum:"2" maximum:"16777214" doc:"QP at source_ip."`
	DestinationQP uint32     `json:"destination_qp" minimum:"2" maximum:"16777214" doc:"QP at destination_ip."`
	Tags          string     `json:"tags,omitempty" doc:"VLAN tags of the connection: a VID, 0x88a8:10, two tags as 0x88a8:10/20, or none. Without tags and tunnel, the hint applies where only one VLAN or tunnel has such flows."`
	Tunnel        string     `json:"tunnel,omitempty" doc:"Tunnel of the connection, such as vxlan:5000; tags is then the VID that counts there."`
}

type hintsBody struct {
	Hints    []Hint `json:"hints"`
	Capacity int    `json:"capacity"`
}

type putBody struct {
	Hint     Hint   `json:"hint"`
	Replaced []Hint `json:"replaced"` // the hints that it contradicted, now withdrawn
}

type deletedBody struct {
	Deleted Hint `json:"deleted"`
}

func makeHints(pairs []config.QPPair) []Hint {
	all := make([]Hint, len(pairs))
	for i, p := range pairs {
		all[i] = Hint(p)
	}
	return all
}

func (s *Server) getHints(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	answer(w, http.StatusOK, hintsBody{makeHints(s.hints.list()), maxHints})
	return nil
}

// putHint is idempotent: 201 for a new hint, 200 for one that exists.
func (s *Server) putHint(w http.ResponseWriter, r *http.Request, _ map[string]string) error {
	values, err := readBody(w, r, hintExpected, config.QPPairKeys...)
	if err != nil {
		return err
	}
	p, err := config.ParseQPPair(values)
	if err != nil {
		return failed(http.StatusBadRequest, "%w", err)
	}
	replaced, created, err := s.hints.put(p)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	answer(w, status, putBody{Hint(p), makeHints(replaced)})
	return nil
}

// deleteHint withdraws the hint of the connection in the query.
func (s *Server) deleteHint(w http.ResponseWriter, _ *http.Request, values map[string]string) error {
	p, err := config.ParseQPPair(values)
	if err != nil {
		return failed(http.StatusBadRequest, "the query: %w", err)
	}
	if !s.hints.delete(p) {
		return failed(http.StatusNotFound, "no hint that QP %d at %s is connected to QP %d at %s; GET %s lists them",
			p.SourceQP, p.Source, p.DestinationQP, p.Destination, HintsPath)
	}
	answer(w, http.StatusOK, deletedBody{Hint(p)})
	return nil
}

var hintExpected = `one JSON object, such as {"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18}`

// Hints reads all hints.
func (c *Client) Hints(ctx context.Context) ([]Hint, error) {
	answer := hintsBody{}
	err := c.read(ctx, http.MethodGet, HintsPath, nil, &answer)
	return answer.Hints, err
}
