package main

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/flowtable"
)

// TestInsertParts: slices insert parts of a large table one after the other and then begin again; a small table is filled repeatedly.
func TestInsertParts(t *testing.T) {
	for _, c := range []struct {
		name   string
		keys   int
		ns     int64
		slices []int // keys in the table after each slice
	}{
		{"larger than two parts", 2*insertPart + 64, 1 << 40, []int{insertPart, 2 * insertPart, 2*insertPart + 64, insertPart}},
		{"smaller than a part", 1024, 1, []int{1024, 1024}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread() // a slice's time is that of its thread
			defer runtime.UnlockOSThread()
			b := bench{dir: t.TempDir()}
			keys, _, err := b.keyFiles(c.keys)
			if err != nil {
				t.Fatal(err)
			}
			f := flows{now: 1, memory: make([]byte, flowtable.Size(c.keys))}
			if f.keys, err = readPackets(keys); err != nil {
				t.Fatal(err)
			}
			if err := f.clear(); err != nil {
				t.Fatal(err)
			}
			var filled []int
			for range c.slices {
				s, err := f.slice("insert", time.Duration(c.ns))
				if err != nil || s.Wrong != "" || s.CPU <= 0 || s.Ops == 0 {
					t.Fatalf("%+v, %v", s, err)
				}
				filled = append(filled, f.filled)
			}
			if !slices.Equal(filled, c.slices) {
				t.Errorf("the table had %v keys, expected %v", filled, c.slices)
			}
		})
	}
}
