package cnpgen

import "testing"

func BenchmarkBuild(b *testing.B) {
	for _, c := range goldens {
		b.Run(c.name, func(b *testing.B) {
			frame, p := c.data.frame()
			gw := c.gateway()
			out := make([]byte, MaxLen)
			for b.Loop() {
				c.build(out, frame, &p, &gw)
			}
		})
	}
}
