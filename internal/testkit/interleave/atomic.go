package interleave

// The types have the sizes, alignment and methods of those in sync/atomic, as far as the packages of the models use them. One thread runs at a time, so plain memory is
// enough.

// number is an atomic integer.
type number[T int32 | uint32 | int64 | uint64] struct{ value T }

type (
	Int32  struct{ number[int32] }
	Uint32 struct{ number[uint32] }
	Int64  struct{ number[int64] }
	Uint64 struct{ number[uint64] }
)

func (n *number[T]) Load() T {
	before(&n.value, false)
	value := n.value
	after()
	return value
}

func (n *number[T]) Store(value T) {
	before(&n.value, true)
	n.value = value
	after()
}

func (n *number[T]) Swap(value T) (old T) {
	before(&n.value, true)
	old, n.value = n.value, value
	after()
	return old
}

func (n *number[T]) Add(delta T) T {
	before(&n.value, true)
	n.value += delta
	sum := n.value
	after()
	return sum
}

func (n *number[T]) CompareAndSwap(old, value T) bool {
	before(&n.value, true)
	same := n.value == old
	if same {
		n.value = value
	}
	after()
	return same
}

func (n *number[T]) And(mask T) (old T) {
	before(&n.value, true)
	old = n.value
	n.value &= mask
	after()
	return old
}

func (n *number[T]) Or(mask T) (old T) {
	before(&n.value, true)
	old = n.value
	n.value |= mask
	after()
	return old
}

// Pointer is an atomic pointer.
type Pointer[T any] struct{ to *T }

func (p *Pointer[T]) Load() *T {
	before(&p.to, false)
	to := p.to
	after()
	return to
}

func (p *Pointer[T]) Store(to *T) {
	before(&p.to, true)
	p.to = to
	after()
}

func (p *Pointer[T]) CompareAndSwap(old, to *T) bool {
	before(&p.to, true)
	same := p.to == old
	if same {
		p.to = to
	}
	after()
	return same
}

// Bool is an atomic truth value.
type Bool struct{ value number[uint32] }

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (b *Bool) Load() bool                        { return b.value.Load() != 0 }
func (b *Bool) Store(value bool)                  { b.value.Store(bit(value)) }
func (b *Bool) Swap(value bool) bool              { return b.value.Swap(bit(value)) != 0 }
func (b *Bool) CompareAndSwap(old, new bool) bool { return b.value.CompareAndSwap(bit(old), bit(new)) }

func LoadUint32(p *uint32) uint32 {
	before(p, false)
	value := *p
	after()
	return value
}

func AddUint32(p *uint32, delta uint32) uint32 {
	before(p, true)
	*p += delta
	sum := *p
	after()
	return sum
}
