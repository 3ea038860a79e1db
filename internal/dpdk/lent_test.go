//go:build !nodpdk

package dpdk

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/dpdk/dpdktest"
)

// longestLent is the bytes of the longest frame that the ports send.
const longestLent = 1000

// TestRingLent: a list that is what a port has just received is sent without collecting its buffers. Whatever a worker does with the frames
// instead, and however many ports there are, those come out that it listed, in its order and with its lengths.
func TestRingLent(t *testing.T) {
	const pairs = 2
	var rings []*dpdktest.Ring
	for i := range 2 * pairs {
		rings = append(rings, ringPort(t, "ln"+string(rune('0'+i)), 1, 256))
	}
	rapid.Check(t, func(t *rapid.T) {
		cfg := oneWorker()
		ports := 2 * rapid.IntRange(1, pairs).Draw(t, "pairs")
		for i, r := range rings[:ports] {
			cfg.Ports = append(cfg.Ports, PortConfig{Name: "port" + string(rune('0'+i)), Device: r.Device()})
		}
		d, closed := openDrawn(t, cfg)
		defer closed()
		b := d.Backend(0)
		for i := range b.queues {
			b.queues[i].longest = longestLent
		}
		sent := 0
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			for _, r := range rings[:ports] {
				for range rapid.IntRange(0, 5).Draw(t, "frames") {
					size := rapid.SampledFrom([]int{60, 61, longestLent, longestLent, longestLent + 1}).Draw(t, "size")
					if err := r.Inject(0, numbered(sent, size)); err != nil {
						t.Fatal(err)
					}
					sent++
				}
			}
			b.Exchange()
			batch := b.Batch()
			wanted := make([][][]byte, ports)
			for i := range batch.Ports {
				wanted[i^1] = relist(t, batch, batch.Ports[i].Rx, &batch.Ports[i^1])
			}
			for left := true; left; {
				b.Exchange()
				left = false
				for i := range batch.Ports {
					p := &batch.Ports[i]
					p.Tx, p.Sent = p.Tx[:copy(p.Tx, p.Tx[p.Sent:])], 0
					left = left || len(p.Tx) > 0
				}
			}
			for i, r := range rings[:ports] {
				for _, want := range wanted[i] {
					if got := r.Collect(0); !bytes.Equal(got, want) {
						t.Fatalf("%x came out of port %d, want %x", got, i, want)
					}
				}
				if r.Collect(0) != nil {
					t.Fatalf("too much came out of port %d", i)
				}
			}
		}
		dropAll(b)
		if err := d.Stop(); err != nil {
			t.Fatal(err)
		}
		n := d.Pool().InUse()
		for _, r := range rings[:ports] {
			n += r.InUse()
		}
		if n != 0 {
			t.Fatalf("%d buffers were not given back", n)
		}
	})
}

// relist lists received frames for a port, as they came or with a change, and returns what is to come out.
func relist(t *rapid.T, b *burst.Batch, rx []burst.Frame, out *burst.Port) (wanted [][]byte) {
	list := slices.Clone(rx)
	if n := len(list); n > 0 {
		at := rapid.IntRange(0, n-1).Draw(t, "place")
		switch rapid.IntRange(0, 5).Draw(t, "change") {
		case 0:
			slices.Reverse(list)
		case 1:
			list[at].Len--
			list[at].Head--
		case 2:
			b.Free = append(b.Free, list[at].Buf)
			list = slices.Delete(list, at, at+1)
		case 3:
			list[at], list[n/2] = list[n/2], list[at]
		}
	}
	for _, f := range list {
		if int(f.Len) <= longestLent {
			wanted = append(wanted, bytes.Clone(b.Bytes(f)))
		}
	}
	out.Tx = append(out.Tx, list...)
	return wanted
}
