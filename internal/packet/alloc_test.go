package packet

import "testing"

func TestNoAllocations(t *testing.T) {
	frame, _ := stack{family: 6, ecn: ECT0, opcode: CNP, ext: []extHeader{{60, fastCNPOption}}, payload: 16}.build()
	frame4, _ := stack{family: 4, ecn: ECT0, opcode: UDSendOnly, payload: 16}.build()
	var p Parsed
	var out [64]byte
	allocs := testing.AllocsPerRun(100, func() {
		for _, f := range [][]byte{frame, frame4} {
			Parse(f, uint32(len(f)), &p)
			p.ECN = ECT0 // as it was before the first run
			if !markCE(f, &p) {
				t.Fatal("not marked")
			}
			Classify(f, &p, &DefaultCodePoints)
			PutICRC(f, int(p.L3), int(p.BTH), int(p.ICRC), true)
			if !VerifyICRC(f, &p) {
				t.Fatal("wrong ICRC")
			}
			ReplyEthernet(out[:], f, &p)
		}
		PutIPv4(out[:], 0, 0, 0, 0, 0, 0)
		PutIPv6(out[:], 0, 0, 0, 0, &Addr{}, &Addr{})
		(&UDPHeader{}).Put(out[:])
		(&BTH{}).Put(out[:])
	})
	if allocs != 0 {
		t.Errorf("%v allocations a run, want 0", allocs)
	}
}

// TestMayHideAllocatesNothing, and neither does Parse, however deep what they look at is.
func TestMayHideAllocatesNothing(t *testing.T) {
	frames := [][]byte{
		vxlan(built(stack{family: 6, dstPort: 53})), vxlan(vxlan(built(stack{family: 4, dstPort: 53}))),
		built(stack{family: 4, proto: ProtoIPv4, body: dns4}), built(stack{family: 6, proto: ProtoGRE, body: append([]byte("\x00\x00\x86\xdd"), dns6...)}),
		built(stack{family: 6, opcode: CNP, ext: []extHeader{{60, fastCNPOption}}, payload: 16}),
	}
	inner, in := stack{family: 6, opcode: RCWriteMiddle}.build()
	for _, e := range encapsulations() {
		frame, _ := e.put(inner, in, stack{}, 2)
		frames = append(frames, frame)
	}
	allocs := testing.AllocsPerRun(100, func() {
		for _, f := range frames {
			mayHideFrame(f)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a run, want 0", allocs)
	}
}
