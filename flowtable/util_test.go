package flowtable

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// octets is a key's memory.
func octets(k *Key) *[8 * keyWords]byte { return (*[8 * keyWords]byte)(unsafe.Pointer(k)) }

// padKey puts something into the padding.
func padKey(k *Key) { octets(k)[8*keyWords-1] = 0x55 }

// flip flips a bit of a key's memory.
func flip(k *Key, bit int) { octets(k)[bit/8] ^= 1 << (bit % 8) }

// lineOffset is not 0 if the table's buckets or entries don't begin on a cache line.
func lineOffset(t *Table) uintptr {
	return uintptr(unsafe.Pointer(&t.buckets[0]))%lineSize | uintptr(unsafe.Pointer(&t.entries[0]))%lineSize
}

// observe takes a packet as the dataplane does: what Routine stops at is for Observe.
func observe(t *Table, x Index, p *packet.Parsed, b []byte, now int64) {
	parsed := [maxBurst]packet.Parsed{*p}
	if t.Routine([]Index{x}, []uint8{0}, &parsed, 0) == 0 {
		t.Observe(x, p, b, now)
	}
}
