//go:build !purego && !race

package flowtable

import "github.com/cnpgate/cnpgate/internal/packet"

// lookupFirst is lookupFirstGo in assembly, for at most 64 packets.
//
//go:noescape
func lookupFirst(t *Table, packets []packet.Record, now int64, out []Ref) (missed uint64)
