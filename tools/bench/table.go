package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const keySize = int(unsafe.Sizeof(flowtable.Key{}))

// key returns a flow's key, like the dataplane's for the traffic's frame.
func (t traffic) key(i int) flowtable.Key {
	f := flowNumber(i)
	k := flowtable.Key{DestQP: f.qp}
	k.Src = packet.Addr{Lo: 0xffff<<32 | 10<<24 | uint64(f.source)}
	k.Dst = packet.Addr{Lo: 0xffff<<32 | 11<<24 | uint64(f.destination)}
	return k
}

// keyFiles writes the keys of the flows, and a random sequence of as many of them or more to look up, as C reads them too.
func (b *bench) keyFiles(flows int) (keys, wanted string, err error) {
	all := make([]flowtable.Key, flows)
	for i := range all {
		all[i] = traffic{}.key(i)
	}
	rng := rand.New(rand.NewPCG(1, uint64(flows)))
	some := make([]flowtable.Key, max(flows, 1<<12))
	for i := range some {
		some[i] = all[rng.IntN(flows)]
	}
	keys, wanted = filepath.Join(b.dir, "keys"), filepath.Join(b.dir, "wanted")
	return keys, wanted, errors.Join(os.WriteFile(keys, octets(all), 0o600), os.WriteFile(wanted, octets(some), 0o600))
}

func octets(keys []flowtable.Key) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(keys))), len(keys)*keySize)
}

// readPackets makes a packet of each key in a file.
func readPackets(path string) ([]packet.Record, error) {
	text, err := os.ReadFile(path)
	keys := make([]flowtable.Key, len(text)/keySize)
	copy(octets(keys), text)
	packets := make([]packet.Record, len(keys))
	for i := range keys {
		packets[i].Flow = keys[i].Words()
	}
	return packets, err
}

// flows is a flow table under test.
type flows struct {
	memory []byte
	keys   []packet.Record // a packet of each flow
	wanted []packet.Record
	at     int // next to look up
	filled int // keys that the table has
	now    int64
	table  *flowtable.Table
	out    [64]flowtable.Ref
}

// table is the program: arguments are the files of keys and of keys to look up.
func table(args []string) error {
	if len(args) != 3 {
		return errors.New("table: expected a core and two files")
	}
	core, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := pin(core); err != nil {
		return err
	}
	f := flows{now: 1}
	if f.keys, err = readPackets(args[1]); err != nil {
		return err
	}
	if f.wanted, err = readPackets(args[2]); err != nil {
		return err
	}
	var memory assemble.Memory
	if f.memory, err = memory.Allocate(flowtable.Size(len(f.keys))); err != nil {
		return err
	}
	if err := f.clear(); err != nil {
		return err
	}
	f.insert(len(f.keys))
	return serve(f.slice)
}

// slice looks up, or inserts, for some CPU time.
func (f *flows) slice(what string, d time.Duration) (s *sample, err error) {
	s = &sample{}
	insert := what == "insert"
	for more := true; more; more = s.CPU < d.Nanoseconds() && !(insert && len(f.keys) > insertPart) {
		if insert && f.filled == len(f.keys) {
			if err := f.clear(); err != nil {
				return s, err
			}
		}
		before := threadCPU()
		if insert {
			s.Ops += uint64(f.insert(insertPart))
		} else {
			s.Ops += uint64(f.lookUp())
		}
		s.CPU += threadCPU() - before
	}
	if stats := f.table.Stats(); stats.Flows != uint64(f.filled) || stats.Insertions != stats.Flows {
		s.Wrong = fmt.Sprintf("the table has %+v of %d keys", stats, f.filled)
	}
	return s, nil
}

// insertPart is how many keys a slice inserts into a table that holds more, until that is full and is cleared. So pairs of slices begin at
// the same fill level. Of a smaller table, a slice fills as many as its time allows. peer/rtehash.c does the same.
const insertPart = 1 << 16

// clear makes a new table in the same memory, which has been touched before.
func (f *flows) clear() (err error) {
	clear(f.memory)
	f.filled = 0
	f.table, err = flowtable.New(f.memory, flowtable.Config{Capacity: len(f.keys), Aging: int64(time.Hour), Seed: 1})
	return err
}

// insert adds the next n keys, or as many as there are, and returns their number.
func (f *flows) insert(n int) int {
	keys := f.keys[f.filled:min(f.filled+n, len(f.keys))]
	for at := 0; at < len(keys); at += 64 {
		f.table.Lookup(keys[at:at+64], f.now, f.out[:])
	}
	f.filled += len(keys)
	return len(keys)
}

// lookUp does 1024 bursts and returns the number of lookups.
func (f *flows) lookUp() int {
	for range 1024 {
		f.table.Lookup(f.wanted[f.at:f.at+64], f.now, f.out[:])
		f.now += 1000
		if f.at += 64; f.at == len(f.wanted) {
			f.at = 0
		}
	}
	return 1024 * 64
}
