package packet

import "testing"

// Plain frames of the common kinds: RDMA WRITE Middle of 1 KB.
var benchStacks = []struct {
	name string
	stack
}{
	{"v4", stack{family: 4}},
	{"v6", stack{family: 6}},
	{"v4-tagged", stack{family: 4, tags: []tag{{EtherTypeCTag, 3<<13 | 100}}}},
	{"v6-qinq", stack{family: 6, tags: []tag{{EtherTypeSTag, 7}, {EtherTypeCTag, 8}}}},
	{"v6-hop", stack{family: 6, ext: []extHeader{{ProtoHopByHop, make([]byte, 6)}}}},
}

func benchFrame(s stack) ([]byte, Parsed) {
	s.ecn, s.opcode, s.payload = ECT0, RCWriteMiddle, 1024
	return s.build()
}

func BenchmarkParse(b *testing.B) {
	for _, c := range benchStacks {
		b.Run(c.name, func(b *testing.B) {
			frame, _ := benchFrame(c.stack)
			var p Parsed
			for b.Loop() {
				Parse(frame, uint32(len(frame)), &p)
			}
			if p.Kind != RoCEv2 {
				b.Fatal("not parsed as RoCEv2")
			}
		})
	}
}

// BenchmarkParseTunnel is Parse of the same frames in a tunnel.
func BenchmarkParseTunnel(b *testing.B) {
	inner, in := benchFrame(stack{family: 4})
	for _, e := range encapsulations() {
		b.Run(e.name, func(b *testing.B) {
			frame, _ := e.put(inner, in, stack{}, 2)
			var p Parsed
			for b.Loop() {
				Parse(frame, uint32(len(frame)), &p)
			}
			if !p.Encapsulated() {
				b.Fatal("not parsed as RoCEv2 in a tunnel")
			}
		})
	}
}

func BenchmarkClassify(b *testing.B) {
	frame, p := benchFrame(stack{family: 6})
	for b.Loop() {
		Classify(frame, &p, &DefaultCodePoints)
	}
}

// The sizes of notifications: a Long-haul CNP over IPv4 and IPv6, and a Fast CNP with option 1.
func BenchmarkPutICRC(b *testing.B) {
	option := []extHeader{{ProtoDestOpts, fastCNPOption}}
	for _, c := range []struct {
		name string
		stack
	}{
		{"long-haul-v4", stack{family: 4, opcode: CNP, payload: LongHaulLen}},
		{"long-haul-v6", stack{family: 6, opcode: CNP, payload: LongHaulLen}},
		{"fast-cnp", stack{family: 6, opcode: CNP, payload: CNPReservedLen, ext: option}},
	} {
		b.Run(c.name, func(b *testing.B) {
			frame, p := c.build()
			for b.Loop() {
				PutICRC(frame, int(p.L3), int(p.BTH), int(p.ICRC), true)
			}
		})
	}
}

// BenchmarkMayHide is what a border costs a frame that isn't RoCEv2, over Parse and Classify.
func BenchmarkMayHide(b *testing.B) {
	for _, c := range []struct {
		name  string
		frame []byte
	}{
		{"TCP", built(stack{family: 4, proto: ProtoTCP, body: make([]byte, 64)})},
		{"UDP", built(stack{family: 6, dstPort: 53})},
		{"VXLAN", vxlan(built(stack{family: 4, proto: ProtoTCP, body: make([]byte, 64)}))},
	} {
		b.Run(c.name, func(b *testing.B) {
			var p Parsed
			Parse(c.frame, uint32(len(c.frame)), &p)
			for b.Loop() {
				if MayHide(c.frame, &p, &DefaultCodePoints) {
					b.Fatal("ordinary traffic may hide a notification")
				}
			}
		})
	}
}
