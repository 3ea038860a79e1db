//go:build !purego && !race

package pairing

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const assembly = true

// countRoutine does what routine does, for one packet after another from number from on, and returns the number of the first packet that it
// leaves to routine: one that may not be routine, or neither a request nor a response.
//
//go:noescape
func countRoutine(tracks *track, states unsafe.Pointer, roles *[256]packet.Role, flows []flowtable.Ref, packets []packet.Record, from int) int

// Numbers that countRoutine has in its header file.
const (
	request     = uint8(packet.Request)
	response    = uint8(packet.Response)
	usable      = int(Confirmed) << 24 // as Answer.Usable
	usableMask  = endedBits | stateBits
	psnMask     = packet.PSNMask
	behind      = backMargin + 1
	nearHighest = backMargin + coarse
	trackShift  = 5 // log2 of a track's bytes
	strideShift = 6 // log2 of flowtable.StateStride

	_ = int(request) + int(response) + usable + usableMask + psnMask + behind + nearHighest // only the assembly uses them
)

// Where the assembly expects fields of other packages' types; a negative constant would not compile.
var (
	_ [1 << trackShift]byte       = [unsafe.Sizeof(track{})]byte{}
	_ [flowtable.StateStride]byte = [1 << strideShift]byte{}
	_ [8]byte                     = [unsafe.Sizeof(flowtable.Ref{})]byte{}
	_ [64]byte                    = [unsafe.Sizeof(packet.Record{})]byte{}
	_ [0 + 1]byte                 = [unsafe.Offsetof(flowtable.Ref{}.Index) + 1]byte{}
	_ [48]byte                    = [unsafe.Offsetof(packet.Record{}.PSN)]byte{}
	_ [52]byte                    = [unsafe.Offsetof(packet.Record{}.Len)]byte{}
	_ [56]byte                    = [unsafe.Offsetof(packet.Record{}.SrcPort)]byte{}
	_ [58]byte                    = [unsafe.Offsetof(packet.Record{}.Opcode)]byte{}
)
