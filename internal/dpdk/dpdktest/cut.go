//go:build !nodpdk

package dpdktest

/*
#include "cut.h"
*/
import "C"

import (
	"encoding/binary"
	"unsafe"
)

// Offload is what a struct virtio_net_hdr says of a large packet.
type Offload struct {
	Type      uint8  // VIRTIO_NET_HDR_GSO_*
	Size      uint16 // bytes of payload in each frame
	Transport uint16 // offset of the TCP or UDP header whose payload is cut
}

// Cut returns the frames that internal/dpdk makes of a large packet, each of at most capacity bytes; none if it can't be cut.
func Cut(packet []byte, o Offload, capacity int) (frames [][]byte) {
	h := make([]byte, 10)
	h[0], h[1] = 1, o.Type // the checksum is to be completed
	binary.NativeEndian.PutUint16(h[4:], o.Size)
	binary.NativeEndian.PutUint16(h[6:], o.Transport)
	most := len(packet)/max(int(o.Size), 1) + 1
	out, lengths := make([]byte, most*capacity), make([]C.uint32_t, most+1)
	bytes := func(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))) }
	n := C.cut(bytes(packet), C.uint32_t(len(packet)), bytes(h), bytes(out), C.uint32_t(most), unsafe.SliceData(lengths), C.uint32_t(capacity))
	for i := range int(n) {
		frames = append(frames, out[i*capacity:][:lengths[i]])
	}
	return frames
}

// Complete writes the checksum of the bytes from start on to the field that lies offset bytes behind start, as internal/dpdk does; the field
// holds the sum of the pseudo-header. False, and nothing is changed, where the field isn't in the frame.
func Complete(frame []byte, start, offset uint16) bool {
	return C.complete((*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(frame))), C.uint32_t(len(frame)), C.uint16_t(start), C.uint16_t(offset)) != 0
}
