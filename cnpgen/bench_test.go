package cnpgen

import "testing"

func BenchmarkBuild(b *testing.B) {
	for _, c := range goldens {
		b.Run(c.name, func(b *testing.B) {
			frame, p := c.data.frame()
			gw := c.gateway()
			out := make([]byte, MaxLen)
			b.ReportAllocs()
			for b.Loop() {
				c.build(out, frame, &p, &gw)
			}
		})
	}
}

// BenchmarkLongHaulCNP is what a worker does for one notification, with and without a data packet at hand, without BenchmarkBuild's
// indirections.
func BenchmarkLongHaulCNP(b *testing.B) {
	for _, c := range []struct {
		name string
		data dataPacket
	}{{"v4", flow4}, {"v6", flow6}} {
		frame, p := c.data.frame()
		gw, l := testGateway, severe
		out := make([]byte, MaxLen)
		b.Run(c.name+"/data packet", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t, _ := TargetOf(frame, &p)
				LongHaulCNP(out, &t, &gw, &l)
			}
		})
		b.Run(c.name+"/target", func(b *testing.B) {
			t := c.data.target()
			b.ReportAllocs()
			for b.Loop() {
				LongHaulCNP(out, &t, &gw, &l)
			}
		})
	}
}
