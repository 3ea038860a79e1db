package dataplane_test

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// macControl is a MAC control frame for the reserved address.
func macControl(body ...byte) []byte {
	b := ethernet(packet.EtherTypeMACControl, body...)
	copy(b, packet.MACControlAddr[:])
	return b
}

// TestMACControl: MAC control for the reserved address ends here, whatever it holds, and is counted; a tagged one too. MAC control for any
// other address goes on as it came, also where a domain is set.
func TestMACControl(t *testing.T) {
	tagged := ethernet(packet.EtherTypeCTag, 0, 1, packet.EtherTypeMACControl>>8, packet.EtherTypeMACControl&0xff)
	reservedTagged := bytes.Clone(tagged)
	copy(reservedTagged, packet.MACControlAddr[:])
	policy := testkit.DefaultPolicy(2)
	policy.Domain = stage.NewDomain(nil, nil, false)
	r := testkit.New(t, testkit.Setup{Policy: policy})
	r.Inject(t, 0, macControl(0, 1, 0xff, 0xff), macControl(1, 1, 0, 8), macControl(0xff), reservedTagged, macControl(1, 1)[:16])
	r.Inject(t, 1, macControl(0, 1, 0xff, 0xff))
	r.Drain()
	if n := len(r.Take(0)) + len(r.Take(1)); n != 0 {
		t.Errorf("%d frames left", n)
	}
	if a, b := r.Count(0, counters.ConsumedMACControl), r.Count(1, counters.ConsumedMACControl); a != 5 || b != 1 {
		t.Errorf("%d and %d frames consumed, expected 5 and 1", a, b)
	}
	for name, frame := range map[string][]byte{
		"unicast PFC": ethernet(packet.EtherTypeMACControl, 1, 1, 0, 8), "unknown opcode": ethernet(packet.EtherTypeMACControl, 0xff), "tagged": tagged,
	} {
		for port := range 2 {
			r.Inject(t, port, frame)
			r.Drain()
			if out := r.Take(port ^ 1); len(out) != 1 || !bytes.Equal(out[0].Octets, frame) {
				t.Errorf("%s by port %d: %d frames left, expected the same one", name, port, len(out))
			}
		}
	}
	r.Close(t)
}
