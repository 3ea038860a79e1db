package pacing

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestPacerModel: whatever is held and goes on, frames of a flow stay in order, the flow that was served least goes first, and hosts are due in the order
// of their times.
func TestPacerModel(t *testing.T) {
	const frames, hosts, flows = 60, 5, 12
	rapid.Check(t, func(t *rapid.T) {
		p := newSized(make([]byte, size(frames)), frames, 50_000, rapid.Uint64().Draw(t, "seed"))
		p.Begin(&congestion.Pacing{HostRate: 1e9, Floor: 1e6, Keep: 10, Interval: 100, Recovery: 1e9})
		type model struct {
			host   uint32
			place  uint32
			served uint64
			queue  []burst.Frame
		}
		var of [flows]model
		now, bytes, held := int64(1000), uint64(0), 0
		at := map[uint32]uint32{}
		for host := range uint32(hosts) {
			if !p.Slow(packet.Host{Addr: packet.Addr{Lo: uint64(host)}}, now) {
				t.Fatal("not slowed")
			}
			at[host] = p.hosts.find(&flowtable.Key{Dst: packet.Addr{Lo: uint64(host)}})
		}
		for i := range of {
			of[i].host = uint32(i % hosts)
		}
		goOn := func(host uint32) {
			h := &p.hosts.of[at[host]]
			f, ref := p.Next(at[host])
			m := &of[ref.Index-1]
			if m.host != host || *f != (HeldFrame{m.queue[0], uint64(ref.Index % 8)}) {
				t.Fatalf("host %d: frame %+v of flow %d, expected %+v", host, f, ref.Index, m.queue[0])
			}
			for i := range of {
				if o := &of[i]; o.host == host && len(o.queue) > 0 && o.served < m.served {
					t.Fatalf("flow %d goes on, which was served %d, and flow %d was served %d", ref.Index, m.served, i+1, o.served)
				}
			}
			ready := h.ready
			if last := p.leave(at[host], now); last != (len(m.queue) == 1) {
				t.Fatalf("the last one: %v, %d waited", last, len(m.queue))
			}
			if h.ready < ready {
				t.Fatalf("ready at %d after %d", h.ready, ready)
			}
			bytes -= uint64(m.queue[0].Len)
			m.served += uint64(m.queue[0].Len)
			m.queue = m.queue[1:]
			held--
			if len(m.queue) == 0 {
				m.place = 0
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				i := rapid.IntRange(0, flows-1).Draw(t, "flow")
				m, f := &of[i], burst.Frame{Buf: rapid.Uint64().Draw(t, "buffer"), Len: rapid.Uint32Range(60, 2000).Draw(t, "bytes")}
				for p.full(at[m.host], f.Len) {
					if p.hosts.of[at[m.host]].flows == 0 {
						return
					}
					goOn(m.host)
				}
				if len(m.queue) == 0 {
					m.served = rapid.Uint64Range(0, 5000).Draw(t, "served")
				}
				m.place = p.hold(at[m.host], f, (i+1)%8, flowtable.Ref{Index: flowtable.Index(i + 1), Generation: 1}, m.place, m.served)
				if m.place == 0 {
					t.Fatal("no place")
				}
				m.queue = append(m.queue, f)
				bytes += uint64(f.Len)
				held++
			},
			"time": func(t *rapid.T) { now += rapid.Int64Range(0, 100_000).Draw(t, "ns") },
			"due": func(*rapid.T) {
				if len(p.due.of) > 1 && p.hosts.of[p.due.of[1]].ready <= now {
					goOn(uint32(p.hosts.of[p.due.of[1]].key.Dst.Lo))
				}
			},
			"": func(t *rapid.T) {
				if p.held != held || p.bytes != bytes || bytes > 50_000 {
					t.Fatalf("%d frames and %d bytes held, expected %d and %d", p.held, p.bytes, held, bytes)
				}
				for place, host := range p.due.of[1:] {
					if h := &p.hosts.of[host]; int(h.rank) != place+1 || place > 0 && p.hosts.of[p.due.of[(place+1)/2]].ready > h.ready || h.flows == 0 {
						t.Fatalf("host %d at place %d of those due: %+v", host, place+1, h)
					}
				}
			},
		})
	})
}

// TestPacerPlaces: hosts that are not slowed down any more give their places back, and one host more than there are places isn't paced.
func TestPacerPlaces(t *testing.T) {
	p := newSized(make([]byte, size(4)), 4, 1e6, 7)
	p.Begin(&congestion.Pacing{HostRate: 1e9, Floor: 1e6, Keep: 10, Recovery: 1e6})
	for round := range int64(3) {
		now := round * 10e6
		for n := range uint64(pacedHosts + 1) {
			if p.Slow(packet.Host{Addr: packet.Addr{Hi: uint64(round), Lo: n}}, now) != (n < pacedHosts) {
				t.Fatalf("round %d, host %d", round, n)
			}
		}
		for n := range uint64(pacedHosts) {
			at := p.hosts.find(&flowtable.Key{Dst: packet.Addr{Hi: uint64(round), Lo: n}})
			if at == 0 || p.waits(at, 1000, now) || !p.waits(at, 1000, now) {
				t.Fatalf("round %d: host %d at %d doesn't wait for its second packet only", round, n, at)
			}
			if p.waits(at, 1000, now+2e6) {
				t.Fatalf("round %d: host %d is still slow", round, n)
			}
		}
		if p.hosts.known != 0 {
			t.Fatalf("round %d: %d hosts", round, p.hosts.known)
		}
	}
}

// TestPacerForgets: hosts that no packet comes for any more give their places back, and those that are slowed down or have frames here keep them.
func TestPacerForgets(t *testing.T) {
	p := newSized(make([]byte, size(4)), 4, 1e6, 7)
	p.Begin(&congestion.Pacing{HostRate: 1e9, Floor: 1e6, Keep: 10, Recovery: 1e6})
	for n := range uint64(pacedHosts) {
		if !p.Slow(packet.Host{Addr: packet.Addr{Lo: n}}, 0) {
			t.Fatalf("host %d is not slowed down", n)
		}
	}
	holds, slow := p.hosts.find(&flowtable.Key{Dst: packet.Addr{Lo: 3}}), p.hosts.find(&flowtable.Key{Dst: packet.Addr{Lo: 4}})
	p.hold(holds, burst.Frame{Len: 1000}, 0, flowtable.Ref{Index: 1, Generation: 1}, 0, 0)
	p.hosts.of[slow].pace.Reduce(p.policy, 2e6)
	for range pacedHosts {
		p.Sweep(2e6)
	}
	if p.hosts.known != 2 || p.hosts.find(&flowtable.Key{Dst: packet.Addr{Lo: 3}}) != holds || p.hosts.find(&flowtable.Key{Dst: packet.Addr{Lo: 4}}) != slow {
		t.Fatalf("%d hosts are known", p.hosts.known)
	}
	p.leave(holds, 2e6)
	for range pacedHosts {
		p.Sweep(4e6)
	}
	if p.hosts.known != 0 || !p.Slow(packet.Host{Addr: packet.Addr{Hi: 1}}, 4e6) {
		t.Errorf("%d hosts are known", p.hosts.known)
	}
}
