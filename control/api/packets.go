package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
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
	Packet *report.Packet `json:"packet,omitempty" doc:"A packet of the flow."`
	Lost   uint64         `json:"lost,omitempty" doc:"Packets that were left out, because of the rate or because too many were waiting."`
}

func parseTrace(values map[string]string) (*dataplane.Trace, error) {
	t, rate := &dataplane.Trace{AnyQP: true}, uint64(defaultPackets)
	for key, text := range values {
		var err error
		switch key {
		case "source_ip":
			t.Source, err = packetHost(key, text)
		case "destination_ip":
			t.Destination, err = packetHost(key, text)
		case "destination_qp":
			var qp *uint32
			if qp, err = parseQP(key, text); err == nil {
				t.DestQP, t.AnyQP = *qp, false
			}
		case "rate":
			if rate, err = strconv.ParseUint(text, 10, 64); err != nil || rate < 1 || rate > MostPackets {
				err = failed(http.StatusBadRequest, "rate is %.50q; expected a number of packets a second from 1 to %d", text, MostPackets)
			}
		case "decisions":
			if t.Decisions, err = strconv.ParseBool(text); err != nil {
				err = failed(http.StatusBadRequest, "decisions is %.50q; expected true or false", text)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	for _, key := range []string{"source_ip", "destination_ip"} {
		if _, given := values[key]; !given {
			return nil, failed(http.StatusBadRequest, "%s is missing; expected an address, such as %s=10.1.0.1", key, key)
		}
	}
	t.Rate = ratelimit.PerSecond(rate)
	return t, nil
}

func packetHost(key, text string) (packet.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return packet.Addr{}, failed(http.StatusBadRequest, "%s is %.50q; expected an address", key, text)
	}
	return packet.AddrFrom(a.Unmap()), nil
}

// streamPackets writes a flow's packets as they pass, from now on, one object per line, until the client disconnects or the gateway stops.
func (s *Server) streamPackets(w http.ResponseWriter, r *http.Request, parameters map[string]string) error {
	t, err := parseTrace(parameters)
	if err != nil {
		return err
	}
	if !s.plane.StartTrace(t) {
		return failed(http.StatusConflict, "another client captures packets; the gateway has one such capture at a time: end that one, or wait for its end")
	}
	defer s.plane.EndTrace(t)
	w.Header().Set("Content-Type", linesType)
	w.WriteHeader(http.StatusOK)
	tick := time.NewTicker(packetPause)
	defer tick.Stop()
	out := json.NewEncoder(w)
	for flush := http.NewResponseController(w).Flush; ; {
		if err := flush(); err != nil {
			return nil // the client has disconnected
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
		keepGoing(w, time.Time{})
		if s.writePackets(out, t) != nil {
			return nil
		}
	}
}

// writePackets writes what the workers have recorded.
func (s *Server) writePackets(out *json.Encoder, t *dataplane.Trace) error {
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
			p := report.MakePacket(c, worker, &r, t.Decisions)
			if err := out.Encode(StreamedPacket{Packet: &p}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Packets reads a flow's packets as they pass, from now on. The selection has the parameters of the request. It calls begun once the gateway has begun,
// then each for each line. It returns when the context or the gateway ends, or with the error of begun or each.
func (c *Client) Packets(ctx context.Context, selection url.Values, begun func() error, each func(*StreamedPacket) error) error {
	return stream(ctx, c, packetsPath+"?"+selection.Encode(), begun, each)
}
