//go:build !purego && !race

package packet

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// parsePlain is parsePlainGo in assembly. Under the race detector that runs instead, since it doesn't see what assembly reads and writes.
//
//go:noescape
func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []Record) (r Run)

// assembly reports whether the processor has PSHUFB: all but the first ones of this architecture do.
var assembly = cpu.X86.HasSSSE3

// For the assembly.
const (
	frameData = unsafe.Offsetof(burst.Frame{}.Data)
	frameLen  = unsafe.Offsetof(burst.Frame{}.Len)
	frameHead = unsafe.Offsetof(burst.Frame{}.Head)
	ipAndKind = EthernetLen | int(RoCEv2)<<16 // Record.IP and Kind
)

var _ [24]byte = [unsafe.Sizeof(burst.Frame{})]byte{}
