package health

import (
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Record describes a connection, for reports.
type Record struct {
	Ends       [2]End   `json:"ends" doc:"The two ends. Of a connection whose pair of flows isn't known, one has no QP."`
	Network    string   `json:"network,omitempty" doc:"The VLAN or tunnel that it is in."`
	Transport  string   `json:"transport" doc:"RC, UC, UD or XRC."`
	Paired     bool     `json:"paired" doc:"Whether both directions are known."`
	PairedBy   string   `json:"paired_by,omitempty" doc:"By what: rdma-cm, udp-port, psn; in a capture also ack-fit (the responses fit no other direction as well) and only-candidate."`
	StartNS    int64    `json:"start_ns" doc:"Time of the first packet: in a capture since its first frame, in a gateway Unix time."`
	DurationNS int64    `json:"duration_ns" doc:"From the first packet to the last."`
	Ended      string   `json:"ended" doc:"open, released, failed, gave-up or idle."`
	Requests   []Side   `json:"requests" doc:"The requests of each end, and the responses to them."`
	Verdicts   []string `json:"verdicts" doc:"What is wrong."`

	number int // of the connection in its report
}

// End is one end of a connection.
type End struct {
	IP       netip.Addr `json:"ip" doc:"Its address."`
	QP       uint32     `json:"qp,omitempty" doc:"Its QP; left out if not known."`
	Port     string     `json:"port,omitempty" doc:"The gateway port at which its packets arrive."`
	SentBPS  uint64     `json:"sent_bps" doc:"Payload that it sent for the first time, over the connection's duration."`
	CNPs     uint64     `json:"cnps,omitempty" doc:"CNPs that went to it."`
	Judged   uint32     `json:"cnps_judged,omitempty" doc:"CNPs of which the effect could be judged."`
	Obeyed   uint32     `json:"cnps_obeyed,omitempty" doc:"Those after which it slowed down."`
	SlowNS   int64      `json:"slow_down_after_ns,omitempty" doc:"Mean time from the CNP to the slow-down."`
	SlowedBy uint64     `json:"slowed_by_percent,omitempty" doc:"Mean depth of the slow-down."`
}

// Side describes the requests of one end.
type Side struct {
	Requester        int               `json:"requester" doc:"0 or 1: which end of ends."`
	Packets          Amount            `json:"requests" doc:"Packets of requests."`
	Responses        Amount            `json:"responses" doc:"ACKs, NAKs, and READ and ATOMIC responses."`
	GoodputBytes     uint64            `json:"goodput_bytes" doc:"Payload of requests, each counted once."`
	ReadBytes        uint64            `json:"read_bytes,omitempty" doc:"Payload of READ responses, each counted once."`
	Retransmitted    Amount            `json:"retransmitted" doc:"Packets that were sent again."`
	Causes           map[string]Amount `json:"causes,omitempty" doc:"What was retransmitted, by cause."`
	Episodes         map[string]uint64 `json:"episodes,omitempty" doc:"How often the requester went back, by cause."`
	LostUpstream     uint64            `json:"lost_upstream,omitempty" doc:"Packets that were lost before they came here."`
	LostDownstream   uint64            `json:"lost_downstream,omitempty" doc:"Packets that passed here and were lost behind: asked for again, or not acknowledged."`
	AcksLost         uint64            `json:"acks_lost,omitempty" doc:"ACKs that passed here and were lost behind."`
	DroppedHere      uint64            `json:"dropped_here,omitempty" doc:"Packets that this gateway's queues dropped; they are not among the lost ones."`
	NotCaptured      uint64            `json:"not_captured,omitempty" doc:"Packets that were acknowledged, but never seen here."`
	Duplicates       uint64            `json:"duplicates,omitempty" doc:"Packets that came twice, and were not sent again."`
	OutOfOrder       uint64            `json:"out_of_order,omitempty" doc:"Packets that came late."`
	NAKs             map[string]uint64 `json:"naks,omitempty" doc:"NAKs."`
	RNRNAKs          uint64            `json:"rnr_naks,omitempty" doc:"RNR NAKs."`
	CE               uint64            `json:"ce_marked,omitempty" doc:"Packets with CE."`
	Messages         map[string]uint64 `json:"messages,omitempty" doc:"By operation."`
	MessageP50       uint64            `json:"message_p50_bytes,omitempty" doc:"Half of the messages are at most so long; a power of 2."`
	RTT              *RTT              `json:"rtt,omitempty" doc:"From a request to its ACK, measured here."`
	ReadRTT          *RTT              `json:"read_rtt,omitempty" doc:"From a READ request to its first response."`
	RetransmitEvery  int64             `json:"retransmit_interval_ns,omitempty" doc:"Time between transmissions of a packet without an answer: the time-out."`
	WindowPackets    uint32            `json:"window_packets,omitempty" doc:"Most packets without an ACK at once."`
	WindowBytes      uint64            `json:"window_bytes,omitempty" doc:"Payload without an ACK at most at once."`
	StalledNS        int64             `json:"stalled_ns,omitempty" doc:"How long the requester waited with a full window."`
	LargestDelivered uint32            `json:"largest_delivered_bytes,omitempty" doc:"Largest payload of a packet that was acknowledged."`
}

// RTT describes round trips.
type RTT struct {
	Samples uint64    `json:"samples" doc:"How many were measured."`
	LeastNS int64     `json:"min_ns,omitempty" doc:"The shortest."`
	P50NS   uint64    `json:"p50_ns" doc:"Half are at most this; a power of 2."`
	P99NS   uint64    `json:"p99_ns" doc:"99 % are at most this; a power of 2."`
	Buckets []uint32  `json:"buckets" doc:"Samples by the time in ns: bucket n has those up to 2^n that the buckets before do not have."`
	hist    Histogram `json:"-"`
}

func rttOf(h *Histogram, least int64) *RTT {
	n := h.Count()
	if n == 0 {
		return nil
	}
	r := &RTT{Samples: n, LeastNS: least, P50NS: h.Quantile(0.5), P99NS: h.Quantile(0.99), hist: *h}
	longest := 0
	for i, c := range h {
		if c > 0 {
			longest = i + 1
		}
	}
	r.Buckets = append(r.Buckets, h[:longest]...)
	return r
}

// Record describes a connection of which Copy made a copy. ports names the gateway's ports; nil: none.
func (c *Connection) Record(ports []string) Record {
	r := Record{
		Network: Network(c.Scope), Transport: packet.Opcode(c.Service << 5).Transport(), Paired: c.Paired, StartNS: c.First, DurationNS: c.Last - c.First,
		Ended: c.How.String(), Requests: []Side{}, Verdicts: []string{},
	}
	if c.Service == transportUD {
		r.Transport = "UD"
	}
	for i := range c.End {
		r.Ends[i] = c.endOf(i, ports)
		if h := &c.Half[i]; h.Requests.Packets+h.Responses.Packets > 0 || i == 0 && c.Datagram.Packets > 0 {
			r.Requests = append(r.Requests, c.sideOf(i))
		}
	}
	return r
}

func (c *Connection) endOf(i int, ports []string) End {
	e, a := &c.End[i], &c.Reaction[i]
	r := End{IP: e.Addr.Netip(), QP: e.QP, CNPs: a.CNPs, Judged: a.Episodes, Obeyed: a.Obeyed, SentBPS: c.bps(c.Half[i].Goodput + c.Half[i^1].ReadGoodput)}
	if int(e.Port) < len(ports) {
		r.Port = ports[e.Port]
	}
	if a.Obeyed > 0 {
		r.SlowNS, r.SlowedBy = a.Delay/int64(a.Obeyed), a.Depth/uint64(a.Obeyed)
	}
	return r
}

func (c *Connection) bps(bytes uint64) uint64 {
	if c.Last <= c.First {
		return 0
	}
	return uint64(float64(bytes) * 8e9 / float64(c.Last-c.First))
}

func (c *Connection) sideOf(i int) Side {
	h := &c.Half[i]
	s := Side{
		Requester: i, Packets: h.Requests, Responses: h.Responses, GoodputBytes: h.Goodput, ReadBytes: h.ReadGoodput, Retransmitted: h.Retransmissions(),
		LostUpstream: h.LostUpstream, LostDownstream: h.LostDownstream, AcksLost: h.AcksLost, DroppedHere: h.DroppedHere[0] + h.DroppedHere[1], NotCaptured: h.NotCaptured, Duplicates: h.Duplicates,
		OutOfOrder: h.OutOfOrder, RNRNAKs: h.RNRNAKs, CE: h.CE, MessageP50: h.Sizes.Quantile(0.5), WindowPackets: h.Window, WindowBytes: h.WindowBytes,
		StalledNS: h.Stalled, LargestDelivered: uint32(h.big.Passed.data), RTT: rttOf(&h.RTT, 0), ReadRTT: rttOf(&h.ReadRTT, 0),
	}
	if i == 0 && c.Datagram.Packets > 0 {
		s.Packets = c.Datagram
	}
	if s.RTT != nil {
		s.RTT.LeastNS = h.clean.least
	}
	if h.Interval.n > 0 {
		s.RetransmitEvery = h.Interval.mean
	}
	s.Causes, s.Episodes, s.NAKs, s.Messages = map[string]Amount{}, map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for cause, a := range h.Retransmitted {
		if a.Packets > 0 {
			s.Causes[Cause(cause).String()], s.Episodes[Cause(cause).String()] = a, h.Episodes[cause]
		}
	}
	for code, n := range h.NAKs {
		if n > 0 {
			s.NAKs[NAKName(code)] = n
		}
	}
	for o, n := range h.Messages {
		if n > 0 {
			s.Messages[Operation(o).String()] = n
		}
	}
	return s
}

// Subject names two hosts, and the VLAN or tunnel: other tenants' hosts may have the same addresses.
func Subject(from, to packet.Addr, scope packet.Scope) string {
	s := fmt.Sprintf("%v -> %v", from.Netip(), to.Netip())
	if n := Network(scope); n != "" {
		s += ", " + n
	}
	return s
}

// Network names a VLAN or tunnel; "" for neither.
func Network(s packet.Scope) string {
	if kind, id, vid := s.Tunnel(); kind != packet.NoTunnel {
		name := kind.String()
		if id != 0 {
			name += fmt.Sprintf(" %d", id)
		}
		if vid != 0 {
			name += fmt.Sprintf(", VLAN %d", vid)
		}
		return name
	}
	outer, inner := packet.Tag(s>>16), packet.Tag(s>>32)
	switch {
	case inner != 0:
		return fmt.Sprintf("VLAN %d.%d", outer.VID(), inner.VID())
	case outer != 0:
		return fmt.Sprintf("VLAN %d", outer.VID())
	}
	return ""
}
