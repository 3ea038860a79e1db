package cnpgen

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
	"pgregory.net/rapid"
)

// TestAnyDataPacket: the notification about any data packet reaches its source and is what it is meant to be, and what a receiver reads.
func TestAnyDataPacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDataPacket(t)
		if d.v6 && rapid.Bool().Draw(t, "trace") {
			d = d.traced(rapid.SampledFrom([]byte{0x11, 0x31}).Draw(t, "option"), rapid.Uint8Range(0, 1).Draw(t, "trace type"),
				"0001100200c00000"+hexOf(4*rapid.IntRange(0, 60).Draw(t, "words")))
		}
		frame, p := d.frame()
		g := drawGateway(t)
		qp := rapid.Uint32Range(0, 0xffffff).Draw(t, "source QP")
		before := bytes.Clone(frame)
		decode := func(build builder, speaks packet.Notification, kind packet.Notification) *cnpdec.Notification {
			out := bytes.Repeat([]byte{0xa5}, MaxLen+8)
			n := build(out, frame, &p, &g)
			if !bytes.Equal(out[n:], bytes.Repeat([]byte{0xa5}, len(out)-n)) || !bytes.Equal(frame, before) {
				t.Fatalf("%v: wrote behind its %d octets, or to the data frame", kind, n)
			}
			out = out[:n]
			checkNotification(t, out, frame, &p, &g, kind, qp)
			r := cnpdec.Receiver{Code: g.Code, Extension: speaks, KnownQP: func(known uint32) bool { return known == qp },
				KnownFlow: func(dst packet.Addr, qp uint32) bool { return dst == p.Dst && qp == p.DestQP }}
			if !g.ICRCExtensionHeaders {
				r.ICRC = cnpdec.ICRCWithoutExtensionHeaders
			}
			var parsed packet.Parsed
			packet.Parse(out, uint32(len(out)), &parsed)
			var got cnpdec.Notification
			if reason := r.Decode(out, &parsed, &got); reason != cnpdec.Accepted || got.Kind != kind {
				t.Fatalf("%v decoded as %v: %v: % x", kind, got.Kind, reason, out)
			}
			if want := wantPKey(&d, &g); got.BTH.Opcode == packet.CNP && got.BTH.PKey != want {
				t.Fatalf("%v: P_Key %#x, want %#x", kind, got.BTH.PKey, want)
			}
			return &got
		}
		if n := decode(standardCNP(qp), packet.StandardCNP, packet.StandardCNP); n.Src != p.Dst || n.BTH.DestQP != qp {
			t.Fatalf("standard CNP from %v", n.Src)
		}
		checkLongHaul(t, qp, decode)
		pause := PPFC{Port: rapid.Uint16().Draw(t, "port"), Duration: rapid.Uint16().Draw(t, "duration")}
		want := packet.PPFCFields{Dst: p.Dst, Port: pause.Port, Duration: pause.Duration}
		if n := decode(ppfc(pause), packet.PPFC, packet.PPFC); n.PPFC != want {
			t.Fatalf("PPFC %+v, want %+v", n.PPFC, want)
		}
		pause.Resume, want.PT, want.Duration = true, packet.PTResume, 0
		if n := decode(ppfc(pause), packet.PPFC, packet.PPFC); n.PPFC != want {
			t.Fatalf("PPFC %+v, want %+v", n.PPFC, want)
		}
		level := rapid.Uint8Range(0, 9).Draw(t, "level")
		proxy := proxy6
		if p.Family == 4 {
			proxy = proxy4
		}
		x := decode(notifyProxy(proxy, level), packet.StandardCNP, packet.ProxyNotification).Proxy
		if x.Level != min(level, 7) || x.Src != p.Src || x.Dst != p.Dst || x.Inner.Kind != packet.RoCEv2 || x.Inner.DestQP != p.DestQP {
			t.Fatalf("proxy notification %+v", x)
		}
		if p.Family == 6 {
			o := decode(fastCNP, packet.StandardCNP, packet.FastCNP).Fast.Option
			trace := packet.FindIOAMTrace(frame, &p)
			if len(trace.Data) > 236 {
				trace = packet.IOAMTrace{}
			}
			if o.Dst != p.Dst || o.Trace.Type != trace.Type || !bytes.Equal(o.Trace.Data, trace.Data) || o.Reserved != 0 {
				t.Fatalf("Fast CNP %+v, want trace %+v", o, trace)
			}
			checkLongHaulICMPv6(t, qp, decode)
		}
	})
}

// wantPKey is the partition key of a CNP about d.
func wantPKey(d *dataPacket, g *Gateway) uint16 {
	if g.FlowPKey && d.pKey != 0x8000 { // which names no partition
		return d.pKey
	}
	return 0xffff
}

type decoding func(build builder, speaks packet.Notification, kind packet.Notification) *cnpdec.Notification

// drawLongHaul draws every field, in its width.
func drawLongHaul(t *rapid.T) LongHaul {
	return packet.DecodeLongHaul(rapid.SliceOfN(rapid.Byte(), packet.LongHaulLen, packet.LongHaulLen).Draw(t, "fields"))
}

// drawContent draws every field, and what receivers read.
func drawContent(t *rapid.T, qp uint32) (l LongHaul, x *Extension, want cnpdec.LongHaul) {
	l = drawLongHaul(t)
	l.SourceQP = qp
	want.LongHaul = l
	want.Reserved = 0
	switch l.Action {
	case Notify:
		want.Parameter = 0
	case RateReduce, Resume:
		want.Parameter = min(l.Parameter, 100)
	}
	if l.MetricType == packet.MetricECNRate {
		want.MetricValue = min(l.MetricValue, 100)
	}
	if rapid.Bool().Draw(t, "extension") {
		x = &Extension{Timestamp: rapid.Uint64().Draw(t, "timestamp"), Device: []byte(rapid.StringN(0, 9, 30).Draw(t, "device")),
			Path: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "path")}
		if rapid.Bool().Draw(t, "others") {
			x.Others = []packet.Object{{Class: 1, CType: 2, Payload: x.Path}}
		}
		want.Timestamp, want.HasTimestamp, want.Device, want.Path = x.Timestamp, x.Timestamp != 0, x.Device, x.Path
	}
	return l, x, want
}

func compareLongHaul(t *rapid.T, got, want *cnpdec.LongHaul, x *Extension) {
	if got.LongHaul != want.LongHaul || got.Timestamp != want.Timestamp || got.HasTimestamp != want.HasTimestamp ||
		!bytes.Equal(got.Device, want.Device) || !bytes.Equal(got.Path, want.Path) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	objects := 0
	for list := got.Objects; len(list) > 0; objects++ {
		_, n := packet.NextObject(list)
		list = list[n:]
	}
	meant := 0
	if x != nil {
		for _, there := range []bool{x.Timestamp != 0, len(x.Device) > 0, len(x.Path) > 0} {
			if there {
				meant++
			}
		}
		meant += len(x.Others)
	}
	if objects != meant {
		t.Fatalf("%d objects, want %d", objects, meant)
	}
}

func checkLongHaul(t *rapid.T, qp uint32, decode decoding) {
	l, x, want := drawContent(t, qp)
	n := decode(longHaul(LongHaulCNP, l, x), packet.LongHaulCNP, packet.LongHaulCNP)
	if n.BTH.DestQP != qp {
		t.Fatalf("DestQP %d", n.BTH.DestQP)
	}
	compareLongHaul(t, &n.LongHaul, &want, x)
}

func checkLongHaulICMPv6(t *rapid.T, qp uint32, decode decoding) {
	l, x, want := drawContent(t, qp)
	n := decode(longHaul(LongHaulCNPICMPv6, l, x), packet.StandardCNP, packet.LongHaulCNPICMPv6)
	compareLongHaul(t, &n.LongHaul, &want, x)
}
