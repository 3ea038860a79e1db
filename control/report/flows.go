package report

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Flow is one flow: what a sender's QP sent to a receiver's.
type Flow struct {
	SourceIP      netip.Addr        `json:"source_ip"`
	DestinationIP netip.Addr        `json:"destination_ip"`
	SourceQP      *uint32           `json:"source_qp"`
	DestinationQP uint32            `json:"destination_qp"`
	VLAN          []uint16          `json:"vlan,omitempty"`
	QPState       string            `json:"qp_state"`
	QPEvidence    *string           `json:"qp_evidence"`
	QPPackets     uint64            `json:"qp_packets"` // of the flow, until its source QP was confirmed
	QPConflicts   uint32            `json:"qp_contradictions"`
	Transport     string            `json:"transport"`
	Packets       uint64            `json:"packets"`
	Bytes         uint64            `json:"bytes"`
	ECNMarked     uint64            `json:"ecn_marked"`
	Notifications map[string]uint64 `json:"notifications"`
	Ended         string            `json:"ended,omitempty"`
}

// Flows gathers the flows that ended before the report is made; nil gathers none.
type Flows struct{ ended []Flow }

// Ended remembers a flow that is about to leave its table; it is a flowtable.Config.Ended.
func (f *Flows) Ended(k *flowtable.Key, r *flowtable.Flow, v flowtable.View) {
	flow := MakeFlow(k, r, v)
	f.ended = append(f.ended, flow)
}

// list adds the flows that the workers' tables hold, in an order that depends on nothing but the flows, and their counts to v.
func (f *Flows) list(d *dataplane.Dataplane, v Values) []Flow {
	flows := []Flow{}
	if f != nil {
		flows = append(flows, f.ended...)
	}
	var s flowtable.Stats
	for i := range d.Workers() {
		t := d.Worker(i).Flows()
		t.Each(func(x flowtable.Index, k *flowtable.Key, r *flowtable.Flow) bool {
			flows = append(flows, MakeFlow(k, r, t.View(x)))
			return true
		})
		one := t.Stats()
		s.Flows += one.Flows
		s.Aged += one.Aged
		s.Evictions += one.Evictions
		s.Refused += one.Refused
		s.Contradictions += one.Contradictions
		s.Reuses += one.Reuses
		s.Skipped += one.Skipped
		s.NoPlace += one.NoPlace
		for e := range s.Evidence {
			s.Evidence[e] += one.Evidence[e]
			s.Confirmed[e] += one.Confirmed[e]
		}
	}
	v["flows"], v["flows_aged_total"] = s.Flows, s.Aged
	v["flow_evictions_total"], v["flows_refused_total"] = s.Evictions, s.Refused
	addPairing(v, &s)
	slices.SortStableFunc(flows, CompareFlows)
	return flows
}

// addPairing adds what became of the evidence for source QPs.
func addPairing(v Values, s *flowtable.Stats) {
	evidence, confirmed := map[string]uint64{}, map[string]uint64{}
	for e := flowtable.EvidenceStatic; e < flowtable.Evidences; e++ {
		evidence[e.String()], confirmed[e.String()] = s.Evidence[e], s.Confirmed[e]
	}
	v["qp_evidence_total"], v["qp_confirmed_total"] = evidence, confirmed
	v["qp_contradictions_total"], v["qp_reuses_total"] = s.Contradictions, s.Reuses
	v["qp_evidence_skipped_total"], v["qp_unpaired_total"] = s.Skipped, s.NoPlace
}

// MakeFlow describes a flow as its worker has counted it.
func MakeFlow(k *flowtable.Key, r *flowtable.Flow, v flowtable.View) Flow {
	f := Flow{
		SourceIP: k.Src.Netip(), DestinationIP: k.Dst.Netip(), DestinationQP: k.DestQP,
		QPState: v.State.String(), Transport: transport(r),
		QPPackets: v.Took, QPConflicts: v.Contradictions, Ended: v.Ended.String(),
		Packets: r.Packets, Bytes: r.Bytes, ECNMarked: r.Marked, Notifications: map[string]uint64{},
	}
	if v.State == flowtable.Confirmed {
		f.SourceQP = &v.SourceQP
	}
	if v.Evidence != flowtable.EvidenceNone {
		e := v.Evidence.String()
		f.QPEvidence = &e
	}
	for _, vid := range []uint16{k.OuterVID, k.InnerVID} {
		if vid != 0 {
			f.VLAN = append(f.VLAN, vid)
		}
	}
	for kind, n := range r.Notified {
		if n > 0 {
			f.Notifications[congestion.Format(kind).String()] = uint64(n)
		}
	}
	return f
}

// transport is the name of a flow's transport service. SEND Only is the one operation that every service has.
func transport(r *flowtable.Flow) string {
	return (packet.Opcode(r.Transport<<5) | packet.RCSendOnly).Transport()
}

// sourceQP is 0 for an unknown one.
func (f *Flow) sourceQP() uint32 {
	if f.SourceQP == nil {
		return 0
	}
	return *f.SourceQP
}

// CompareFlows orders flows by source, destination, QPs, VLANs, and packets, most first.
func CompareFlows(a, b Flow) int {
	return cmp.Or(a.SourceIP.Compare(b.SourceIP), a.DestinationIP.Compare(b.DestinationIP),
		cmp.Compare(a.DestinationQP, b.DestinationQP), cmp.Compare(a.sourceQP(), b.sourceQP()), slices.Compare(a.VLAN, b.VLAN), cmp.Compare(b.Packets, a.Packets))
}
