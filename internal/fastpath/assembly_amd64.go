//go:build !purego && !race

package fastpath

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// These are the functions in assembly, beside whose names are their specifications in Go. Under the race detector those run instead, since it
// doesn't see what assembly reads and writes.

// parsePlain is ParsePlainGo.
//
//go:noescape
func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []packet.Record) (r Run)

// markBurst is MarkBurstGo. It needs no more than any processor of this architecture has.
//
//go:noescape
func markBurst(base unsafe.Pointer, frames []burst.Frame, records []packet.Record, these uint64) (marked uint64)

// Store64 stores a word that one worker writes and others read. Of atomic.Int64's Store it has what readers need: they read the old value or the
// new one, and after all that was stored before. A processor of this architecture gives that to any store. Store also waits until all stores
// have reached the cache, which takes longer than choosing a sender.
//
//go:noescape
func Store64(word *atomic.Int64, value int64)

// Prefetch begins to fetch two cache lines from an address on, which will be read soon.
//
//go:noescape
func Prefetch(at unsafe.Pointer)

var vectors = cpu.X86.HasAVX // for parsePlain; all but the first processors of this architecture have it

// Numbers that the assembly has in its header file.
const (
	frameData = unsafe.Offsetof(burst.Frame{}.Data)
	frameLen  = unsafe.Offsetof(burst.Frame{}.Len)
	frameHead = unsafe.Offsetof(burst.Frame{}.Head)
	frameSize = unsafe.Sizeof(burst.Frame{})

	recordFlow = unsafe.Offsetof(packet.Record{}.Flow)
	recordPSN  = unsafe.Offsetof(packet.Record{}.PSN)
	recordTOS  = unsafe.Offsetof(packet.Record{}.TOS)
	recordIP   = unsafe.Offsetof(packet.Record{}.IP)
	ipAndKind  = packet.EthernetLen | uintptr(packet.RoCEv2)<<16 // Record.IP and Kind

	_ = frameData + frameLen + frameHead + frameSize + recordFlow + recordPSN + recordTOS + recordIP + ipAndKind // only the assembly uses them
)
