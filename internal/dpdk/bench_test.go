//go:build !nodpdk

package dpdk

import (
	"path/filepath"
	"testing"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// One crossing that moves nothing, on two ports.
func BenchmarkExchangeEmpty(b *testing.B) {
	left, right := ringPort(b, "benchel", 1, 64), ringPort(b, "bencher", 1, 64)
	run(b, oneWorker(left.Device(), right.Device()), 0)
}

// One crossing that takes a burst of 64 frames of 64 octets in by each of two ports and sends as many out. net_pcap with infinite_rx
// copies them from memory and, without tx_pcap, frees what it gets; dpdk-testpmd takes the same devices, for a ratio:
//
//	dpdk-testpmd --no-huge --no-shconf -m 400 --no-pci -l 0,1 --vdev net_pcap0,rx_pcap=F,infinite_rx=1 \
//	  --vdev net_pcap1,rx_pcap=F,infinite_rx=1 -- --forward-mode=io --burst=64 --auto-start --stats-period 2
func BenchmarkExchangeBurst(b *testing.B) {
	path := filepath.Join(b.TempDir(), "in.pcap")
	var frames [][]byte
	for i := range burst.MaxSize {
		frames = append(frames, numbered(i, 64))
	}
	writePcap(b, path, frames)
	args := ",rx_pcap=" + path + ",infinite_rx=1"
	run(b, oneWorker("net_pcap0"+args, "net_pcap1"+args), 2*burst.MaxSize)
}

func run(b *testing.B, cfg Config, frames int) {
	d := open(b, cfg)
	if err := RegisterThread(-1); err != nil {
		b.Fatal(err)
	}
	defer UnregisterThread()
	w := d.Backend(0)
	b.ReportAllocs()
	for b.Loop() {
		w.Exchange()
		forward(w.Batch())
	}
	if frames > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*frames), "ns/frame")
	}
	dropAll(w)
}
