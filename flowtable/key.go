package flowtable

import (
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Key is what the packets of a flow have in common: the addresses, the destination QP, and where the flow was seen. Port and tags count because
// tenants may use the same addresses behind different gateway ports and in different VLANs, and the same VID in an S-VLAN and a C-VLAN. So does
// the tunnel, for the same reason. Only UD packets carry their source QP, so it is 0 in other keys. Numbers are in host byte order; a missing
// field is 0.
type Key struct {
	Src, Dst packet.Addr
	DestQP   uint32     // 24 bits
	SourceQP uint32     // 24 bits, of UD packets only (DETH), else 0
	Port     uint16     // the flow's ingress port, which also gives the direction
	OuterTag packet.Tag // of the frame; 0 without. Of a flow in a tunnel, the lower half of the tunnel's identifier
	InnerTag packet.Tag // the upper half
	tunnel   uint16     // see packet.Scope
}

// SetScope sets where a packet was seen.
func (k *Key) SetScope(s packet.Scope) {
	(*[keyWords]uint64)(unsafe.Pointer(k))[keyWords-1] = uint64(s) // on a little-endian processor
}

// Scope is what distinguishes flows with the same addresses and QPs: the ingress port, and the VLAN tags or the tunnel.
func (k *Key) Scope() packet.Scope {
	return packet.Scope((*[keyWords]uint64)(unsafe.Pointer(k))[keyWords-1])
}

// SetTunnel puts the flow into a tunnel; outer is the first VLAN tag of the whole frame.
func (k *Key) SetTunnel(t packet.Tunnel, outer packet.Tag) {
	k.SetScope(packet.ScopeInTunnel(k.Port, t, outer))
}

// Encapsulated reports whether the flow is in a tunnel.
func (k *Key) Encapsulated() bool { return k.tunnel != 0 }

const keyWords = 6

var _ [8 * keyWords]byte = [unsafe.Sizeof(Key{})]byte{}

// same compares in words.
func (k *Key) same(o *Key) bool {
	a, b := (*[keyWords]uint64)(unsafe.Pointer(k)), (*[keyWords]uint64)(unsafe.Pointer(o))
	return (a[0]^b[0])|(a[1]^b[1])|(a[2]^b[2])|(a[3]^b[3])|(a[4]^b[4])|(a[5]^b[5]) == 0
}

// KeyOf is a packet's key, which lies in its record.
func KeyOf(p *packet.Record) *Key { return (*Key)(unsafe.Pointer(&p.Flow)) }

// Words is the key as a packet's record has it.
func (k *Key) Words() packet.FlowWords { return *(*packet.FlowWords)(unsafe.Pointer(k)) }

var _ [unsafe.Sizeof(packet.FlowWords{})]byte = [unsafe.Sizeof(Key{})]byte{}

// words is the key as it lies in memory.
func (k *Key) words() [keyWords]uint64 { return *(*[keyWords]uint64)(unsafe.Pointer(k)) }

const secrets = keyWords

// hashAll stores the hash of each packet's key in out. It treats IPv4 and IPv6 alike: a branch between them would often be mispredicted, which
// costs more than the products that an IPv4 key could do without.
func hashAll(s *[secrets]uint64, packets []packet.Record, out []uint64) {
	out = out[:len(packets)]
	for i := range packets {
		w := (*[keyWords]uint64)(unsafe.Pointer(&packets[i].Flow))
		x, y := keyhash.Fold(w[0]^s[0], w[1]^s[1]), keyhash.Fold(w[2]^s[2], w[3]^s[3])
		out[i] = keyhash.Fold(x^w[4]^s[4], y^w[5]^s[5])
	}
}
