package health

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestFirstMissingResponse: however many responses are missing after one another, the first one is known to be, as it is what the requester asks for.
func TestFirstMissingResponse(t *testing.T) {
	for _, gaps := range []uint32{1, 3, 12} {
		h := &Half{}
		h.flags |= started | answered | goesBackN
		for psn := uint32(0); psn < 4*(gaps+1); psn++ {
			o := packet.Opcode(packet.RCReadRespMiddle)
			if psn == 0 {
				o = packet.RCReadRespFirst
			}
			if psn == 0 || psn%4 != 0 {
				h.reads.readResponse(h, &Packet{Time: int64(1000 + psn), PSN: psn, Opcode: o, Data: 1024})
			}
		}
		if !h.reads.jumped(4) || h.reads.jumped(5) {
			t.Errorf("%d gaps: response 4 is missing: %v, response 5: %v", gaps, h.reads.jumped(4), h.reads.jumped(5))
		}
	}
}
