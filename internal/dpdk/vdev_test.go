//go:build !nodpdk

package dpdk

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// writePcap writes a classic capture with nanosecond stamps.
func writePcap(t testing.TB, path string, frames [][]byte) {
	t.Helper()
	var w []byte
	words := func(v ...uint32) {
		for _, x := range v {
			w = binary.LittleEndian.AppendUint32(w, x)
		}
	}
	words(0xa1b23c4d, 0x00040002, 0, 0, 65535, 1)
	for i, f := range frames {
		words(1, uint32(i), uint32(len(f)), uint32(len(f)))
		w = append(w, f...)
	}
	if err := os.WriteFile(path, w, 0o644); err != nil {
		t.Fatal(err)
	}
}

// readPcap reads the frames of a classic capture.
func readPcap(t *testing.T, path string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 24 {
		t.Fatalf("%s: %d octets, %v", path, len(b), err)
	}
	var frames [][]byte
	for b = b[24:]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		frames = append(frames, b[16:16+n])
		b = b[16+n:]
	}
	return frames
}

// A capture goes in by the pcap PMD and comes out in another, octet for octet; jumbo frames in one piece.
func TestPcap(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.pcap"), filepath.Join(dir, "out.pcap")
	var frames [][]byte
	for i, size := range []int{60, 64, 1514, 9018, 4096, 74, 9022} {
		frames = append(frames, numbered(i, size))
	}
	writePcap(t, in, frames)
	cfg := oneWorker("net_pcap0,rx_pcap="+in+",tx_pcap="+filepath.Join(dir, "back.pcap"),
		"net_pcap1,rx_pcap="+filepath.Join(dir, "none.pcap")+",tx_pcap="+out)
	writePcap(t, filepath.Join(dir, "none.pcap"), nil)
	cfg.Ports[0].MTU = 9000
	cfg.Burst = 4
	d := open(t, cfg)
	b := d.Backend(0)
	for range 4 {
		b.Exchange()
		for _, f := range b.Batch().Ports[0].Rx {
			if f.Head != f.Len {
				t.Errorf("a frame of %d octets has %d in one piece", f.Len, f.Head)
			}
		}
		forward(b.Batch())
	}
	dropAll(b)
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := d.Pool().InUse(); n != 0 {
		t.Errorf("%d frames were not given back", n)
	}
	got := readPcap(t, out)
	if len(got) != len(frames) {
		t.Fatalf("%d frames came out of %d", len(got), len(frames))
	}
	for i := range frames {
		if !bytes.Equal(got[i], frames[i]) {
			t.Errorf("frame %d changed", i)
		}
	}
}

// net_null gives as many frames as a burst takes and swallows what it gets.
func TestNull(t *testing.T) {
	cfg := oneWorker("net_null0,size=64", "net_null1,size=1500")
	d := open(t, cfg)
	b := d.Backend(0)
	received := 0
	for range 100 {
		b.Exchange()
		received += len(b.Batch().Ports[0].Rx) + len(b.Batch().Ports[1].Rx)
		forward(b.Batch())
	}
	if want := 100 * 2 * burst.MaxSize; received != want {
		t.Errorf("received %d frames, expected %d", received, want)
	}
	dropAll(b)
	var rx, tx uint64
	for i := range 2 {
		s, err := d.Port(i).Stats()
		if err != nil {
			t.Fatal(err)
		}
		rx, tx = rx+s.RxPackets, tx+s.TxPackets
	}
	if rx != uint64(received) || tx != uint64(received-2*burst.MaxSize) {
		t.Errorf("the devices counted %d in and %d out, the worker %d in", rx, tx, received)
	}
	if !linkUp(d.Port(0)) {
		t.Error("net_null's link is down")
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := d.Pool().InUse(); n != 0 {
		t.Errorf("%d frames were not given back", n)
	}
}

// A pool that runs dry stops reception and leaves spares short; freeing brings both back.
func TestPoolRunsDry(t *testing.T) {
	cfg := oneWorker("net_null0,size=64")
	cfg.Frames = 100
	d := open(t, cfg)
	b := d.Backend(0)
	batch := b.Batch()
	var held []uint64
	for range 2 * d.Pool().Size() / burst.MaxSize {
		b.Exchange()
		for _, f := range batch.Ports[0].Rx {
			held = append(held, f.Buf)
		}
		batch.Spare = batch.Spare[:min(len(batch.Spare), Spares/2)]
		held = append(held, spareTail(b, len(batch.Spare))...)
	}
	if len(batch.Ports[0].Rx) != 0 || len(batch.Spare) == Spares {
		t.Fatalf("an empty pool of %d gave %d frames and %d spares", d.Pool().Size(), len(batch.Ports[0].Rx), len(batch.Spare))
	}
	batch.Drain = true
	for len(held) > 0 {
		n := min(len(held), cap(batch.Free))
		batch.Free = append(batch.Free[:0], held[:n]...)
		held = held[n:]
		b.Exchange()
	}
	batch.Drain = false
	b.Exchange()
	if len(batch.Ports[0].Rx) != burst.MaxSize || len(batch.Spare) != Spares {
		t.Errorf("after freeing: %d frames and %d spares", len(batch.Ports[0].Rx), len(batch.Spare))
	}
	dropAll(b)
}

// spareTail is the handles of the spares that were just taken from the batch's end.
func spareTail(b *Backend, from int) []uint64 {
	var taken []uint64
	for _, f := range b.spare[from:b.c.n_spare] {
		taken = append(taken, f.Buf)
	}
	return taken
}

// A capture of real traffic comes through net_pcap as it is on disk.
func TestPcapCaptures(t *testing.T) {
	files, err := filepath.Glob("../../testdata/captures/*.pcap")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/captures: %d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := readPcap(t, file)
			cfg := oneWorker("net_pcap0,rx_pcap=" + file + ",tx_pcap=" + filepath.Join(t.TempDir(), "o.pcap"))
			cfg.Ports[0].MTU = 4096
			d := open(t, cfg)
			b := d.Backend(0)
			n := 0
			for range len(want)/burst.MaxSize + 2 {
				b.Exchange()
				for _, f := range b.Batch().Ports[0].Rx {
					if n >= len(want) || !bytes.Equal(b.Batch().Bytes(f), want[n]) {
						t.Fatalf("frame %d is not the capture's", n)
					}
					n++
					b.Batch().Free = append(b.Batch().Free, f.Buf)
				}
			}
			if n != len(want) {
				t.Errorf("%d frames of %d", n, len(want))
			}
		})
	}
}
