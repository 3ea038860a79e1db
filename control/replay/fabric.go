package replay

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// CheckFabric returns an error for the first prefix from which no frame comes, because such a replay would show nothing. The error lists the frames'
// sources. A capture without frames is not an error. Afterwards the capture is at its start again.
func (c *Capture) CheckFabric(fabric []netip.Prefix) error {
	if c.Frames == 0 {
		return nil
	}
	from := newOrigins()
	missing, err := c.unmatched(fabric, from)
	c.rewind()
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("%v: no frame of capture %s comes from there; expected a prefix with hosts of the data centre; the frames come from %v",
		missing[0], c.name, from)
}

// unmatched are the prefixes from which no frame comes. It reads no further than necessary, and adds the sources that it reads to from.
func (c *Capture) unmatched(fabric []netip.Prefix, from *origins) ([]netip.Prefix, error) {
	missing := slices.Clone(fabric)
	for len(missing) > 0 {
		frame, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, source := range senders(frame.Octets, frame.Length) {
			missing = slices.DeleteFunc(missing, func(p netip.Prefix) bool { return p.Contains(source) })
			from.add(source, 1)
		}
	}
	return missing, nil
}

const (
	shownOrigins = 8    // prefixes in an error
	keptOrigins  = 4096 // prefixes in memory
)

// origins counts frames by source: by hosts, or by prefixes if there are too many hosts.
type origins struct {
	frames       map[netip.Prefix]int
	bits4, bits6 int // length of the prefixes
}

func newOrigins() *origins { return &origins{frames: map[netip.Prefix]int{}, bits4: 32, bits6: 128} }

func (o *origins) add(host netip.Addr, frames int) {
	bits := o.bits6
	if host.Is4() {
		bits = o.bits4
	}
	o.frames[netip.PrefixFrom(host, bits).Masked()] += frames
	o.widen(keptOrigins)
}

// widen shortens prefixes, to usual lengths, until at most this many are left.
func (o *origins) widen(most int) {
	for len(o.frames) > most {
		o.bits4, o.bits6 = next(o.bits4, 24, 16, 8), next(o.bits6, 64, 48, 32, 16)
		longer := o.frames
		o.frames = map[netip.Prefix]int{}
		for p, frames := range longer {
			o.add(p.Addr(), frames)
		}
	}
}

// next is the first length below bits; 0, which matches everything, after the last.
func next(bits int, lengths ...int) int {
	for _, length := range lengths {
		if length < bits {
			return length
		}
	}
	return 0
}

// String lists them, most frames first.
func (o *origins) String() string {
	if len(o.frames) == 0 {
		return "no IP address at all"
	}
	o.widen(shownOrigins)
	prefixes := slices.SortedFunc(maps.Keys(o.frames), func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(o.frames[b], o.frames[a]), a.Addr().Compare(b.Addr()))
	})
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = fmt.Sprintf("%v (frames: %d)", p, o.frames[p])
	}
	return strings.Join(texts, ", ")
}

const (
	etherTypeARP = 0x0806
	arpLen       = 28 // of ARP for IPv4 over Ethernet (RFC 826)
	arpSender    = 14 // offset of the sender's protocol address
	// arpIPv4 is its beginning: hardware type 1, protocol type, 6 and 4 octets of address.
	arpIPv4 = 1<<48 | packet.EtherTypeIPv4<<32 | 6<<24 | 4<<16
)

// fromFabric reports whether a frame's sender is inside one of the prefixes. Frames without a sender count as from the WAN.
func fromFabric(octets []byte, length uint32, fabric []netip.Prefix) bool {
	return slices.ContainsFunc(senders(octets, length), func(source netip.Addr) bool {
		return slices.ContainsFunc(fabric, func(p netip.Prefix) bool { return p.Contains(source) })
	})
}

// senders are an IP packet's source or an ARP packet's sender; other frames have none. A RoCEv2 packet in an IP tunnel has two: where the
// tunnel begins, and the host.
func senders(octets []byte, length uint32) []netip.Addr {
	var p packet.Parsed
	packet.Parse(octets, length, &p)
	switch {
	case p.Family == 0:
		return sendersOf(octets, &p)
	case p.Outer != p.L3:
		return append(sourceAt(octets[p.Outer:]), p.Src.Netip())
	}
	return []netip.Addr{p.Src.Netip()}
}

// sendersOf is the sender of an ARP packet, or the source in an invalid IP header, for instance one with a wrong length: the
// source still shows the port.
func sendersOf(octets []byte, p *packet.Parsed) []netip.Addr {
	at := min(packet.EthernetLen+int(p.Tags)*packet.VLANTagLen, len(octets))
	switch b := octets[at:]; {
	case p.EtherType == packet.EtherTypeIPv4 && len(b) >= packet.IPv4Len && b[0]>>4 == 4,
		p.EtherType == packet.EtherTypeIPv6 && len(b) >= packet.IPv6Len && b[0]>>4 == 6:
		return sourceAt(b)
	case p.EtherType == etherTypeARP && len(b) >= arpLen && binary.BigEndian.Uint64(b)>>16 == arpIPv4>>16:
		return []netip.Addr{packet.AddrFrom4(b[arpSender:]).Netip()}
	}
	return nil
}

// sourceAt is the source in a whole IP header.
func sourceAt(header []byte) []netip.Addr {
	if header[0]>>4 == 4 {
		return []netip.Addr{packet.AddrFrom4(header[12:]).Netip()}
	}
	return []netip.Addr{packet.AddrFrom16(header[8:]).Netip()}
}
