package flowtable

import (
	"math/bits"
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
	tunnel   tunnel
}

// tunnel is a tunnel's kind and a VLAN; 0 of a flow outside any tunnel:
//
//	15    13  12  11            0
//	+-------+----+---------------+
//	| kind  | in |      VID      |  in: the VID is that of the frame inside, otherwise that of the whole frame
//	+-------+----+---------------+
type tunnel uint16

const (
	tunnelKind   = 13 // shift
	tunnelInside = 1 << 12
	tunnelVID    = tunnelInside - 1
	idHalf       = 16 // bits of a tunnel's identifier in each of the two tags
)

// SetPlace sets where a packet was seen: its ingress port, and its VLAN tags or its tunnel. In a tunnel one VLAN counts: the first one of the
// Ethernet frame inside; if that has no tag, the first one of the whole frame.
func (k *Key) SetPlace(port uint16, p *packet.Parsed) {
	k.Port, k.OuterTag, k.InnerTag, k.tunnel = port, p.OuterTag, p.InnerTag, 0
	if p.Encapsulated() {
		k.SetTunnel(p.Tunnel(), p.OuterTag)
	}
}

// SetTunnel puts the flow into a tunnel; outer is the first VLAN tag of the whole frame.
func (k *Key) SetTunnel(t packet.Tunnel, outer packet.Tag) {
	k.OuterTag, k.InnerTag = packet.Tag(t.ID), packet.Tag(t.ID>>idHalf)
	k.tunnel = tunnel(t.Kind)<<tunnelKind | tunnel(outer.VID())
	if t.VLAN != 0 {
		k.tunnel = tunnel(t.Kind)<<tunnelKind | tunnelInside | tunnel(t.VLAN.VID())
	}
}

// Tunnel returns the kind and the identifier of the flow's tunnel (packet.Tunnel.ID), and the VID that distinguishes the flow there, 0
// without one; NoTunnel of a flow outside any tunnel.
func (k *Key) Tunnel() (kind packet.TunnelKind, id uint32, vid uint16) {
	if k.tunnel == 0 {
		return packet.NoTunnel, 0, 0
	}
	return packet.TunnelKind(k.tunnel >> tunnelKind), uint32(k.OuterTag) | uint32(k.InnerTag)<<idHalf, uint16(k.tunnel & tunnelVID)
}

// Encapsulated reports whether the flow is in a tunnel.
func (k *Key) Encapsulated() bool { return k.tunnel != 0 }

// Place is in one word what distinguishes flows with the same addresses and QPs, except their direction: the VLAN tags or the tunnel. Its
// lowest 16 bits are 0.
func (k *Key) Place() uint64 { return (*[keyWords]uint64)(unsafe.Pointer(k))[keyWords-1] &^ portMask }

const (
	keyWords = 6
	portMask = 1<<16 - 1 // of Port in the last word, on a little-endian processor
)

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

// hash skips the upper address words of an IPv4 key, which are 0.
func hash(s *[secrets]uint64, k *Key) uint64 {
	w := (*[keyWords]uint64)(unsafe.Pointer(k))
	a, b := w[4]^s[4], w[5]^s[5]
	var x, y uint64
	if w[0]|w[2] == 0 {
		x = keyhash.Fold(w[1]^s[1], w[3]^s[3])
		y = bits.RotateLeft64(x, 32)
	} else {
		x, y = keyhash.Fold(w[0]^s[0], w[1]^s[1]), keyhash.Fold(w[2]^s[2], w[3]^s[3])
	}
	return keyhash.Fold(x^a, y^b)
}

func (t *Table) hash(k *Key) uint64 { return hash(&t.secret, k) }
