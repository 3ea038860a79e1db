//go:build !purego && !race

package flowtable

import (
	"golang.org/x/sys/cpu"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// These are the functions in assembly. Each has a twin in Go with Go behind its name, which is its specification. The twins run with the build
// tag purego, on other architectures, and under the race detector, which doesn't see what assembly reads and writes.

// vectors reports whether the processor can run lookupFirst: all but the first ones of this architecture can. The others need nothing special.
var vectors = cpu.X86.HasAVX2 && cpu.X86.HasBMI2

//go:noescape
func lookupFirst(t *Table, packets []packet.Record, now int64, out []Ref) (missed uint64)

//go:noescape
func begin(e *entry, k *Key, now int64)

//go:noescape
func fill(b *bucket, slot int, tag uint16, x Index)
