package flowtable

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// records has a packet of each flow.
func records(keys ...Key) []packet.Record {
	packets := make([]packet.Record, len(keys))
	for i := range keys {
		packets[i].Flow = keys[i].Words()
	}
	return packets
}

// memory returns a key's bytes.
func memory(k *Key) *[8 * keyWords]byte { return (*[8 * keyWords]byte)(unsafe.Pointer(k)) }

// flip flips a bit of a key's memory.
func flip(k *Key, bit int) { memory(k)[bit/8] ^= 1 << (bit % 8) }

// lineOffset is not 0 if the table's buckets or entries don't begin on a cache line.
func lineOffset(t *Table) uintptr {
	return uintptr(unsafe.Pointer(&t.buckets[0]))%lineSize | uintptr(unsafe.Pointer(&t.entries[0]))%lineSize
}
