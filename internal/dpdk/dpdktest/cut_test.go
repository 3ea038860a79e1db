//go:build !nodpdk

package dpdktest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/dpdk/dpdktest"
)

const (
	gsoTCPv4, gsoTCPv6, gsoUDP = 1, 4, 5
	capacity                   = 2048
)

// packet is a large packet under construction, and where its headers are.
type packet struct {
	bytes  []byte
	checks []func(frame []byte, i int) error // of each header in every frame
	next   int                               // where the number of the protocol behind the last IP header is, 1 byte; or an EtherType, 2 bytes
	wide   bool
	ip     int  // the last IP header
	v6     bool // its version
}

// protocol fills in what the header before said that comes next.
func (p *packet) protocol(number uint8, ether uint16) {
	switch {
	case p.next == 0:
	case p.wide:
		binary.BigEndian.PutUint16(p.bytes[p.next:], ether)
	default:
		p.bytes[p.next] = number
	}
}

func (p *packet) ethernet(tags int) {
	p.protocol(0, 0x6558)
	p.bytes = append(p.bytes, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2)
	for range tags {
		p.bytes = append(p.bytes, 0x81, 0, 0, 7)
	}
	p.bytes = append(p.bytes, 0, 0)
	p.next, p.wide = len(p.bytes)-2, true
}

func (p *packet) ipv4(options int) {
	p.protocol(4, 0x0800)
	at := len(p.bytes)
	h := make([]byte, 20+4*options)
	h[0], h[8] = 0x45+byte(options), 64
	copy(h[4:], []byte{0xff, 0xfe, 0x40, 0}) // identification, which wraps; DF
	copy(h[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	for i := range h[20:] {
		h[20+i] = 1 // no operation
	}
	p.bytes = append(p.bytes, h...)
	p.next, p.wide, p.ip, p.v6 = at+9, false, at, false
	p.checks = append(p.checks, func(f []byte, i int) error {
		if n := int(binary.BigEndian.Uint16(f[at+2:])); n != len(f)-at {
			return fmt.Errorf("the IPv4 header at %d says %d bytes of %d", at, n, len(f)-at)
		}
		if id := binary.BigEndian.Uint16(f[at+4:]); id != uint16(0xfffe+i) {
			return fmt.Errorf("the IPv4 header at %d has the identification %#x", at, id)
		}
		return valid("IPv4", at, sum(f[at:at+len(h)]))
	})
}

func (p *packet) ipv6(jumbo, options bool) {
	p.protocol(41, 0x86dd)
	at := len(p.bytes)
	h := make([]byte, 40)
	h[0], h[7], h[23], h[39] = 0x60, 64, 1, 2
	p.next, p.wide, p.ip, p.v6 = at+6, false, at, true
	p.bytes = append(p.bytes, h...)
	if jumbo {
		p.bytes = append(p.bytes, 0, 0, 0xc2, 4, 0, 1, 0, 0)
		p.next = at + 40
	}
	if options {
		p.protocol(60, 0)
		p.next = len(p.bytes)
		p.bytes = append(p.bytes, 0, 0, 1, 4, 0, 0, 0, 0)
	}
	p.checks = append(p.checks, func(f []byte, _ int) error {
		if n := int(binary.BigEndian.Uint16(f[at+4:])); n != len(f)-at-40 {
			return fmt.Errorf("the IPv6 header at %d says %d bytes of %d", at, n, len(f)-at-40)
		}
		if options != (f[at+6] == 60) || f[at+6] == 0 {
			return fmt.Errorf("header %d follows the IPv6 header at %d", f[at+6], at)
		}
		return nil
	})
}

// udp is the header of a tunnel in UDP, with a checksum or without.
func (p *packet) udp(checksum bool) {
	p.protocol(17, 0)
	at, ip, v6 := len(p.bytes), p.ip, p.v6
	p.bytes = append(p.bytes, 0xc0, 1, 0x12, 0xb5, 0, 0, 0, 0)
	if checksum {
		p.bytes[at+6] = 1
	}
	p.checks = append(p.checks, func(f []byte, _ int) error {
		if n := int(binary.BigEndian.Uint16(f[at+4:])); n != len(f)-at {
			return fmt.Errorf("the tunnel's UDP header at %d says %d bytes of %d", at, n, len(f)-at)
		}
		if !checksum {
			if f[at+6]|f[at+7] != 0 {
				return fmt.Errorf("the tunnel's UDP header at %d has a checksum", at)
			}
			return nil
		}
		return valid("tunnel's UDP", at, pseudo(f, ip, v6, 17, len(f)-at)+sum(f[at:]))
	})
}

func (p *packet) vxlan(checksum bool) {
	p.udp(checksum)
	p.bytes = append(p.bytes, 8, 0, 0, 0, 0, 0, 42, 0)
	p.next = 0
}

func (p *packet) geneve(checksum bool, options int) {
	p.udp(checksum)
	p.bytes = append(p.bytes, byte(options), 0, 0, 0, 0, 0, 42, 0)
	p.next, p.wide = len(p.bytes)-6, true
	p.bytes = append(p.bytes, make([]byte, 4*options)...)
}

func (p *packet) gre(checksum, key bool) {
	p.protocol(47, 0)
	at := len(p.bytes)
	h := []byte{0, 0, 0, 0}
	if checksum {
		h = append(h, 0, 0, 0, 0)
		h[0] |= 0x80
	}
	if key {
		h = append(h, 0, 0, 0, 9)
		h[0] |= 0x20
	}
	p.bytes = append(p.bytes, h...)
	p.next, p.wide = at+2, true
	if checksum {
		p.checks = append(p.checks, func(f []byte, _ int) error { return valid("GRE", at, sum(f[at:])) })
	}
}

// transport ends the headers and adds the payload.
func (p *packet) transport(udp bool, size, payload int) dpdktest.Offload {
	number, header := uint8(6), []byte{0, 1, 0, 2, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0x80, 0x99, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	o := dpdktest.Offload{Type: gsoTCPv4, Size: uint16(size), Transport: uint16(len(p.bytes))}
	if p.v6 {
		o.Type = gsoTCPv6
	}
	if udp {
		number, header, o.Type = 17, []byte{0, 1, 0, 2, 0, 0, 0, 0}, gsoUDP
	}
	p.protocol(number, 0)
	p.bytes = append(p.bytes, header...)
	for i := range payload {
		p.bytes = append(p.bytes, byte(i*7+i>>8))
	}
	return o
}

func sum(b []byte) (n uint32) {
	for i := 0; i < len(b); i += 2 {
		n += uint32(b[i]) << 8
		if i+1 < len(b) {
			n += uint32(b[i+1])
		}
	}
	return n
}

func pseudo(f []byte, ip int, v6 bool, protocol, n int) uint32 {
	if v6 {
		return sum(f[ip+8:ip+40]) + uint32(protocol+n)
	}
	return sum(f[ip+12:ip+20]) + uint32(protocol+n)
}

func valid(what string, at int, n uint32) error {
	for n>>16 != 0 {
		n = n&0xffff + n>>16
	}
	if n != 0xffff {
		return fmt.Errorf("the checksum of the %s header at %d is wrong", what, at)
	}
	return nil
}

// verify looks at the frames of a packet whose transport header is at an offset of each.
func (p *packet) verify(frames [][]byte, at, ip int, udp bool, size, payload int) error {
	if want := (payload + size - 1) / size; len(frames) != want {
		return fmt.Errorf("%d frames, expected %d", len(frames), want)
	}
	done := 0
	for i, f := range frames {
		for _, check := range p.checks {
			if err := check(f, i); err != nil {
				return fmt.Errorf("frame %d: %w", i, err)
			}
		}
		number, header := 6, 32
		if udp {
			number, header = 17, 8
		}
		if err := valid("transport", at, pseudo(f, ip, p.v6, number, len(f)-at)+sum(f[at:])); err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
		n := min(size, payload-done)
		last := i == len(frames)-1
		switch {
		case len(f) != at+header+n:
			return fmt.Errorf("frame %d has %d bytes, expected %d", i, len(f), at+header+n)
		case udp && int(binary.BigEndian.Uint16(f[at+4:])) != 8+n:
			return fmt.Errorf("frame %d: the UDP length is %d", i, binary.BigEndian.Uint16(f[at+4:]))
		case !udp && binary.BigEndian.Uint32(f[at+4:]) != uint32(0xffffff00+done):
			return fmt.Errorf("frame %d: the sequence number is %#x", i, f[at+4:at+8])
		case !udp && (f[at+13]&0x09 != 0) != last, !udp && (f[at+13]&0x80 != 0) != (i == 0), !udp && f[at+13]&0x10 == 0: // FIN, PSH; CWR; ACK
			return fmt.Errorf("frame %d: the flags are %#x", i, f[at+13])
		}
		for j, b := range f[at+header:] {
			if k := done + j; b != byte(k*7+k>>8) {
				return fmt.Errorf("frame %d: byte %d of the payload is another one", i, k)
			}
		}
		done += n
	}
	return nil
}

// TestCut: a large packet, in any tunnel that is known, becomes frames whose headers all have the right lengths and checksums.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &packet{}
		bit := func(what string) bool { return rapid.Bool().Draw(t, what) }
		ip := func() {
			if bit("IPv6") {
				p.ipv6(false, bit("options"))
			} else {
				p.ipv4(rapid.IntRange(0, 10).Draw(t, "options"))
			}
		}
		p.ethernet(rapid.IntRange(0, 3).Draw(t, "tags"))
		ip()
		switch rapid.IntRange(0, 6).Draw(t, "tunnel") {
		case 0:
		case 1:
			p.vxlan(bit("checksum"))
			p.ethernet(rapid.IntRange(0, 1).Draw(t, "inner tags"))
			ip()
		case 2:
			p.geneve(bit("checksum"), rapid.IntRange(0, 63).Draw(t, "options"))
			p.ethernet(0)
			ip()
		case 3:
			p.geneve(bit("checksum"), 0)
			ip()
		case 4:
			p.gre(bit("checksum"), bit("key"))
			ip()
		case 5:
			p.gre(bit("checksum"), bit("key"))
			p.ethernet(0)
			ip()
		case 6:
			ip()
		}
		udp, size, payload := bit("UDP"), rapid.IntRange(1, 1400).Draw(t, "size"), rapid.IntRange(1, 20000).Draw(t, "payload")
		o := p.transport(udp, size, payload)
		if err := p.verify(dpdktest.Cut(p.bytes, o, capacity), int(o.Transport), p.ip, udp, size, payload); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCutJumbo: the jumbo payload option of BIG TCP goes, and 180,000 bytes become frames.
func TestCutJumbo(t *testing.T) {
	for _, options := range []bool{false, true} {
		p := &packet{}
		p.ethernet(1)
		p.ipv6(true, options)
		const size, payload = 1400, 180_000
		o := p.transport(false, size, payload)
		if err := p.verify(dpdktest.Cut(p.bytes, o, capacity), int(o.Transport)-8, p.ip, false, size, payload); err != nil {
			t.Errorf("options %v: %v", options, err)
		}
	}
}

// TestCutRefuses: headers that don't lead to the transport header, or that every frame would need another one of, are not guessed at.
func TestCutRefuses(t *testing.T) {
	for name, make := range map[string]func() ([]byte, dpdktest.Offload){
		"a transport header in the payload": func() ([]byte, dpdktest.Offload) {
			p := plain()
			o := p.transport(false, 1000, 5000)
			o.Transport += 32
			return p.bytes, o
		},
		"another protocol": func() ([]byte, dpdktest.Offload) {
			p := plain()
			o := p.transport(false, 1000, 5000)
			o.Type = gsoUDP
			return p.bytes, o
		},
		"a fragment": func() ([]byte, dpdktest.Offload) {
			p := plain()
			o := p.transport(false, 1000, 5000)
			p.bytes[14+6] = 0x20
			return p.bytes, o
		},
		"MPLS": func() ([]byte, dpdktest.Offload) {
			p := &packet{}
			p.ethernet(0)
			p.protocol(0, 0x8847)
			p.bytes = append(p.bytes, 0, 0, 1, 64)
			p.next = 0
			p.ipv4(0)
			return p.bytes, p.transport(false, 1000, 5000)
		},
		"GRE with sequence numbers": func() ([]byte, dpdktest.Offload) {
			p := plain()
			p.gre(false, true)
			p.bytes[p.next-2] = 0x10
			p.ipv4(0)
			return p.bytes, p.transport(false, 1000, 5000)
		},
		"a short EtherType that is an IP protocol's number": func() ([]byte, dpdktest.Offload) {
			p := &packet{}
			p.ethernet(0)
			p.protocol(0, 17)
			p.next = 0
			p.vxlan(true)
			p.ethernet(0)
			p.ipv4(0)
			return p.bytes, p.transport(false, 1000, 5000)
		},
		"IP in UDP": func() ([]byte, dpdktest.Offload) {
			p := plain()
			p.udp(false)
			p.next = 0
			p.ipv4(0)
			return p.bytes, p.transport(false, 1000, 5000)
		},
		"no payload": func() ([]byte, dpdktest.Offload) { p := plain(); return p.bytes, p.transport(false, 1000, 0) },
		"no size":    func() ([]byte, dpdktest.Offload) { p := plain(); return p.bytes, p.transport(false, 0, 500) },
		"a source route": func() ([]byte, dpdktest.Offload) {
			p := &packet{}
			p.ethernet(0)
			p.ipv6(false, true)
			o := p.transport(false, 1000, 5000)
			p.bytes[14+6], p.bytes[14+40+3] = 43, 1
			return p.bytes, o
		},
	} {
		if b, o := make(); len(dpdktest.Cut(b, o, capacity)) != 0 {
			t.Errorf("%s: it was cut", name)
		}
	}
}

// TestComplete: a checksum is completed where it lies in the frame, and otherwise refused.
func TestComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "frame")
		start, offset := rapid.IntRange(0, 220).Draw(t, "start"), 2*rapid.IntRange(0, 10).Draw(t, "offset")
		before := bytes.Clone(frame)
		inside := start < len(frame) && start+offset+2 <= len(frame)
		if dpdktest.Complete(frame, uint16(start), uint16(offset)) != inside {
			t.Fatalf("a checksum at %d+%d in %d bytes: inside %v", start, offset, len(frame), inside)
		}
		if !inside && !bytes.Equal(frame, before) {
			t.Fatal("the frame was changed")
		}
		if inside { // what was in the field counts as the pseudo-header's sum
			held := uint32(before[start+offset])<<8 | uint32(before[start+offset+1])
			if err := valid("", start, sum(frame[start:])+held); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func plain() *packet {
	p := &packet{}
	p.ethernet(0)
	p.ipv4(0)
	return p
}

// FuzzCut: whatever a packet has in it, frames are no longer than their buffers, and carry no more payload than there was.
func FuzzCut(f *testing.F) {
	p := plain()
	p.vxlan(true)
	p.ethernet(1)
	p.ipv6(true, true)
	o := p.transport(false, 100, 1000)
	f.Add(p.bytes, o.Type, o.Size, o.Transport)
	f.Fuzz(func(t *testing.T, b []byte, kind uint8, size, transport uint16) {
		if len(b) == 0 || len(b) > 100_000 {
			return
		}
		before := bytes.Clone(b)
		for _, frame := range dpdktest.Cut(b, dpdktest.Offload{kind, size, transport}, capacity) {
			if len(frame) > capacity || len(frame) > len(b) {
				t.Errorf("a frame of %d bytes of a packet of %d", len(frame), len(b))
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("the packet itself was changed")
		}
	})
}
