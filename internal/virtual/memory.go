package virtual

import "unsafe"

// Heap allocates zeroed memory on the Go heap, aligned to 64 bytes, as a dataplane needs it.
func Heap(bytes int) ([]byte, error) {
	const line = 64
	b := make([]byte, bytes+line-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % line)
	return b[skip : skip+bytes : skip+bytes], nil
}
