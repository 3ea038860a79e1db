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

// TestEndOfRead: while the MTU isn't known, a READ may take all PSNs up to the next request. Its last response says that it doesn't: what is missing there was lost before
// this place, whether the answer or the next request passes first.
func TestEndOfRead(t *testing.T) {
	const us = ms / 1000
	for _, order := range []string{"answer first", "next request first"} {
		h, now := &Half{}, int64(ms)
		ask := func(psn uint32) {
			h.request(&Packet{Time: now, PSN: psn, Opcode: packet.RCReadRequest, Message: 1000})
		}
		answer := func(psn uint32) {
			h.response(&Packet{Time: now, PSN: psn, Opcode: packet.RCReadRespOnly, Data: 1000, HasAETH: true, Syndrome: 31})
		}
		for psn := range uint32(10) {
			ask(psn)
			now += 10 * us
			answer(psn)
			now += us
		}
		ask(10)
		if order == "next request first" {
			ask(12)
		}
		now += 10 * us
		answer(10)
		if order == "answer first" {
			ask(12)
		}
		now += 100 * ms
		ask(11)
		now += 10 * us
		answer(11)
		answer(12)
		ask(13)
		now += 10 * us
		answer(13)
		h.finish()
		if h.LostUpstream != 1 || h.LostDownstream != 0 || h.NotCaptured != 0 {
			t.Errorf("%s: %d lost before, %d behind, %d not captured; want one lost before", order, h.LostUpstream, h.LostDownstream, h.NotCaptured)
		}
	}
}
