//go:build !amd64 || purego || race

package flowtable

import "github.com/cnpgate/cnpgate/internal/packet"

func lookupFirst(t *Table, packets []packet.Record, now int64, out []Ref) uint64 {
	return lookupFirstGo(t, packets, now, out)
}
