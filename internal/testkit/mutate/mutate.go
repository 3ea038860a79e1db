// Package mutate mutates frames as accidents and attackers would. It runs the bodies of fuzz targets in process, a million times a second,
// where Go's fuzzer reaches some ten thousand. It is for tests only and imports of this project only effort, so that the tests of every
// package may use it.
package mutate

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// Executions is how many mutants a fuzz target of a codec gets.
const Executions = 50_000*effort.Short + 20_000*effort.Race + 25_000_000*effort.Long

const (
	// MaxLen is the length of the longest mutant, in bytes.
	MaxLen = 2048
	// headers is the range from the front in which nearly all mutations take place, in bytes.
	headers = 120
	// maxChanges bounds the mutations of a mutant. Most mutants have few, and stay close to their seed.
	maxChanges = 3
	maxInsert  = 8
)

// Mutator makes mutants of seeds. The same number and seeds give the same mutants in the same order. It allocates nothing.
type Mutator struct {
	*rand.Rand
	seeds [][]byte
	buf   [MaxLen + maxInsert]byte
	n     int
}

// New makes a mutator. It chooses all seeds with the same probability.
func New(number uint64, seeds [][]byte) *Mutator {
	return &Mutator{Rand: rand.New(rand.NewPCG(number, 0)), seeds: seeds}
}

// Seed is the number for New, different in each run. CNPGATE_SEED sets it, to repeat a run.
func Seed() uint64 {
	if s, err := strconv.ParseUint(os.Getenv("CNPGATE_SEED"), 10, 64); err == nil {
		return s
	}
	return rand.Uint64()
}

// T is what Run needs of a *testing.T.
type T interface {
	Logf(format string, args ...any)
	Cleanup(func())
}

// Run begins a test that executes a fuzz target's body on mutants of its seeds, in process. CNPGATE_SEED repeats it.
func Run(t T, executions int, seeds [][]byte) *Mutator {
	number, start := Seed(), time.Now()
	t.Logf("CNPGATE_SEED=%d", number)
	t.Cleanup(func() { t.Logf("%d executions in %.1f s", executions, time.Since(start).Seconds()) })
	return New(number, seeds)
}

// Next makes a mutant. It returns the index of its seed, its bytes, which are valid until the next call, and the number of bytes that
// follow on the wire but weren't captured.
func (m *Mutator) Next() (seed int, b []byte, missing uint32) {
	seed = m.IntN(len(m.seeds))
	m.n = copy(m.buf[:MaxLen], m.seeds[seed])
	for range 1 + m.IntN(maxChanges) {
		if m.n == 0 {
			break
		}
		missing += m.change()
	}
	m.n = min(m.n, MaxLen)
	if m.IntN(16) == 0 {
		missing += m.Uint32N(9000)
	}
	return seed, m.buf[:m.n], missing
}

// at is a random offset in the headers.
func (m *Mutator) at() int { return m.IntN(min(m.n, headers)) }

// change makes one mutation. It returns the number of bytes cut from the capture only.
func (m *Mutator) change() uint32 {
	switch m.IntN(8) {
	case 0:
		for range 1 + m.IntN(8) {
			m.buf[m.at()] ^= 1 << m.IntN(8)
		}
	case 1:
		return m.cut()
	case 2:
		m.number()
	case 3:
		m.splice()
	case 4:
		m.insert()
	case 5, 6:
		m.buf[m.at()] = octets[m.IntN(len(octets))]
	case 7:
		m.remove()
	}
	return 0
}

// octets are values with a meaning in some header: versions and header lengths, protocols, VLAN tags, opcodes, BTH flags, option, message
// and object types, and the ends of ranges.
var octets = [...]byte{
	0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 20, 26, 40, 43, 44, 51, 58, 60, 0x11, 0x31, 0x3f, 0x45, 0x46, 0x4f, 0x60, 0x40, 0x81, 0x88, 0x91,
	0x9e, 0x9f, 100, 101, 0x7f, 0x80, 0xc0, 0xc5, 0xc8, 0xe0, 0xf7, 0xfe, 0xff,
}

// numbers are 16-bit values: wrong lengths, EtherTypes, ports, MAC control opcodes, partition keys.
var numbers = [...]uint16{
	0, 1, 3, 4, 7, 8, 12, 16, 19, 20, 28, 36, 40, 44, 576, 1280, 0xffff, 0x7fff, 0x8000, 0x0800, 0x86dd, 0x8100, 0x88a8, 0x9100, 0x8808, 0x0101,
	4791, 1022, 0x2000,
}

// places are the offsets of 16-bit numbers in headers without tags: lengths in IPv4, IPv6, UDP and extension headers, EtherTypes and ports.
// Random offsets cover headers after tags.
var places = [...]int{12, 16, 18, 20, 36, 38, 40, 42, 54, 55, 56, 58, 60, 62}

func (m *Mutator) number() {
	place := m.at()
	if m.IntN(2) == 0 {
		place = places[m.IntN(len(places))]
	}
	if place+2 > m.n {
		return
	}
	value := uint16(m.Uint32())
	switch m.IntN(4) {
	case 0, 1:
		value = numbers[m.IntN(len(numbers))]
	case 2: // close to the old value, or to the present length
		value = uint16(m.n - place)
		if m.IntN(2) == 0 {
			value = binary.BigEndian.Uint16(m.buf[place:])
		}
		value += uint16(m.IntN(9)) - 4
	}
	binary.BigEndian.PutUint16(m.buf[place:], value)
}

// cut shortens the mutant; every other time, the bytes are missing from the capture only.
func (m *Mutator) cut() uint32 {
	gone := m.n
	if m.n = m.IntN(m.n + 1); m.IntN(2) == 0 {
		return 0
	}
	return uint32(gone - m.n)
}

// splice replaces the rest of the mutant with that of another seed.
func (m *Mutator) splice() {
	tail := m.seeds[m.IntN(len(m.seeds))]
	if len(tail) == 0 {
		return
	}
	at := m.IntN(min(m.n, len(tail), headers))
	m.n = at + copy(m.buf[at:MaxLen], tail[at:])
}

// inserts are inserted where they don't belong: VLAN tags, options headers, a Fragment header, an object, zeros.
var inserts = [...]string{
	"\x81\x00\x00\x01", "\x88\xa8\x00\x02", "\x91\x00\x60\x64", "\x3c\x00\x01\x04\x00\x00\x00\x00", "\x2c\x00\x00\x00\x00\x00\x00\x00",
	"\x11\x00\x01\x04\x00\x00\x00\x00", "\x00\x08\xf7\x02abcd", "\x00\x04\xf7\x03", "\x01\x00", "\x00",
}

func (m *Mutator) insert() {
	what := inserts[m.IntN(len(inserts))]
	at := m.at()
	n := min(m.n, MaxLen)
	copy(m.buf[at+len(what):], m.buf[at:n])
	copy(m.buf[at:], what)
	m.n = min(n+len(what), MaxLen)
}

// remove removes up to eight bytes.
func (m *Mutator) remove() {
	at := m.at()
	n := min(1+m.IntN(maxInsert), m.n-at)
	copy(m.buf[at:], m.buf[at+n:m.n])
	m.n -= n
}
