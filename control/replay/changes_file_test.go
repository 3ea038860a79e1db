package replay_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// What files a capture's frames are written to.

// pcapOf is a classic file.
func pcapOf(all []frame, order binary.AppendByteOrder, nano bool, link, snap uint32) []byte {
	magic, unit := uint32(0xa1b2c3d4), int64(1000)
	if nano {
		magic, unit = 0xa1b23c4d, 1
	}
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(order.AppendUint16(b, 2), 4)
	for _, v := range []uint32{0, 0, snap, link} {
		b = order.AppendUint32(b, v)
	}
	for _, f := range all {
		for _, v := range []uint32{uint32(f.at / 1e9), uint32(f.at % 1e9 / unit), uint32(len(f.octets)), uint32(f.length)} {
			b = order.AppendUint32(b, v)
		}
		b = append(b, f.octets...)
	}
	return b
}

// plain is the file that the answer of a capture is known by.
func plain(all []frame) []byte { return pcapOf(all, binary.LittleEndian, true, 1, 1<<18) }

// ng is how to write a pcapng file.
type ng struct {
	order   binary.AppendByteOrder
	unit    byte  // if_tsresol
	offset  int64 // if_tsoffset, s
	on      func(i int, f *frame) int
	simple  bool
	options bool // a comment in each packet
	again   bool // a second section in the middle
}

func (n ng) of(all []frame) []byte {
	o := n.order
	var b []byte
	block := func(kind uint32, body []byte) {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		size := uint32(len(body) + 12)
		b = o.AppendUint32(o.AppendUint32(b, kind), size)
		b = o.AppendUint32(append(b, body...), size)
	}
	option := func(to []byte, code uint16, value []byte) []byte {
		to = append(o.AppendUint16(o.AppendUint16(to, code), uint16(len(value))), value...)
		for len(to)%4 != 0 {
			to = append(to, 0)
		}
		return to
	}
	section := func() {
		block(0x0a0d0d0a, o.AppendUint64(o.AppendUint16(o.AppendUint16(o.AppendUint32(nil, 0x1a2b3c4d), 1), 0), math.MaxUint64))
		for range 2 {
			body := o.AppendUint32(o.AppendUint16(o.AppendUint16(nil, 1), 0), 0) // no snapshot length
			body = option(body, 9, []byte{n.unit})
			if n.offset != 0 {
				body = option(body, 14, o.AppendUint64(nil, uint64(n.offset)))
			}
			block(1, option(body, 0, nil))
		}
	}
	section()
	for i := range all {
		if n.again && i == len(all)/2 {
			section()
		}
		f := &all[i]
		if n.simple {
			block(3, append(o.AppendUint32(nil, uint32(f.length)), f.octets...))
			continue
		}
		on := 0
		if n.on != nil {
			on = n.on(i, f)
		}
		ticks := n.ticks(f.at)
		body := o.AppendUint32(o.AppendUint32(o.AppendUint32(nil, uint32(on)), uint32(ticks>>32)), uint32(ticks))
		body = append(o.AppendUint32(o.AppendUint32(body, uint32(len(f.octets))), uint32(f.length)), f.octets...)
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		if n.options {
			body = option(option(option(body, 1, []byte("a comment")), 2, []byte{0, 0, 0, 1}), 0, nil)
		}
		block(6, body)
	}
	return b
}

// ticks is a time in the unit of the file.
func (n ng) ticks(at int64) uint64 {
	seconds, ns := at/1e9-n.offset, at%1e9
	if bits := n.unit &^ 0x80; n.unit&0x80 != 0 {
		return uint64(seconds)<<bits + uint64(float64(ns)/1e9*float64(uint64(1)<<bits))
	}
	scale := int64(math.Pow10(int(n.unit)))
	return uint64(seconds*scale + ns*scale/1e9) // up to 10^-9
}

func gzipped(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(b)
	_ = w.Close()
	return z.Bytes()
}

func zstandard(b []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(b, nil)
}

// linked is a capture of another link type, whose header replaces Ethernet's. It applies to captures of IP alone.
func linked(link uint32, header func(f *frame, etherType uint16) []byte) func([]frame) []byte {
	return func(all []frame) []byte {
		out := slices.Clone(all)
		for i := range out {
			f := &out[i]
			etherType := binary.BigEndian.Uint16(f.octets[12:])
			if etherType != packet.EtherTypeIPv4 && etherType != packet.EtherTypeIPv6 {
				return nil
			}
			h := header(f, etherType)
			f.octets = slices.Concat(h, f.octets[packet.EthernetLen:])
			f.length += len(h) - packet.EthernetLen
		}
		return pcapOf(out, binary.LittleEndian, true, link, 1<<18)
	}
}

func family(v4, v6 uint16) func(uint16) uint16 {
	return func(etherType uint16) uint16 {
		if etherType == packet.EtherTypeIPv6 {
			return v6
		}
		return v4
	}
}

var be = binary.BigEndian

// links are by name link types with the same packets.
var links = map[string]func([]frame) []byte{
	"RAW":  linked(101, func(*frame, uint16) []byte { return nil }),
	"NULL": linked(0, func(_ *frame, e uint16) []byte { return []byte{byte(family(2, 30)(e)), 0, 0, 0} }),
	"LOOP": linked(108, func(_ *frame, e uint16) []byte { return []byte{0, 0, 0, byte(family(2, 24)(e))} }),
	"PPP":  linked(9, func(_ *frame, e uint16) []byte { return be.AppendUint16([]byte{0xff, 3}, family(0x21, 0x57)(e)) }),
	"LINUX_SLL": linked(113, func(f *frame, e uint16) []byte {
		return be.AppendUint16(slices.Concat([]byte{0, 0, 0, 1, 0, 6}, f.octets[6:12], []byte{0, 0}), e)
	}),
	"LINUX_SLL2": linked(276, func(f *frame, e uint16) []byte {
		return slices.Concat(be.AppendUint16(nil, e), []byte{0, 0, 0, 0, 0, 2, 0, 1, 0, 6}, f.octets[6:12], []byte{0, 0})
	}),
	"NFLOG": func(all []frame) []byte {
		if slices.ContainsFunc(all, func(f frame) bool { return len(f.octets) > 60_000 }) {
			return nil
		}
		return linked(239, func(f *frame, e uint16) []byte {
			size := uint16(len(f.octets) - packet.EthernetLen + 4)
			return binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16([]byte{byte(family(2, 10)(e)), 0, 0, 0, 8, 0, 2, 0, 0, 0, 0, 0}, size), 9)
		})(all)
	},
	"ERF": func(all []frame) []byte {
		out := slices.Clone(all)
		for i := range out {
			f := &out[i]
			h := append(make([]byte, 8), 2, 0)
			h = be.AppendUint16(h, uint16(18+len(f.octets)))
			h = be.AppendUint16(append(h, 0, 0), uint16(f.length))
			f.octets = slices.Concat(h, []byte{0, 0}, f.octets)
			f.length += 18
		}
		return pcapOf(out, binary.LittleEndian, true, 197, 1<<18)
	},
}

func asIs(f func([]frame) []frame) func([]frame) []byte {
	return func(all []frame) []byte {
		if all = f(all); all == nil {
			return nil
		}
		return plain(all)
	}
}

// byDirection is the interface on which a frame was captured.
func byDirection(_ int, f *frame) int {
	if p, b := packetIn(f); b != nil && forward(&p) {
		return 1
	}
	return 0
}

// framesOf are the frames of a capture file, in whatever form.
func framesOf(t *testing.T, b []byte) (all []frame) {
	t.Helper()
	c := opened(t, b)
	for {
		f, err := c.Next()
		if err != nil {
			return all
		}
		if f.Unread == "" && len(f.Octets) >= packet.EthernetLen {
			all = append(all, frame{c.First.UnixNano() + f.Time, slices.Clone(f.Octets), int(f.Length)})
		}
	}
}
