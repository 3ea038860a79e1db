//go:build secondopinion

package dataplane_test

import (
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// TestSecondOpinionPFC: tshark finds in the PFC frames that a gateway sends what they are to say, and nothing malformed.
func TestSecondOpinionPFC(t *testing.T) {
	r := losslessRig(t, 1, nil)
	for range 12 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	r.Drain()
	var frames [][]byte
	for _, f := range r.Take(fabric) {
		frames = append(frames, f.Octets)
	}
	out := opinion.Tshark(t, frames, strings.Fields("-T fields -E separator=, -e eth.dst -e frame.len -e macc.opcode -e macc.cbfc.enbv -e macc.cbfc.pause_time.c2 "+
		"-e macc.cbfc.pause_time.c3 -e macc.cbfc.pause_time.c4 -e _ws.malformed")...)
	const want = "01:80:c2:00:00:01,60,0x0101,0x0008,0,65535,0,\n01:80:c2:00:00:01,60,0x0101,0x0008,0,0,0,\n"
	if out != want {
		t.Errorf("tshark reads\n%s, expected\n%s", out, want)
	}
	r.Close(t)
}
