//go:build !amd64 || purego || race

package flowtable

import "github.com/cnpgate/cnpgate/internal/packet"

const vectors = false

func lookupFirst(t *Table, packets []packet.Record, now int64, out []Ref) (missed uint64) {
	return lookupFirstGo(t, packets, now, out)
}

func begin(e *entry, k *Key, now int64) { beginGo(e, k, now) }

func fill(b *bucket, slot int, tag uint16, x Index) { fillGo(b, slot, tag, x) }
