package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Flow is one flow: the packets from a sender's QP to a receiver's QP.
type Flow struct {
	SourceIP      netip.Addr        `json:"source_ip" column:"SOURCE,Sender,host"`
	DestinationIP netip.Addr        `json:"destination_ip" column:"DESTINATION,Receiver,host"`
	SourceQP      *uint32           `json:"source_qp" column:"SOURCE_QP,QP,qp"`
	DestinationQP uint32            `json:"destination_qp" column:"DESTINATION_QP,QP,id"`
	VLAN          []uint16          `json:"vlan,omitempty" column:"VLAN,VLAN or tunnel,place,11"`                             // VID of each tag, the outer one first; 0 of a priority tag
	VLANProtocol  []string          `json:"vlan_protocol,omitempty" doc:"TPID of each VLAN tag; left out if all are 0x8100."` // TPID of each tag, "0x88a8"; left out where all are 0x8100
	Tunnel        string            `json:"tunnel,omitempty"`                                                                 // kind of tunnel that the flow is in; VLAN is then the one that distinguishes the flow there
	TunnelID      uint32            `json:"tunnel_id,omitempty"`                                                              // identifier of the tunnel: VNI, GRE key, bottom label; left out if it is 0 or there is none
	QPState       string            `json:"qp_state" column:"QP_STATE,State of the QP,,8"`
	QPEvidence    *string           `json:"qp_evidence" doc:"Evidence for the source QP." column:"QP_EVIDENCE,Evidence,,3"`
	QPPackets     uint64            `json:"qp_packets" doc:"Packets of the flow until its source QP was confirmed." column:"QP_PACKETS,,count,2"`
	QPConflicts   uint32            `json:"qp_contradictions" doc:"How often packets contradicted the pair." column:"QP_CONTRADICTIONS,,count,1"`
	Transport     string            `json:"transport" doc:"Transport service: RC, UC, UD, RD, XRC."`
	Packets       uint64            `json:"packets" doc:"Packets of the flow." column:"PACKETS,,count,7"`
	Bytes         uint64            `json:"bytes" column:"BYTES,Bytes,bytes,5"`
	ECNMarked     uint64            `json:"ecn_marked" column:"MARKED,Marked,count,9"`
	Notifications map[string]uint64 `json:"notifications" column:"NOTIFICATIONS,Notifications,counts"`
	Unresponsive  bool              `json:"unresponsive,omitempty" column:"REACTS,,reacts"` // its sender doesn't react to notifications
	Ended         string            `json:"ended,omitempty" column:"ENDED,Ended"`
}

// MakeFlow describes a flow as its worker has recorded it.
func MakeFlow(r *dataplane.FlowRecord) Flow {
	k, v := &r.Key, &r.View
	f := Flow{
		SourceIP: k.Src.Netip(), DestinationIP: k.Dst.Netip(), DestinationQP: k.DestQP,
		QPState: v.State().String(), SourceQP: confirmed(v.Answer), QPEvidence: evidence(v.Answer), Transport: transport(r.Traffic.Transport),
		QPPackets: v.Took, QPConflicts: v.Contradictions, Unresponsive: r.Unresponsive, Ended: r.Ended.String(),
		Packets: r.Traffic.Packets, Bytes: r.Traffic.Bytes, ECNMarked: r.Marked, Notifications: byName(packet.FastCNP, r.Notified[:]),
	}
	f.setPlace(k)
	return f
}

// byName are the counts that aren't 0, by the names of their kinds, which begin with first.
func byName[K interface {
	~uint8
	String() string
}, N uint32 | uint64](first K, counts []N) map[string]uint64 {
	named := map[string]uint64{}
	for i, n := range counts {
		if n > 0 {
			named[(first + K(i)).String()] = uint64(n)
		}
	}
	return named
}

// confirmed is the source QP of an answer; nil unless it is confirmed.
func confirmed(a pairing.Answer) *uint32 {
	if a.State() != pairing.Confirmed {
		return nil
	}
	qp := a.SourceQP()
	return &qp
}

// evidence is the name of an answer's evidence; nil: there is none.
func evidence(a pairing.Answer) *string {
	if a.Evidence() == pairing.EvidenceNone {
		return nil
	}
	name := a.Evidence().String()
	return &name
}

// SetScope sets the flow's VLAN tags or tunnel from a scope.
func (f *Flow) SetScope(s packet.Scope) {
	var k flowtable.Key
	k.SetScope(s)
	f.setPlace(&k)
}

// setPlace sets the flow's VLAN tags, or its tunnel and the VID that counts there.
func (f *Flow) setPlace(k *flowtable.Key) {
	if !k.Encapsulated() {
		f.setVLANs(k.OuterTag, k.InnerTag)
		return
	}
	kind, id, vid := k.Scope().Tunnel()
	f.Tunnel, f.TunnelID = kind.String(), id
	if vid != 0 {
		f.VLAN = []uint16{vid}
	}
}

// setVLANs sets the VIDs of the flow's tags, and their TPIDs unless all are C-VLANs.
func (f *Flow) setVLANs(tags ...packet.Tag) {
	var protocols []string
	unusual := false
	for _, tag := range tags {
		if tag == 0 {
			continue
		}
		f.VLAN = append(f.VLAN, tag.VID())
		protocols = append(protocols, fmt.Sprintf("%#04x", tag.TPID()))
		unusual = unusual || tag.TPID() != packet.EtherTypeCTag
	}
	if unusual {
		f.VLANProtocol = protocols
	}
}

// transport is the name of a transport service, given as opcode >> 5. SEND Only is the one operation that every service has.
func transport(service uint8) string {
	return (packet.Opcode(service<<5) | packet.RCSendOnly).Transport()
}

// sourceQP is 0 for an unknown one.
func (f *Flow) sourceQP() uint32 {
	if f.SourceQP == nil {
		return 0
	}
	return *f.SourceQP
}

// CompareFlows orders flows by source, destination, QPs, VLANs, tunnels, and packets, most first.
func CompareFlows(a, b Flow) int {
	return cmp.Or(a.SourceIP.Compare(b.SourceIP), a.DestinationIP.Compare(b.DestinationIP),
		cmp.Compare(a.DestinationQP, b.DestinationQP), cmp.Compare(a.sourceQP(), b.sourceQP()), slices.Compare(a.VLAN, b.VLAN),
		slices.Compare(a.VLANProtocol, b.VLANProtocol), cmp.Compare(a.Tunnel, b.Tunnel), cmp.Compare(a.TunnelID, b.TunnelID),
		cmp.Compare(b.Packets, a.Packets))
}
