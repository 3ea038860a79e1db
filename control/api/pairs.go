package api

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/pairing"
)

// Pair is a sender's QP and the receiver's QP that it is connected to, as seen in one flow.
type Pair struct {
	Port          string     `json:"port" doc:"The port at which the flow arrives."`
	VLAN          []uint16   `json:"vlan,omitempty" doc:"VID of each VLAN tag, the outer one first."`
	VLANProtocol  []string   `json:"vlan_protocol,omitempty" doc:"TPID of each VLAN tag; left out where all are 0x8100."`
	Tunnel        string     `json:"tunnel,omitempty" doc:"Kind of tunnel that the flow is in."`
	TunnelID      uint32     `json:"tunnel_id,omitempty" doc:"Identifier of the tunnel: VXLAN Network Identifier, GRE key, bottom MPLS label."`
	SourceIP      netip.Addr `json:"source_ip"`
	SourceQP      *uint32    `json:"source_qp" doc:"QP of the sender; null unless it is confirmed."`
	CandidateQP   *uint32    `json:"candidate_qp" doc:"QP that may be the sender's; null if the QP is confirmed. No notification names it."`
	DestinationIP netip.Addr `json:"destination_ip"`
	DestinationQP uint32     `json:"destination_qp"`
	QPState       string     `json:"qp_state" enum:"candidate,confirmed"`
	QPEvidence    *string    `json:"qp_evidence" doc:"How the source QP was found."`
	QPAge         *int64     `json:"qp_age_ns" doc:"Time in nanoseconds for which the pair has had this state and evidence; null if no packet has arrived since they changed."`
	QPConflicts   uint32     `json:"qp_contradictions" doc:"How often the pair was withdrawn because packets contradicted it."`
	Ended         string     `json:"ended,omitempty" doc:"Why the connection has ended."`
}

type pairsBody struct {
	Pairs []Pair `json:"pairs"`
	More  bool   `json:"more" doc:"Whether limit left out some pairs."`
}

// makePair describes the pair of a flow whose source QP is confirmed or a candidate.
func makePair(port string, r *dataplane.FlowRecord) Pair {
	f := report.MakeFlow(r)
	p := Pair{
		Port: port, VLAN: f.VLAN, VLANProtocol: f.VLANProtocol, Tunnel: f.Tunnel, TunnelID: f.TunnelID, SourceIP: f.SourceIP, SourceQP: f.SourceQP, DestinationIP: f.DestinationIP,
		DestinationQP: f.DestinationQP, QPState: f.QPState, QPEvidence: f.QPEvidence, QPConflicts: f.QPConflicts, Ended: f.Ended,
	}
	if qp := r.View.SourceQP(); f.SourceQP == nil && qp != 0 {
		p.CandidateQP = &qp
	}
	if r.View.Since != 0 {
		age := r.At - r.View.Since
		p.QPAge = &age
	}
	return p
}

// getPairs writes the pairs of all workers, as getFlows does with flows.
func (s *Server) getPairs(w http.ResponseWriter, r *http.Request, parameters map[string]string) error {
	f, err := parseFilter(parameters)
	if err != nil {
		return err
	}
	wants := func(c *dataplane.FlowRecord) bool { return c.View.State() != pairing.Unknown && f.wants(c) }
	out := s.newFlowWriter(w, "pairs", f.limit, wants)
	out.describe = func(_ int, c *dataplane.FlowRecord) any { return makePair(s.ports[c.Key.Port], c) }
	return s.list(w, r, out)
}

// Pairs reads all pairs.
func (c *Client) Pairs(ctx context.Context) ([]Pair, error) {
	answer := pairsBody{}
	err := c.read(ctx, http.MethodGet, PairsPath, nil, &answer)
	return answer.Pairs, err
}
