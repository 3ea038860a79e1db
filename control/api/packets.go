package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

const (
	defaultPackets = 1000 // a second
	// MostPackets bounds the packets of a stream, a second: a worker's list holds those of 12 ms at that rate.
	MostPackets = 5000
	packetPause = 5 * time.Millisecond
)

// StreamedPacket is one line of the answer to GET /v1/packets/stream: one of the two members.
type StreamedPacket struct {
	Packet *report.Packet `json:"packet,omitempty" doc:"A packet of the flow, or a dropped frame."`
	Lost   uint64         `json:"lost,omitempty" doc:"Packets that were left out, because of the rate or because too many were waiting."`
}

func readTrace(r *request) (*trace.Trace, error) {
	rate := cmp.Or(get[uint64](r, "rate"), defaultPackets)
	t := &trace.Trace{Drops: counters.ReasonsOf(get[string](r, "drops")), AnyQP: true, Decisions: get[bool](r, "decisions"), Rate: ratelimit.PerSecond(rate)}
	if qp := get[*uint32](r, "destination_qp"); qp != nil {
		t.DestQP, t.AnyQP = *qp, false
	}
	_, from := r.parameters["source_ip"]
	_, to := r.parameters["destination_ip"]
	if t.AnyAddress = t.Drops != 0 && t.AnyQP && !from && !to; t.AnyAddress {
		return t, nil
	}
	for _, key := range []string{"source_ip", "destination_ip"} {
		if _, given := r.parameters[key]; !given {
			return nil, failed(http.StatusBadRequest, "%s is missing; expected an address, such as %s=10.1.0.1", key, key)
		}
	}
	t.Source, t.Destination = packet.AddrFrom(get[netip.Addr](r, "source_ip")), packet.AddrFrom(get[netip.Addr](r, "destination_ip"))
	return t, nil
}

// streamPackets writes a flow's packets as they pass, or the frames that are dropped, from now on.
func (s *history) streamPackets(r *request) (any, error) {
	t, err := readTrace(r)
	if err != nil {
		return nil, err
	}
	if !s.plane.StartTrace(t) {
		return nil, failed(http.StatusConflict, "another client captures packets; the gateway has one such capture at a time: end that one, or wait for its end")
	}
	defer s.plane.EndTrace(t)
	r.stream(packetPause, func(out *json.Encoder) error { return s.writePackets(out, t) })
	return nil, nil
}

// writePackets writes what the workers have recorded.
func (s *history) writePackets(out *json.Encoder, t *trace.Trace) error {
	if lost := t.TakeSkipped(); lost > 0 {
		if err := out.Encode(StreamedPacket{Lost: lost}); err != nil {
			return err
		}
	}
	c := s.gateway.Config()
	for worker := range s.plane.Workers() {
		for {
			r, ok := t.Take(worker)
			if !ok {
				break
			}
			p := report.MakePacket(c, worker, &r, t.Decisions || t.Drops != 0)
			if err := out.Encode(StreamedPacket{Packet: &p}); err != nil {
				return err
			}
		}
	}
	return nil
}
