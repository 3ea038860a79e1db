//go:build !amd64 || purego || race

package packet

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
)

const shuffles, folds = false, false

func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []Record) (r Run) {
	return parsePlainGo(base, frames, port, records)
}

func putFoldedCRC(b *byte, n int) { putSeededCRC(unsafe.Slice(b, n+ICRCLen)) }
