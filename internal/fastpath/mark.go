package fastpath

import (
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// MarkBurst marks, as packet.MarkCE does, the frames that these has a bit for, and returns a bit for each one that it has marked. base is the base
// address of the frames' data; records are those of the frames, which it doesn't change: an IP header is of version 4 or 6. There are at most 64
// frames.
func MarkBurst(base unsafe.Pointer, frames []burst.Frame, records []packet.Record, these uint64) (marked uint64) {
	return markBurst(base, frames, records[:len(frames)], these&(1<<len(frames)-1))
}

// MarkBurstGo is the specification of markBurst.
func MarkBurstGo(base unsafe.Pointer, frames []burst.Frame, records []packet.Record, these uint64) (marked uint64) {
	for ; these != 0; these &= these - 1 {
		i := bits.TrailingZeros64(these)
		f := &frames[i]
		if packet.MarkCE(unsafe.Slice((*byte)(unsafe.Add(base, int(f.Data))), f.Head), records[i].IP, records[i].ECN()) {
			marked |= 1 << i
		}
	}
	return marked
}

// Markable returns a bit for each packet that MarkBurst would mark of those that these has a bit for.
func Markable(records []packet.Record, these uint64) (markable uint64) {
	for ; these != 0; these &= these - 1 {
		i := bits.TrailingZeros64(these)
		if ecn := records[i].ECN(); ecn != packet.NotECT && ecn != packet.CE {
			markable |= 1 << i
		}
	}
	return markable
}
