package dataplane_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// fromSource is a notification to the gateway from another source, with right checksums.
func fromSource(ask []byte, source uint32) []byte {
	b := append([]byte(nil), ask...)
	packet.PutIPv4(b[14:], uint16(len(b)-14), 0, 64, packet.ProtoUDP, source, uint32(address(own4).Lo))
	var p packet.Parsed
	packet.Parse(b, uint32(len(b)), &p)
	binary.BigEndian.PutUint16(b[40:], packet.UDPChecksum(p.Src, p.Dst, b[34:p.IPEnd]))
	return b
}

// floods are notifications of which an attacker sends as many as possible.
func floods(t testkit.T) map[string][][]byte {
	var valid, spoofed, forged, cut [][]byte
	for flow := range uint32(8) {
		ask := asking(t, data(false, flow).Frame(), own4, 7)
		valid = append(valid, ask)
		forged = append(forged, fromSource(ask, uint32(address("198.51.100.9").Lo)))
		cut = append(cut, ask[:60])
		for n := range uint32(64) {
			spoofed = append(spoofed, fromSource(ask, uint32(address("203.0.0.0").Lo)+7919*(64*flow+n)))
		}
	}
	return map[string][][]byte{"valid": valid, "spoofed": spoofed, "forged": forged, "cut": cut}
}

// floodSeconds is how long the flood of TestProxyFlood lasts.
const floodSeconds = 3*effort.Short + effort.Race + 10*effort.Long

// TestProxyFlood: 100,000 notifications a second, whichever they are, don't exceed the limits: neither those of what is accepted, nor those of what the
// senders get. They cost no memory, and every frame of data is forwarded.
func TestProxyFlood(t *testing.T) {
	const perSource, received, seconds, flows = 1000, 5000, floodSeconds, 8
	for name, flood := range floods(t) {
		t.Run(name, func(t *testing.T) {
			p := proxyFor(packet.StandardCNP)
			p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.Addr{}, netip.Addr{}, prefixes("203.0.0.0/8"), perSource, received)
			p.Ports[wan].PerFlow = ratelimit.Interval(10 * ms)
			r := testkit.New(t, testkit.Setup{Policy: p, Static: knownQPs(t), Rate: 10e9, Forget: true})
			var frames [][]byte
			for flow := range uint32(flows) {
				frames = append(frames, data(false, flow).Frame())
			}
			n, sent := 0, uint64(0)
			round := func() { // a millisecond
				for range 4 {
					for range 25 {
						r.Inject(t, wan, flood[n%len(flood)])
						n++
					}
					r.Inject(t, fabric, frames...)
					sent += uint64(len(frames))
					r.Settle()
					r.Advance(ms / 4)
				}
			}
			round()
			if allocs := testing.AllocsPerRun(1000*seconds-2, round); allocs != 0 {
				t.Errorf("%v allocations a millisecond", allocs)
			}
			r.Drain()
			if n != 100_000*seconds {
				t.Fatalf("%d notifications, expected 100,000 a second", n)
			}
			accepted, cnps := r.Count(wan, counters.ProxyAccepted), r.Count(fabric, formatCounter(counters.SentFirst, packet.StandardCNP))
			most := map[string]uint64{"valid": perSource*seconds + 10, "spoofed": received*seconds + 50}[name]
			if accepted > most || cnps > flows*(seconds*100+1) || (most > 0) != (cnps > 0) {
				t.Errorf("%d accepted, expected at most %d; %d CNPs, expected at most one in 10 ms for each flow", accepted, most, cnps)
			}
			total := accepted
			for _, n := range refused(r, wan) {
				total += n
			}
			if total+r.Count(wan, counters.DroppedToGateway)+r.Count(fabric, counters.TxPackets) != 100_000*seconds || r.Count(wan, counters.TxPackets) != sent {
				t.Errorf("%d accepted or refused (%v); %d of %d data frames forwarded", total, refused(r, wan), r.Count(wan, counters.TxPackets), sent)
			}
			r.Close(t)
		})
	}
}

// BenchmarkProxyFlood is by how much 100,000 notifications a second to the gateway slow down forwarding: there is one after each 150 packets, which is what
// a worker forwards at 15 million a second. It alternates between two gateways, with and without the flood, and compares the medians of many short
// times, so that other work of the machine falls on both.
func BenchmarkProxyFlood(b *testing.B) {
	for name, flood := range floods(b) {
		b.Run(name, func(b *testing.B) {
			alone, beside := newFloodBench(b, nil), newFloodBench(b, flood)
			var times [2][]float64
			for b.Loop() {
				times[0] = append(times[0], alone.slice())
				times[1] = append(times[1], beside.slice())
			}
			slices.Sort(times[0])
			slices.Sort(times[1])
			without, with := times[0][len(times[0])/2], times[1][len(times[1])/2]
			b.ReportMetric(without, "ns/packet-alone")
			b.ReportMetric(with, "ns/packet-beside")
			b.ReportMetric(100*(with-without)/without, "slowdown-%")
		})
	}
}

// floodBench is a gateway that forwards, beside a flood or not.
type floodBench struct {
	*testkit.Rig
	frames, flood [][]byte
	place, due, n int
}

func newFloodBench(b *testing.B, flood [][]byte) *floodBench {
	p := proxyFor(packet.StandardCNP)
	p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.Addr{}, netip.Addr{}, prefixes("203.0.0.0/8"), 5_000, 10_000) // the default limits
	p.Ports[wan].PerFlow = ratelimit.Interval(10 * ms)
	r := testkit.New(b, testkit.Setup{Policy: p, Static: knownQPs(b), Burst: 64, Rate: 400e9, Forget: true, Flows: 4096, Buffers: 1024, BufferSize: 2048})
	f := &floodBench{Rig: r, frames: bothWays(1024), flood: flood}
	for range 20 {
		f.slice()
	}
	return f
}

// slice forwards 75 times 32 packets in each direction, and returns the time of each packet in ns: that of the worker, without what gives it the packets, as a device does that
// itself.
func (f *floodBench) slice() float64 {
	const burst, between, bursts = 64, 150, 75
	took := time.Duration(0)
	for range bursts {
		for range burst {
			frame := f.frames[f.place%len(f.frames)]
			f.Backends[0].Inject(f.place%2, frame, uint32(len(frame)))
			f.place++
		}
		for f.due += burst; f.flood != nil && f.due >= between; f.due -= between {
			frame := f.flood[f.n%len(f.flood)]
			f.Backends[0].Inject(wan, frame, uint32(len(frame)))
			f.n++
		}
		f.Advance(burst * 1000 / 15) // at 15 million a second
		began := time.Now()
		f.Plane.Worker(0).Step()
		took += time.Since(began)
	}
	return float64(took.Nanoseconds()) / (burst * bursts)
}

// bothWays are small packets of so many flows, of the even ones from the fabric and of the odd ones from the WAN.
func bothWays(flows int) (frames [][]byte) {
	for n := range flows {
		f := data(false, uint32(n/2))
		if f.Size = 60; n%2 == 1 {
			f.Src, f.Dst, f.DestQP = f.Dst, f.Src, sourceQP+uint32(n/2)
		}
		frames = append(frames, f.Frame())
	}
	return frames
}
