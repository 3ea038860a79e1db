package cnpdec

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// TestNoAllocations: neither an accepted notification nor a refused one costs an allocation, with everybody asked.
func TestNoAllocations(t *testing.T) {
	for i := range notifications.All {
		g := &notifications.All[i]
		frame, r := g.Bytes(), receiverOf(g)
		r.Trusted = func(packet.Notification, packet.Addr) bool { return true }
		r.KnownQP = func(uint32) bool { return true }
		r.KnownFlow = func(packet.Addr, uint32) bool { return true }
		broken := append([]byte(nil), frame...)
		broken[len(broken)-5] ^= 1
		var p packet.Parsed
		var n Notification
		packet.Parse(frame, uint32(len(frame)), &p)
		allocs := testing.AllocsPerRun(100, func() {
			if r.Decode(frame, &p, &n) != Accepted {
				t.Fatalf("%s isn't accepted", g.Name)
			}
			r.Decode(broken, &p, &n)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", g.Name, allocs)
		}
	}
}

// BenchmarkDecode decodes each golden notification: parsed already, as the worker has them.
func BenchmarkDecode(b *testing.B) {
	for i := range notifications.All {
		g := &notifications.All[i]
		b.Run(g.Name, func(b *testing.B) {
			frame, r := g.Bytes(), receiverOf(g)
			var p packet.Parsed
			var n Notification
			packet.Parse(frame, uint32(len(frame)), &p)
			b.ReportAllocs()
			for b.Loop() {
				r.Decode(frame, &p, &n)
			}
			if n.End == 0 {
				b.Fatal("not decoded")
			}
		})
	}
}
