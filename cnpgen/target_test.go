package cnpgen

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/fastpath"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"pgregory.net/rapid"
)

// TestTargetIsPlain: a table of them may lie where the garbage collector doesn't look.
func TestTargetIsPlain(t *testing.T) {
	if size := unsafe.Sizeof(Target{}); size != 72 {
		t.Errorf("a Target has %d bytes, its documentation says 72", size)
	}
	var check func(name string, of reflect.Type)
	check = func(name string, of reflect.Type) {
		switch of.Kind() {
		case reflect.Bool, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		case reflect.Array:
			check(name, of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				check(name+"."+of.Field(i).Name, of.Field(i).Type)
			}
		default:
			t.Errorf("%s is %v, a Target has only numbers in it", name, of)
		}
	}
	check("Target", reflect.TypeFor[Target]())
}

func link(b string) (l [LinkLen]byte) {
	copy(l[:], b)
	return l
}

// TestNoTarget: what is not a whole data packet's headers is not answered.
func TestNoTarget(t *testing.T) {
	cnp := flow6.carrying(16)
	cnp.opcode = packet.CNP
	cnpFrame, cnpParsed := cnp.frame()
	frame, p := flow6.tagged(0x8100, 5).frame()
	notRoCE := p
	notRoCE.Kind = packet.IP
	refuse := func(name string, frame []byte, p *packet.Parsed) {
		if got, ok := TargetOf(frame, p); ok || got != (Target{}) {
			t.Errorf("%s: %+v, want none", name, got)
		}
	}
	refuse("CNP", cnpFrame, &cnpParsed)
	refuse("not RoCEv2", frame, &notRoCE)
	refuse("never parsed", nil, &packet.Parsed{})
	headers := int(p.BTH) + packet.BTHLen
	for n := range headers {
		refuse("truncated", frame[:n], &p)
	}
	if _, ok := TargetOf(frame[:headers], &p); !ok {
		t.Error("a frame with all headers is refused")
	}
}

// TestEncapsulated: about a data packet in a tunnel, nothing is sent to the address inside. A notification to a proxy has the five-tuple and
// the packet from inside (draft-xiao-proxy 4), and leaves with the whole frame's MAC addresses and tags.
func TestEncapsulated(t *testing.T) {
	inside, in := flow4.carrying(16).frame()
	frame := []byte("\x02\x00\x00\x00\x00\x12\x02\x00\x00\x00\x00\x11\x81\x00\x00\x64\x88\x47\xab\xcd\xe1\x40")
	frame = append(frame, inside[in.L3:]...)
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	target, ok := TargetOf(frame, &p)
	want := Target{
		Src: flow4.src, Dst: flow4.dst, Link: link("\x02\x00\x00\x00\x00\x11\x02\x00\x00\x00\x00\x12\x81\x00\x00\x64\x88\x47"), Tags: 1, Family: 4,
		SrcPort: 52769, PKey: 0xffff, DestQP: 200, Encapsulated: true,
	}
	if !ok || target != want {
		t.Fatalf("got %+v, want %+v", target, want)
	}
	for _, f := range formats {
		out := make([]byte, MaxLen)
		n := f.build(out, frame, &p, &testGateway)
		if f.kind != packet.ProxyNotification {
			if n != 0 || !bytes.Equal(out, make([]byte, MaxLen)) {
				t.Errorf("%s: %d octets built", f.name, n)
			}
			continue
		}
		var q, invoking packet.Parsed
		packet.Parse(out[:n], uint32(n), &q)
		datagram := out[q.L4:n]
		x, _ := packet.DecodeProxied(datagram[packet.UDPLen:])
		quoted := datagram[packet.UDPLen+packet.ProxiedLen(4):]
		packet.ParseIP(quoted, &invoking)
		if !bytes.Equal(quoted, inside[in.L3:]) || x.Src != flow4.src || x.Dst != flow4.dst || invoking.DestQP != 200 || q.OuterTag.VID() != 100 {
			t.Errorf("%s: five-tuple %+v, invoking packet % x, frame %+v", f.name, x, quoted, q)
		}
	}
}

// TestNoInvokingPacket: a notification to a proxy is not built where there is nothing of the data packet.
func TestNoInvokingPacket(t *testing.T) {
	frame, p := flow4.carrying(16).frame()
	target, out := flow4.target(), make([]byte, MaxLen)
	if n := ProxyNotification(out, &target, &testGateway, frame[:p.L3-1], &p, proxy4, 3); n != 0 || !bytes.Equal(out, make([]byte, MaxLen)) {
		t.Errorf("%d octets built", n)
	}
}

// TestTargetByHand: where there never was a data packet, such as at a proxy, the same notification comes out; the EtherType is the
// builder's.
func TestTargetByHand(t *testing.T) {
	const macs = "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"
	for _, c := range []struct {
		name   string
		target Target
		build  func(out []byte, t *Target, g *Gateway) int
	}{
		{"standard-cnp-v4", Target{Src: flow4.src, Dst: flow4.dst, Link: link(macs), Family: 4, SrcPort: 52769},
			func(out []byte, t *Target, g *Gateway) int { return StandardCNP(out, t, g, 100) }},
		{"standard-cnp-v6-tagged", Target{Src: flow6.src, Dst: flow6.dst, Link: link(macs + "\x81\x00\x60\x64\x08\x00"), Tags: 1, Family: 6,
			SrcPort: 52769}, func(out []byte, t *Target, g *Gateway) int { return StandardCNP(out, t, g, 100) }},
		{"long-haul-cnp-v4", Target{Src: flow4.src, Link: link(macs), Family: 4, SrcPort: 52769},
			func(out []byte, t *Target, g *Gateway) int { return LongHaulCNP(out, t, g, &severe, nil) }},
		{"long-haul-cnp-icmpv6", Target{Src: flow6.src, Link: link(macs), Family: 6},
			func(out []byte, t *Target, g *Gateway) int { return LongHaulCNPICMPv6(out, t, g, &severe, nil) }},
		{"fast-cnp", Target{Src: flow6.src, Dst: flow6.dst, Link: link(macs), Family: 6, SrcPort: 52769, DestQP: 200},
			func(out []byte, t *Target, g *Gateway) int {
				n, _ := FastCNP(out, t, g, packet.IOAMTrace{})
				return n
			}},
		{"ppfc-v4-pause", Target{Src: flow4.src, Dst: flow4.dst, Link: link(macs), Family: 4, SrcPort: 52769, DestQP: 200},
			func(out []byte, t *Target, g *Gateway) int {
				return PPFCNotification(out, t, g, &PPFC{Port: 2, Duration: 500})
			}},
	} {
		g := testGateway
		g.FlowPKey = true // the key isn't known, so it is 0xFFFF
		out := make([]byte, MaxLen)
		want := notifications.Find(c.name).Bytes()
		if n := c.build(out, &c.target, &g); !bytes.Equal(out[:n], want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, hex.Dump(out[:n]), hex.Dump(want))
		}
		for _, change := range []func(*Target){
			func(t *Target) { *t = Target{} },
			func(t *Target) { t.Family = 0 },
			func(t *Target) { t.Family = 5 },
			func(t *Target) { t.Tags = 3 },
			func(t *Target) { t.Tags = 255 },
		} {
			bad := c.target
			change(&bad)
			clear(out)
			if n := c.build(out, &bad, &g); n != 0 || !bytes.Equal(out, make([]byte, MaxLen)) {
				t.Errorf("%s: %d octets built for %+v, want none", c.name, n, bad)
			}
		}
	}
}

// TestRoom: about any data packet, in a buffer that is too short nothing is written, in it or behind it; one of the frame's length is
// enough.
func TestRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame, p := drawDataPacket(t).frame()
		g := drawGateway(t)
		f := rapid.SampledFrom(formats).Draw(t, "format")
		want, used := make([]byte, MaxLen), bytes.Repeat([]byte{0xa5}, MaxLen)
		n := f.build(want, frame, &p, &g)
		if (n > 0) != (f.v4 || p.Family == 6) {
			t.Fatalf("%s over IPv%d: %d octets", f.name, p.Family, n)
		}
		if n == 0 {
			return
		}
		short := rapid.IntRange(0, n-1).Draw(t, "buffer size")
		if m := f.build(used[:short], frame, &p, &g); m != 0 || !bytes.Equal(used, bytes.Repeat([]byte{0xa5}, MaxLen)) {
			t.Fatalf("%s of %d octets in %d: %d octets, buffer % x", f.name, n, short, m, used)
		}
		if m := f.build(used[:n], frame, &p, &g); m != n || !bytes.Equal(used[:n], want[:n]) {
			t.Fatalf("%s in its %d octets: %d octets", f.name, n, m)
		}
	})
}

// TestSetPlain: the record of a plain frame gives the Target that its headers give, whatever the Target was before.
func TestSetPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := flow4
		if rapid.Bool().Draw(t, "IPv6") {
			d = flow6
		}
		if rapid.Bool().Draw(t, "tag") {
			d = d.tagged(packet.EtherTypeCTag, rapid.Uint16().Draw(t, "TCI"))
		}
		d = d.carrying(4 * rapid.IntRange(4, 20).Draw(t, "words"))
		d.src.Lo = d.src.Lo&^0xffff | uint64(rapid.Uint16().Draw(t, "host"))
		d.srcPort, d.pKey, d.destQP = rapid.Uint16().Draw(t, "port"), rapid.Uint16Min(1).Draw(t, "P_Key"), rapid.Uint32Max(1<<24-1).Draw(t, "QP")
		frame, p := d.frame()
		copy(frame, rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "MACs"))
		var record [1]packet.Record
		f := []burst.Frame{{Buf: 1, Len: uint32(len(frame)), Head: uint32(len(frame))}}
		if fastpath.ParsePlain(unsafe.Pointer(&frame[0]), f, 0, record[:]).N != 1 {
			t.Fatalf("% x is not plain", frame)
		}
		want, _ := TargetOf(frame, &p)
		got := Target{Link: [LinkLen]byte(bytes.Repeat([]byte{0xa5}, LinkLen)), Tags: 2, Encapsulated: true}
		if got.SetPlain(frame, &record[0]); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}
