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

// BenchmarkStandardCNPAbout is what a proxy does for one standard CNP.
func BenchmarkStandardCNPAbout(b *testing.B) {
	for _, c := range []struct {
		name string
		data dataPacket
	}{{"v4", flow4}, {"v6", flow6}} {
		b.Run(c.name, func(b *testing.B) {
			frame, p := c.data.frame()
			f := Flow{Family: p.Family, Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, SourceQP: 100}
			out := make([]byte, MaxLen)
			b.ReportAllocs()
			for b.Loop() {
				StandardCNPAbout(out, frame[:12], &testGateway, &f)
			}
		})
	}
}

// BenchmarkLongHaulCNP is what a worker does for one notification, without BenchmarkBuild's indirections.
func BenchmarkLongHaulCNP(b *testing.B) {
	for _, c := range []struct {
		name string
		data dataPacket
	}{{"v4", flow4}, {"v6", flow6}} {
		b.Run(c.name, func(b *testing.B) {
			frame, p := c.data.frame()
			gw, l := testGateway, severe
			out := make([]byte, MaxLen)
			b.ReportAllocs()
			for b.Loop() {
				LongHaulCNP(out, frame, &p, &gw, &l)
			}
		})
	}
}
