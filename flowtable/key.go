package flowtable

import (
	"math/bits"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Key is what the packets of a flow have in common: the addresses, the destination QP, and where the flow was seen. Port and tags count because
// tenants may use the same addresses behind different gateway ports and in different VLANs, and the same VID in an S-VLAN and a C-VLAN. Only UD
// packets carry their source QP, so it is 0 in other keys. Numbers are in host byte order; a missing field is 0.
type Key struct {
	Src, Dst packet.Addr
	DestQP   uint32     // 24 bits
	SourceQP uint32     // 24 bits, of UD packets only (DETH), else 0
	Port     uint16     // the flow's ingress port, which also gives the direction
	OuterTag packet.Tag // of the frame; 0 without
	InnerTag packet.Tag
	_        uint16
}

const (
	keyWords = 6
	padding  = 16 // bits of padding: the highest ones of the last word, on a little-endian processor
)

var _ [8 * keyWords]byte = [unsafe.Sizeof(Key{})]byte{}

// same compares all but the padding, in words.
func (k *Key) same(o *Key) bool {
	a, b := (*[keyWords]uint64)(unsafe.Pointer(k)), (*[keyWords]uint64)(unsafe.Pointer(o))
	return (a[0]^b[0])|(a[1]^b[1])|(a[2]^b[2])|(a[3]^b[3])|(a[4]^b[4])|(a[5]^b[5])<<padding == 0
}

// words is the key as it lies in memory, with its padding cleared.
func (k *Key) words() [keyWords]uint64 {
	c := Key{k.Src, k.Dst, k.DestQP, k.SourceQP, k.Port, k.OuterTag, k.InnerTag, 0}
	return *(*[keyWords]uint64)(unsafe.Pointer(&c))
}

const secrets = keyWords

// hashAll stores the hash of each key in out. It skips the upper address words of an IPv4 key, which are 0.
func hashAll(s *[secrets]uint64, keys []Key, out []uint64) {
	out = out[:len(keys)]
	for i := range keys {
		w := (*[keyWords]uint64)(unsafe.Pointer(&keys[i]))
		a, b := w[4]^s[4], w[5]<<padding>>padding^s[5]
		var x, y uint64
		if w[0]|w[2] == 0 {
			x = keyhash.Fold(w[1]^s[1], w[3]^s[3])
			y = bits.RotateLeft64(x, 32)
		} else {
			x, y = keyhash.Fold(w[0]^s[0], w[1]^s[1]), keyhash.Fold(w[2]^s[2], w[3]^s[3])
		}
		out[i] = keyhash.Fold(x^a, y^b)
	}
}

func (t *Table) hash(k *Key) uint64 {
	var h [1]uint64
	hashAll(&t.secret, unsafe.Slice(k, 1), h[:])
	return h[0]
}
