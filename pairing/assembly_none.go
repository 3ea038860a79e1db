//go:build !amd64 || purego || race

package pairing

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const assembly = false

func countRoutine(_ *track, _ unsafe.Pointer, _ *[256]packet.Role, _ []flowtable.Ref, _ []packet.Record, from int) int {
	return from
}
