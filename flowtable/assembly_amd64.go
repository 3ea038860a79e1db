//go:build !purego && !race

package flowtable

import "github.com/cnpgate/cnpgate/internal/packet"

// These are the functions in assembly. The functions of the same names with Go are their specifications. Under the race detector these run
// instead, since it doesn't see what assembly reads and writes.

//go:noescape
func lookupFirst(t *Table, packets []packet.Record, now int64, out []Ref) (missed uint64)

//go:noescape
func begin(e *entry, k *Key, now int64)

//go:noescape
func fill(b *bucket, slot int, tag uint16, x Index)
