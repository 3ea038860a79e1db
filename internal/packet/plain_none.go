//go:build !amd64 || purego || race

package packet

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
)

const assembly = false

func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []Record) (r Run) {
	return parsePlainGo(base, frames, port, records)
}
