package inmem

import (
	"bytes"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/burst"
	"pgregory.net/rapid"
)

func newBackend(t testing.TB, c Config, buffers int) *Backend {
	t.Helper()
	c.Memory = make([]byte, c.BufferSize*buffers+c.BufferSize-1)
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNewRefuses(t *testing.T) {
	good := Config{Ports: 1, Burst: 64, BufferSize: 100, Memory: make([]byte, 100)}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"no port":       func(c *Config) { c.Ports = 0 },
		"no burst":      func(c *Config) { c.Burst = 0 },
		"a burst of 65": func(c *Config) { c.Burst = burst.MaxSize + 1 },
		"no size":       func(c *Config) { c.BufferSize = 0 },
		"negative size": func(c *Config) { c.BufferSize = -1 },
		"half a buffer": func(c *Config) { c.BufferSize = 101 },
		"no memory":     func(c *Config) { c.Memory = nil },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestModel: a worker that sends, holds, frees and builds at random sees what plain lists say, and no buffer is ever lost.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ports, size, buffers = 2, 64, 40
		burstSize := rapid.IntRange(1, 8).Draw(t, "burst")
		var left [ports][][]byte
		var leftBuilt [ports][]bool
		b, err := New(Config{Ports: ports, Burst: burstSize, BufferSize: size, Memory: make([]byte, size*buffers), Sent: func(s Sent) {
			left[s.Port] = append(left[s.Port], bytes.Clone(s.Octets))
			leftBuilt[s.Port] = append(leftBuilt[s.Port], s.Built)
		}})
		if err != nil {
			t.Fatal(err)
		}
		batch := b.Batch()
		var inbox, queued [ports][][]byte // injected; offered to the device
		var built [ports][]bool
		most := burst.TxBursts * burstSize
		limits := [ports]int{most, most}
		var held []burst.Frame
		own := map[uint64]bool{} // buffers that hold what the worker built
		number, now, calls, leaving := byte(0), int64(0), uint64(0), false
		t.Repeat(map[string]func(*rapid.T){
			"inject": func(t *rapid.T) {
				number++
				port := rapid.IntRange(0, ports-1).Draw(t, "port")
				frame := bytes.Repeat([]byte{number}, rapid.IntRange(0, size+1).Draw(t, "octets"))
				free := buffers - b.InUse()
				ok := b.Inject(port, frame, uint32(len(frame))+3)
				if ok != (free > 0 && len(frame) <= size) {
					t.Fatalf("%d octets with %d buffers free: injected %v", len(frame), free, ok)
				}
				if ok {
					inbox[port] = append(inbox[port], frame)
				}
			},
			"limit": func(t *rapid.T) {
				port := rapid.IntRange(0, ports-1).Draw(t, "port")
				limits[port] = rapid.IntRange(0, most).Draw(t, "frames")
				b.Limit(port, limits[port])
			},
			"drain": func(t *rapid.T) { leaving = rapid.Bool().Draw(t, "drain"); batch.Drain = leaving },
			"exchange": func(t *rapid.T) {
				now += rapid.Int64Range(0, 9).Draw(t, "ns")
				b.SetTime(now)
				spares := len(batch.Spare)
				if got := b.Exchange(); got != now {
					t.Fatalf("time %d, expected %d", got, now)
				}
				if calls++; b.Exchanges() != calls || len(batch.Free) != 0 {
					t.Fatalf("%d exchanges of %d, %d buffers to free", b.Exchanges(), calls, len(batch.Free))
				}
				for i := range batch.Ports {
					p := &batch.Ports[i]
					n := min(limits[i], len(p.Tx))
					if p.Sent != n || !slices.EqualFunc(left[i], queued[i][:n], bytes.Equal) || !slices.Equal(leftBuilt[i], built[i][:n]) {
						t.Fatalf("port %d sent %d of %d: %v (built %v), expected %v (%v)", i, p.Sent, len(p.Tx), left[i], leftBuilt[i], queued[i][:n], built[i][:n])
					}
					held = append(held, p.Tx[n:]...)
					p.Tx, queued[i], built[i], left[i], leftBuilt[i] = p.Tx[:0], nil, nil, nil, nil
					want := min(burstSize, len(inbox[i]))
					if leaving {
						want = 0
					}
					if len(p.Rx) != want {
						t.Fatalf("port %d received %d, expected %d", i, len(p.Rx), want)
					}
					for j, f := range p.Rx {
						delete(own, f.Buf)
						if !bytes.Equal(batch.Bytes(f), inbox[i][j]) || f.Len != f.Head+3 || f.Buf == 0 {
							t.Fatalf("port %d received %+v: %v, expected %v", i, f, batch.Bytes(f), inbox[i][j])
						}
					}
					inbox[i] = inbox[i][want:]
					held = append(held, p.Rx...)
				}
				if leaving && len(batch.Spare) != spares || len(batch.Spare) > burst.MaxSize {
					t.Fatalf("%d spares", len(batch.Spare))
				}
			},
			"free": func(*rapid.T) {
				if n := len(held); n > 0 && len(batch.Free) < cap(batch.Free) {
					batch.Free = append(batch.Free, held[n-1].Buf)
					held = held[:n-1]
				}
			},
			"send": func(t *rapid.T) {
				i := rapid.IntRange(0, ports-1).Draw(t, "port")
				p := &batch.Ports[i]
				if len(held) > 0 && len(p.Tx) < cap(p.Tx) {
					f := held[0]
					held = held[1:]
					p.Tx = append(p.Tx, f)
					queued[i] = append(queued[i], bytes.Clone(batch.Bytes(f)))
					built[i] = append(built[i], own[f.Buf])
				}
			},
			"build": func(t *rapid.T) {
				i := rapid.IntRange(0, ports-1).Draw(t, "port")
				p, n := &batch.Ports[i], len(batch.Spare)
				if n > 0 && len(p.Tx) < cap(p.Tx) {
					f := batch.Spare[n-1]
					batch.Spare = batch.Spare[:n-1]
					if f.Len != 0 || f.Head != size {
						t.Fatalf("spare %+v", f)
					}
					number++
					copy(batch.Bytes(f), bytes.Repeat([]byte{number}, 9))
					f.Len, f.Head = 9, 9
					own[f.Buf] = true
					p.Tx = append(p.Tx, f)
					queued[i] = append(queued[i], bytes.Clone(batch.Bytes(f)))
					built[i] = append(built[i], true)
				}
			},
			"": func(t *rapid.T) {
				n := len(held) + len(batch.Spare) + len(batch.Free)
				waiting := 0
				for i := range batch.Ports {
					n += len(batch.Ports[i].Tx)
					waiting += len(inbox[i])
				}
				if b.InUse() != n+waiting || b.Waiting() != waiting {
					t.Fatalf("%d buffers in use, %d frames wait; expected %d and %d", b.InUse(), b.Waiting(), n+waiting, waiting)
				}
			},
		})
	})
}

// TestSparesLeaveRoom: refilling leaves a burst for each port to reception, and a quarter of a pool that is too small for that.
func TestSparesLeaveRoom(t *testing.T) {
	for _, c := range []struct{ ports, burst, buffers, spares int }{
		{1, 1, 4, 3},
		{1, 1, 40, 39},
		{1, 1, 64, 63},
		{1, 1, 65, 64},
		{1, 1, 200, 64},
		{2, 8, 79, 63},
		{2, 8, 80, 64},
		{2, 64, 4, 3},
		{2, 64, 40, 30},
		{2, 64, 84, 63},
		{2, 64, 85, 64},
	} {
		b := newBackend(t, Config{Ports: c.ports, Burst: c.burst, BufferSize: 10}, c.buffers)
		b.Exchange()
		b.Exchange()
		if n := len(b.Batch().Spare); n != c.spares || b.InUse() != c.spares {
			t.Errorf("%+v: %d spares", c, n)
		}
	}
}

// TestBugsAreCaught: a buffer given back twice, sent twice, freed and sent, or never given out, panics.
func TestBugsAreCaught(t *testing.T) {
	for name, misuse := range map[string]func(b *Backend, f burst.Frame){
		"freed twice": func(b *Backend, f burst.Frame) { b.batch.Free = append(b.batch.Free, f.Buf, f.Buf) },
		"freed and sent": func(b *Backend, f burst.Frame) {
			b.batch.Free = append(b.batch.Free, f.Buf)
			b.batch.Ports[0].Tx = append(b.batch.Ports[0].Tx, f)
		},
		"sent twice":        func(b *Backend, f burst.Frame) { b.batch.Ports[0].Tx = append(b.batch.Ports[0].Tx, f, f) },
		"buffer 0":          func(b *Backend, _ burst.Frame) { b.batch.Free = append(b.batch.Free, 0) },
		"never given out":   func(b *Backend, _ burst.Frame) { b.batch.Free = append(b.batch.Free, 1<<40) },
		"free all the time": func(b *Backend, _ burst.Frame) { b.batch.Free = append(b.batch.Free, b.free[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t, Config{Ports: 1, Burst: 8, BufferSize: 10}, 100)
			if !b.Inject(0, []byte{1}, 1) {
				t.Fatal("not injected")
			}
			b.Exchange()
			misuse(b, b.batch.Ports[0].Rx[0])
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			b.Exchange()
		})
	}
}
