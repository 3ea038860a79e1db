//go:build !nodpdk

package dpdk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/cnpgate/cnpgate/internal/burst"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// numbered is a frame that differs from all others.
func numbered(n, size int) []byte {
	f := make([]byte, size)
	for i := range f {
		f[i] = byte(n*31 + i)
	}
	binary.BigEndian.PutUint32(f, uint32(n))
	return f
}

// Frames of any lengths and burst sizes come out at the other side whole and in order, and every buffer comes back.
func TestRingForward(t *testing.T) {
	left, right := ringPort(t, "fl", 1, 256), ringPort(t, "fr", 1, 256)
	rapid.Check(t, func(t *rapid.T) {
		cfg := oneWorker(left.Device(), right.Device())
		cfg.Burst = rapid.IntRange(1, burst.MaxSize).Draw(t, "burst")
		d, closed := openDrawn(t, cfg)
		defer closed()
		sizes := rapid.SliceOfN(rapid.IntRange(14, 2048), 1, 200).Draw(t, "sizes")
		for i, size := range sizes {
			if err := left.Inject(0, numbered(i, size)); err != nil {
				t.Fatal(err)
			}
		}
		b := d.Backend(0)
		rounds := (len(sizes)+cfg.Burst-1)/cfg.Burst + 1
		for range rounds {
			b.Exchange()
			forward(b.Batch())
		}
		dropAll(b)
		for i, size := range sizes {
			if got := right.Collect(0); !bytes.Equal(got, numbered(i, size)) {
				t.Fatalf("frame %d of %d octets came out as %d octets", i, size, len(got))
			}
		}
		if left.Collect(0) != nil || right.Collect(0) != nil {
			t.Fatal("more frames came out than went in")
		}
		if err := d.Stop(); err != nil {
			t.Fatal(err)
		}
		if n := d.Pool().InUse() + left.InUse() + right.InUse(); n != 0 {
			t.Fatalf("%d frames were not given back", n)
		}
	})
}

// What the device refuses stays with the worker, in order, and nothing is lost.
func TestRingBackPressure(t *testing.T) {
	const room, frames = 16, 40
	left, right := ringPort(t, "bl", 1, 64), ringPort(t, "br", 1, room)
	d := open(t, oneWorker(left.Device(), right.Device()))
	for i := range frames {
		if err := left.Inject(0, numbered(i, 100)); err != nil {
			t.Fatal(err)
		}
	}
	b := d.Backend(0)
	b.Exchange()
	if n := len(b.Batch().Ports[0].Rx); n != frames {
		t.Fatalf("received %d of %d frames", n, frames)
	}
	next := 0
	for _, want := range []int{room, room, frames - 2*room} {
		forward(b.Batch())
		b.Exchange()
		if sent := b.Batch().Ports[1].Sent; sent != want {
			t.Fatalf("the device took %d frames, expected %d", sent, want)
		}
		for f := right.Collect(0); f != nil; f = right.Collect(0) {
			if !bytes.Equal(f, numbered(next, 100)) {
				t.Fatalf("frame %d came out of order or changed", next)
			}
			next++
		}
	}
	if next != frames {
		t.Fatalf("%d of %d frames came out", next, frames)
	}
	s, err := d.Port(1).Stats()
	if err != nil || s.TxPackets != frames {
		t.Fatalf("statistics: %+v, %v", s, err)
	}
}

// A notification is built in a spare and leaves with the length the worker gave it; a received frame may be cut.
func TestRingBuilt(t *testing.T) {
	left, right := ringPort(t, "sl", 1, 64), ringPort(t, "sr", 1, 64)
	d := open(t, oneWorker(left.Device(), right.Device()))
	if err := left.Inject(0, numbered(7, 300)); err != nil {
		t.Fatal(err)
	}
	b := d.Backend(0)
	b.Exchange()
	batch := b.Batch()
	if len(batch.Spare) != Spares {
		t.Fatalf("%d spares, expected %d", len(batch.Spare), Spares)
	}
	f := batch.Spare[len(batch.Spare)-1]
	batch.Spare = batch.Spare[:len(batch.Spare)-1]
	if f.Len != 0 || int(f.Head) < 2048 {
		t.Fatalf("a spare says %+v", f)
	}
	built := numbered(9, 90)
	f.Len, f.Head = uint32(copy(batch.Bytes(f), built)), uint32(len(built))
	cut := batch.Ports[0].Rx[0]
	cut.Len, cut.Head = 200, 200
	batch.Ports[1].Tx = append(batch.Ports[1].Tx, f, cut)
	b.Exchange()
	if batch.Ports[1].Sent != 2 || len(batch.Spare) != Spares {
		t.Fatalf("sent %d, %d spares", batch.Ports[1].Sent, len(batch.Spare))
	}
	if got := right.Collect(0); !bytes.Equal(got, built) {
		t.Fatalf("built %x, sent %x", built, got)
	}
	if got := right.Collect(0); !bytes.Equal(got, numbered(7, 300)[:200]) {
		t.Fatalf("cut to 200 octets, sent %d", len(got))
	}
}

// A frame in several segments is dropped and counted, and those around it pass.
func TestRingSegments(t *testing.T) {
	left, right := ringPort(t, "gl", 1, 64), ringPort(t, "gr", 1, 64)
	d := open(t, oneWorker(left.Device(), right.Device()))
	for i, c := range []struct{ size, segment int }{{1000, 0}, {4000, 2000}, {2000, 0}} {
		if err := left.InjectSegments(0, numbered(i, c.size), c.segment); err != nil {
			t.Fatal(err)
		}
	}
	b := d.Backend(0)
	b.Exchange()
	p := &b.Batch().Ports[0]
	if want := (burst.Volume{Frames: 1, Bytes: 4000}); p.Unusable != want {
		t.Errorf("dropped %+v, expected %+v", p.Unusable, want)
	}
	got := len(p.Rx)
	forward(b.Batch())
	b.Exchange()
	for _, want := range [][]byte{numbered(0, 1000), numbered(2, 2000)} {
		if out := right.Collect(0); !bytes.Equal(out, want) {
			t.Errorf("a frame of %d bytes came out as %d", len(want), len(out))
		}
	}
	if p.Unusable.Frames != 0 || got != 2 {
		t.Errorf("%d frames received, then %d more dropped", got, p.Unusable.Frames)
	}
}

// A port without a link drops what is to leave by it: in the device it would wait for the link and leave stale.
func TestRingLinkDown(t *testing.T) {
	left, right := ringPort(t, "kl", 1, 64), ringPort(t, "kr", 1, 64)
	d := open(t, oneWorker(left.Device(), right.Device()))
	b := d.Backend(0)
	for _, up := range []bool{true, false, true} {
		d.Port(1).setCarrier(up)
		if err := left.Inject(0, numbered(1, 64)); err != nil {
			t.Fatal(err)
		}
		b.Exchange()
		forward(b.Batch())
		b.Exchange()
		p := &b.Batch().Ports[1]
		lost := len(p.Lost) == 1 && p.Lost[0] == burst.Loss{Cause: burst.LinkDown}
		if got := right.Collect(0); (got != nil) != up || p.Sent != 1 || lost == up {
			t.Errorf("up %v: %d bytes came out, sent %d, lost %v", up, len(got), p.Sent, p.Lost)
		}
		forward(b.Batch())
	}
}

// Drain sends and frees but receives nothing; what waits stays in the device.
func TestRingDrain(t *testing.T) {
	left, right := ringPort(t, "dl", 1, 64), ringPort(t, "dr", 1, 64)
	d := open(t, oneWorker(left.Device(), right.Device()))
	for i := range 2 {
		if err := left.Inject(0, numbered(i, 64)); err != nil {
			t.Fatal(err)
		}
		b := d.Backend(0)
		b.Batch().Drain = i == 1
		b.Exchange()
		forward(b.Batch())
	}
	b := d.Backend(0)
	if n := len(b.Batch().Ports[0].Rx); n != 0 {
		t.Fatalf("received %d frames while draining", n)
	}
	b.Batch().Drain = false
	b.Exchange()
	if n := len(b.Batch().Ports[0].Rx); n != 1 {
		t.Fatalf("received %d frames after draining, expected the one that waited", n)
	}
	forward(b.Batch())
	b.Exchange()
	for i := range 2 {
		if got := right.Collect(0); !bytes.Equal(got, numbered(i, 64)) {
			t.Fatalf("frame %d is missing", i)
		}
	}
}

// The worker may free every frame it received and every spare at once, and put slices of its own in the batch's place.
func TestRingFreeEverything(t *testing.T) {
	left, right := ringPort(t, "el", 1, 64), ringPort(t, "er", 1, 64)
	d := open(t, oneWorker(left.Device(), right.Device()))
	b := d.Backend(0)
	batch := b.Batch()
	if want := 2*burst.MaxSize + Spares; cap(batch.Free) < want {
		t.Fatalf("room for %d frees, expected %d", cap(batch.Free), want)
	}
	for range 3 {
		for i := range 64 {
			if err := errors.Join(left.Inject(0, numbered(i, 64)), right.Inject(0, numbered(i, 64))); err != nil {
				t.Fatal(err)
			}
		}
		b.Exchange()
		for i := range batch.Ports {
			for _, f := range batch.Ports[i].Rx {
				batch.Free = append(batch.Free, f.Buf)
			}
		}
		for _, f := range batch.Spare {
			batch.Free = append(batch.Free, f.Buf)
		}
		batch.Spare = batch.Spare[:0]
		batch.Free = append([]uint64(nil), batch.Free...)
	}
	// More than its capacity is against the contract, but loses nothing either.
	for i := range 64 {
		if err := left.Inject(0, numbered(i, 64)); err != nil {
			t.Fatal(err)
		}
	}
	b.Exchange()
	for _, f := range batch.Ports[0].Rx {
		batch.Free = append(batch.Free, f.Buf)
	}
	for len(batch.Free) < 3*cap(b.free) {
		f := takeBuffer(t, d)
		batch.Free = append(batch.Free, f)
	}
	b.Exchange()
	batch.Drain = true
	b.Exchange()
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := d.Pool().InUse() + left.InUse() + right.InUse(); n != 0 {
		t.Fatalf("%d frames were not given back", n)
	}
}

// takeBuffer takes one buffer out of the pool by way of a second look at the spares: a backend of its own, whose spare it keeps.
func takeBuffer(t *testing.T, d *Devices) uint64 {
	t.Helper()
	b := newBackend(nil, d.Pool(), 0, 1)
	b.c.spares = 1
	b.Exchange()
	f := b.Batch().Spare[0]
	b.batch.Spare = b.batch.Spare[:0]
	b.close()
	return f.Buf
}

// One crossing an Exchange, and no allocation.
func TestExchangeCost(t *testing.T) {
	left, right := ringPort(t, "cl", 1, 64), ringPort(t, "cr", 1, 64)
	d := open(t, oneWorker(left.Device(), right.Device()))
	b := d.Backend(0)
	last := b.Exchange()
	before, calls := runtime.NumCgoCall(), int64(0)
	allocs := testing.AllocsPerRun(100, func() {
		calls++
		forward(b.Batch())
		b.Batch().Free = append(b.Batch().Free, b.Batch().Spare[0].Buf)
		b.Batch().Spare = b.Batch().Spare[:copy(b.Batch().Spare, b.Batch().Spare[1:])]
		now := b.Exchange()
		if now < last {
			t.Errorf("the clock went from %d back to %d", last, now)
		}
		last = now
	})
	if allocs != 0 {
		t.Errorf("%v allocations an Exchange", allocs)
	}
	if got := runtime.NumCgoCall() - before; got != calls {
		t.Errorf("%d cgo calls in %d calls of Exchange", got, calls)
	}
}

// Two workers on two queues, each on a registered thread.
func TestTwoWorkers(t *testing.T) {
	const frames = 500
	left, right := ringPort(t, "wl", 2, 1024), ringPort(t, "wr", 2, 1024)
	cfg := oneWorker(left.Device(), right.Device())
	cfg.Cores = []int{-1, -1}
	d := open(t, cfg)
	for w := range 2 {
		for i := range frames {
			if err := left.Inject(w, numbered(w<<16|i, 80)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			if err := RegisterThread(-1); err != nil {
				t.Error(err)
				return
			}
			defer UnregisterThread()
			b := d.Backend(w)
			for range frames/burst.MaxSize + 2 {
				b.Exchange()
				forward(b.Batch())
			}
			dropAll(b)
		})
	}
	wg.Wait()
	for w := range 2 {
		for i := range frames {
			if got := right.Collect(w); !bytes.Equal(got, numbered(w<<16|i, 80)) {
				t.Fatalf("worker %d: frame %d is wrong or missing", w, i)
			}
		}
	}
}

// The link of a ring port can be switched, and shows.
func TestLink(t *testing.T) {
	left := ringPort(t, "jl", 1, 64)
	d := open(t, oneWorker(left.Device(), "net_null9"))
	for _, up := range []bool{false, true} {
		if err := d.Port(0).SetLink(up); err != nil {
			t.Fatal(err)
		}
		if got := linkUp(d.Port(0)); got != up {
			t.Errorf("link is %v after SetLink(%v)", got, up)
		}
	}
	if err := d.Port(1).SetLink(false); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("net_null's link: %v, expected errors.ErrUnsupported", err)
	}
	if f := d.Profile(0); f.Driver != "net_ring" || !f.LinkControl || f.Spread != OneWorker || f.Address == "" || d.Port(0).Name() != "port0" {
		t.Errorf("port says %+v, name %q", f, d.Port(0).Name())
	}
	if f := d.Profile(1); f.LinkControl {
		t.Errorf("net_null says %+v", f)
	}
}

// A frame that does not fit is refused by the fixture, and a full one says so.
func TestRingFixtureErrors(t *testing.T) {
	r := ringPort(t, "xl", 1, 2)
	if err := r.Inject(0, make([]byte, 60000)); !errors.Is(err, unix.EMSGSIZE) {
		t.Errorf("60,000 octets: %v", err)
	}
	for i := range 2 {
		if err := r.Inject(0, numbered(i, 64)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Inject(0, numbered(3, 64)); !errors.Is(err, unix.ENOBUFS) {
		t.Errorf("a third frame into a ring of two: %v", err)
	}
	d := open(t, oneWorker(r.Device()))
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := d.Discarded(0); n != 2 {
		t.Errorf("Stop dropped %d frames that waited in the device, expected 2", n)
	}
	if n := r.InUse(); n != 0 {
		t.Errorf("%d frames were not given back by Stop", n)
	}
}
