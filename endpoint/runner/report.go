package runner

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Report is what an endpoint did, up to a time.
type Report struct {
	Role           string  `json:"role"` // send or receive
	Address        string  `json:"address"`
	Peer           string  `json:"peer"` // "" while it is unknown
	Seconds        float64 `json:"seconds"`
	Bytes          uint64  `json:"acknowledged_bytes"` // of complete messages
	GoodputBps     float64 `json:"goodput_bps"`
	Messages       uint64  `json:"messages"` // acknowledged
	MessagesFailed uint64  `json:"failed_messages"`

	Sent struct {
		Packets       uint64 `json:"packets"`
		Bytes         uint64 `json:"bytes"` // of frames, without FCS
		Data          uint64 `json:"data_packets"`
		Retransmitted uint64 `json:"retransmitted_packets"` // of data_packets
		ACKs          uint64 `json:"acks"`
		NAKs          uint64 `json:"naks"`
		CNPs          uint64 `json:"cnps"`
		// Lost frames were dropped by the device, by cause.
		Lost map[string]uint64 `json:"lost_packets"`
	} `json:"sent"`
	Received struct {
		Packets       uint64 `json:"packets"`
		InSequence    uint64 `json:"in_sequence_packets"`
		Duplicates    uint64 `json:"duplicate_packets"`
		OutOfSequence uint64 `json:"out_of_sequence_packets"`
		ACKs          uint64 `json:"acks"` // including NAKs
		NAKs          uint64 `json:"naks"`
		ReadResponses uint64 `json:"read_responses"`
		CE            uint64 `json:"ce_packets"`           // CE-marked packets, out of DataPackets
		FlowControl   uint64 `json:"flow_control_packets"` // PFC and PAUSE
		// Ignored counts the packets that changed nothing, by reason.
		Ignored map[string]uint64 `json:"ignored_packets"`
	} `json:"received"`
	TimeOuts uint64 `json:"timeouts"`
	WentBack uint64 `json:"went_back"` // times that a QP retransmitted: after a NAK, a missing READ response or a time-out

	CM            *CMReport     `json:"cm,omitempty"` // with RDMA-CM
	Pings         uint64        `json:"rping_rounds,omitempty"`
	PingErrors    uint64        `json:"rping_errors,omitempty"` // exchanges that ended because the peer refused or didn't follow them
	Notifications Notifications `json:"notifications"`
	QPs           []QPReport    `json:"qps"`
}

// Notifications counts the notifications that arrived: accepted ones by their effect, refused ones by reason.
type Notifications struct {
	Accepted map[string]uint64 `json:"accepted"`
	Refused  map[string]uint64 `json:"refused"`
}

// CMReport is what RDMA-CM did.
type CMReport struct {
	Established uint64            `json:"established_connections"`
	Ended       map[string]uint64 `json:"ended_connections"` // by outcome
	Sent        uint64            `json:"sent_messages"`
	Repeated    uint64            `json:"repeated_messages"` // received messages that were repetitions
	Received    map[string]uint64 `json:"received_messages"` // by effect
}

// QPReport is the report of one QP.
type QPReport struct {
	QP      uint32  `json:"qp"`
	PeerQP  uint32  `json:"peer_qp"`
	RateBps float64 `json:"rate_bps"` // that the reaction point allows at present
	Bytes   uint64  `json:"acknowledged_bytes"`
	Failed  bool    `json:"failed"`
}

var lossNames = [burst.Causes]string{burst.TooLong: "too-long", burst.LinkDown: "link-down", burst.Refused: "refused"}

// Report describes what happened up to the last Step.
func (r *Runner) Report() *Report {
	const bits = 8
	c, s := r.host.Counters(), &Report{Role: "receive", Address: r.c.Addr.String(), Seconds: float64(r.now-r.begin) / second}
	if r.c.Send {
		s.Role = "send"
	}
	if r.peer != (packet.Addr{}) {
		s.Peer = r.peer.Netip().String()
	}
	for i := range r.qps {
		if q := r.reportQP(i); q.QP != 0 { // a receiver of connections opens no QPs itself
			s.QPs = append(s.QPs, q)
		}
		s.Bytes += r.qps[i].acknowledged
	}
	if s.Seconds > 0 {
		s.GoodputBps = float64(s.Bytes*bits) / s.Seconds
	}
	s.Messages, s.MessagesFailed, s.TimeOuts, s.WentBack = c.MessagesDone, c.MessagesFailed, c.TimedOut, c.WentBack
	s.Pings, s.PingErrors = c.Pings, c.PingErrors
	r.reportFrames(s, &c)
	r.reportNotifications(&s.Notifications)
	if r.c.CMPort != 0 {
		s.CM = r.reportCM()
	}
	return s
}

func (r *Runner) reportQP(i int) QPReport {
	state := &r.qps[i]
	q := QPReport{QP: state.number, PeerQP: state.peer, Bytes: state.acknowledged, Failed: state.failed}
	if f := r.host.ReactionPoint().Flow(q.QP); f != nil {
		q.RateBps = f.Rate(r.now)
	}
	return q
}

func (r *Runner) reportFrames(s *Report, c *endpoint.Counters) {
	out, in := &s.Sent, &s.Received
	out.Packets, out.Bytes, out.Data, out.Retransmitted = c.FramesSent, c.BytesSent, c.DataSent, c.Retransmitted
	out.ACKs, out.NAKs, out.CNPs = c.ACKsSent, c.NAKsSent, c.CNPsSent
	out.Lost = map[string]uint64{}
	for cause, n := range r.refused {
		note(out.Lost, lossNames[cause], n)
	}
	in.Packets = c.FramesReceived + r.early + r.unusable
	in.InSequence, in.Duplicates, in.OutOfSequence = c.InSequence, c.Duplicates, c.OutOfSequence
	in.ACKs, in.NAKs, in.ReadResponses, in.CE = c.Acknowledgements, c.NAKsReceived, c.ReadResponses, c.CEReceived
	in.FlowControl = c.FlowControl
	in.Ignored = map[string]uint64{}
	note(in.Ignored, "before-the-peer", r.early)
	note(in.Ignored, "unusable", r.unusable)
	note(in.Ignored, "wrong-destination", c.WrongDestination)
	note(in.Ignored, "wrong-icrc", c.WrongICRC)
	note(in.Ignored, "unknown-qp", c.UnknownQP)
	note(in.Ignored, "wrong-peer", c.WrongPeer)
	note(in.Ignored, "unsupported", c.Unsupported)
}

func (r *Runner) reportNotifications(n *Notifications) {
	c := r.host.ReactionPoint().Counters()
	n.Accepted, n.Refused = map[string]uint64{}, map[string]uint64{}
	for d, times := range c.Decisions {
		switch d := endpoint.Decision(d); {
		case d == endpoint.Refused: // counted by reason below
		case d.Accepted():
			note(n.Accepted, d.String(), times)
		default:
			note(n.Refused, d.String(), times)
		}
	}
	for reason, times := range c.Refused {
		note(n.Refused, cnpdec.Reason(reason).String(), times)
	}
}

func (r *Runner) reportCM() *CMReport {
	c := r.host.CMCounters()
	s := &CMReport{Established: c.Established, Ended: map[string]uint64{}, Sent: c.Sent, Repeated: c.Repeated, Received: map[string]uint64{}}
	for o, n := range c.Ended {
		note(s.Ended, cm.Outcome(o).String(), n)
	}
	for v, n := range c.Received {
		note(s.Received, cm.Verdict(v).String(), n)
	}
	return s
}

// note adds a counter that isn't 0.
func note(to map[string]uint64, name string, n uint64) {
	if n > 0 {
		to[name] += n
	}
}
