package api

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestPackets: a client gets the packets of its flow, with decisions if it wants them, and those that are left out are counted; another client is refused meanwhile.
func TestPackets(t *testing.T) {
	for _, decisions := range []string{"", "true"} {
		g := newGate(t, 1)
		client, enough := NewClient(g.path), errors.New("enough")
		selection := url.Values{"source_ip": {"10.1.0.1"}, "destination_ip": {"10.9.0.9"}, "destination_qp": {"100"}}
		if decisions != "" {
			selection.Set("decisions", decisions)
		}
		packets, lost := 0, uint64(0)
		err := Stream(t.Context(), client, Path(PacketsPath, selection), func() error {
			g.want(t, http.MethodGet, PacketsPath+"?source_ip=10.1.0.1&destination_ip=10.9.0.9", "", 409, "one such capture at a time")
			for range 70 {
				g.see(t, 0, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 101})
			}
			return nil
		}, func(s *StreamedPacket) error {
			lost += s.Lost
			if p := s.Packet; p != nil {
				if packets++; p.Port != "dc" || p.Length != 500 || len(p.Frame) != 256 || (len(p.Decisions) > 0) != (decisions != "") {
					t.Errorf("%+v", p)
				}
			}
			if packets+int(lost) == 70 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || packets < 10 || packets+int(lost) != 70 {
			t.Errorf("%d packets, %d lost: %v", packets, lost, err)
		}
		g.run(0)
	}
	g := newGate(t, 1)
	g.run(0)
	for query, want := range map[string]string{
		"": "is missing; expected an address", "source_ip=10.1.0.1": "destination_ip is missing", "source_ip=10.1.0.0/16&destination_ip=10.9.0.9": "expected an address",
		"source_ip=10.1.0.1&destination_ip=10.9.0.9&rate=0":      "expected a number of packets a second from 1 to 5000",
		"source_ip=10.1.0.1&destination_ip=10.9.0.9&rate=10000":  "expected a number of packets a second from 1 to 5000",
		"source_ip=10.1.0.1&destination_ip=10.9.0.9&decisions=2": "expected true or false", "destination_qp=x": "destination_qp",
		"drops=none": "expected all, to-gateway", "drops=all&destination_qp=1": "source_ip is missing", "drops=all&source_ip=10.1.0.1": "destination_ip is missing",
	} {
		g.want(t, http.MethodGet, PacketsPath+"?"+query, "", 400, want)
	}
}
