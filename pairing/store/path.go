package store

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// PathLen is the length in bytes of the longest Path: an Ethernet header with a VLAN tag, and nine labels; or, of a pseudowire, four labels, a control
// word and the Ethernet header inside.
const PathLen = 56

// Path is what a frame of one direction has before its IP header: what brings frames to their destination. A worker writes it for all. It needs no
// lock: an odd version means that it is being written.
type Path struct {
	version atomic.Uint32
	length  atomic.Uint32
	scope   atomic.Uint64 // of the flow that has sent the frame
	words   [PathLen / 8]atomic.Uint64
}

// Path is that of a side's last frame.
func (g *Group) Path(side int) *Path { return &g.paths[side] }

// Set replaces the path, unless another worker does. A head that is too long becomes none.
func (p *Path) Set(scope packet.Scope, head []byte) {
	v := p.version.Load()
	if v&1 != 0 || !p.version.CompareAndSwap(v, v+1) {
		return
	}
	var b [PathLen]byte
	n := copy(b[:], head)
	if n < len(head) {
		n = 0
	}
	p.scope.Store(uint64(scope))
	p.length.Store(uint32(n))
	for i := range p.words {
		p.words[i].Store(binary.LittleEndian.Uint64(b[8*i:]))
	}
	p.version.Store(v + 2)
}

// Get copies the path of a flow's scope to head, and returns its length in bytes; 0 if it isn't known.
func (p *Path) Get(scope packet.Scope, head *[PathLen]byte) int {
	v := p.version.Load()
	if packet.Scope(p.scope.Load()) != scope {
		return 0
	}
	n := p.length.Load()
	for i := range p.words {
		binary.LittleEndian.PutUint64(head[8*i:], p.words[i].Load())
	}
	if v&1 != 0 || p.version.Load() != v {
		return 0
	}
	return int(n)
}
