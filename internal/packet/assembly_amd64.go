//go:build !purego && !race

package packet

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/cnpgate/cnpgate/internal/burst"
)

// These are the functions in assembly, beside whose names are their specifications in Go. Under the race detector those run instead, since it
// doesn't see what assembly reads and writes.

// parsePlain is parsePlainGo.
//
//go:noescape
func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []Record) (r Run)

// markBurst is markBurstGo. It needs no more than any processor of this architecture has.
//
//go:noescape
func markBurst(base unsafe.Pointer, frames []burst.Frame, records []Record, these uint64) (marked uint64)

// putFoldedCRC is putSeededCRC. n is a multiple of 4, and at least 16.
//
//go:noescape
func putFoldedCRC(b *byte, n int)

// What the processor has: all but the first ones of this architecture have both.
var (
	vectors = cpu.X86.HasAVX                           // for parsePlain
	folds   = cpu.X86.HasSSSE3 && cpu.X86.HasPCLMULQDQ // for putFoldedCRC
)

// Numbers that parsePlain has in its header file.
const (
	frameData = unsafe.Offsetof(burst.Frame{}.Data)
	frameLen  = unsafe.Offsetof(burst.Frame{}.Len)
	frameHead = unsafe.Offsetof(burst.Frame{}.Head)
	frameSize = unsafe.Sizeof(burst.Frame{})
	ipAndKind = EthernetLen | int(RoCEv2)<<16 // Record.IP and Kind

	_ = frameData + frameLen + frameHead + frameSize + uintptr(ipAndKind) // only the assembly uses them
)
