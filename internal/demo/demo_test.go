package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/packet"
)

func loadAll(t *testing.T) []host {
	t.Helper()
	hosts, err := loadHosts("../../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

func parse(f []byte) (p packet.Parsed) {
	packet.Parse(f, uint32(len(f)), &p)
	return p
}

// Every host's frames come from its own address with right checksums, moved or not, and no two hosts share one.
func TestHostsSendSoundFrames(t *testing.T) {
	hosts := loadAll(t)
	seen := map[string]bool{}
	for _, h := range hosts {
		if seen[h.addr.String()] {
			t.Errorf("%s shares its address %s", h.name, h.addr)
		}
		seen[h.addr.String()] = true
		for i, f := range h.frames {
			p := parse(f)
			octets := h.addr.AsSlice()
			switch {
			case p.Kind != packet.RoCEv2 || p.Src.Netip() != h.addr:
				t.Fatalf("%s frame %d: kind %d from %s, want RoCEv2 from %s", h.name, i, p.Kind, p.Src.Netip(), h.addr)
			case !packet.VerifyICRC(f, &p):
				t.Fatalf("%s frame %d: wrong ICRC", h.name, i)
			case p.Family == 4 && checksum(f[p.L3:p.L4]) != 0:
				t.Fatalf("%s frame %d: wrong IPv4 checksum", h.name, i)
			case !bytes.Equal(f[6:12], macOf(octets[len(octets)-1])):
				t.Fatalf("%s frame %d: MAC %x doesn't go with %s", h.name, i, f[6:12], h.addr)
			}
			if !slices.ContainsFunc(h.pairs, func(q qpPair) bool { return q.peerQP == p.DestQP }) {
				t.Fatalf("%s frame %d: QP %d isn't in the notes", h.name, i, p.DestQP)
			}
		}
	}
}

// In its turn a host sends most of the frames; who may not be told never does.
func TestScheduleTurns(t *testing.T) {
	hosts := loadAll(t)
	const turn = time.Second
	s := newSchedule(hosts, turn)
	for nth := range 6 {
		count := make([]int, len(hosts))
		for i := range 1300 {
			_, h := s.frame(time.Duration(nth)*turn + time.Duration(i)*turn/1300)
			count[h]++
		}
		for i, n := range count {
			want := 30
			if i == nth%3 {
				want = 1209
			}
			if n < want-15 || n > want+15 {
				t.Errorf("turn %d: %s sent %d of 1300, want about %d", nth, hosts[i].name, n, want)
			}
		}
	}
}

// match tells a frame that was changed, reordered or made up from one that was dropped or marked.
func TestMatch(t *testing.T) {
	hosts := loadAll(t)
	a, b, c, d := hosts[0].frames[0], hosts[1].frames[0], hosts[2].frames[0], hosts[3].frames[0]
	marked := func(f []byte) []byte {
		f = slices.Clone(f)
		p := parse(f)
		packet.MarkCE(f, &p)
		return f
	}
	// As MarkCE leaves what isn't ECN-capable alone, set the bits by hand.
	forced := slices.Clone(c)
	forced[parse(c).L3+1] |= packet.CE << 4
	spoiled := slices.Clone(b)
	spoiled[len(spoiled)-9] ^= 1
	ttl := slices.Clone(a)
	ttl[parse(a).L3+8]--
	cases := []struct {
		name              string
		wan               [][]byte
		strangers, ce     int
		ceOnNotECT, wrong int
	}{
		{"as sent", [][]byte{a, b, c, d}, 0, 0, 0, 0},
		{"some dropped", [][]byte{b, d}, 0, 0, 0, 0},
		{"marked", [][]byte{marked(a), marked(b), c, d}, 0, 2, 0, 0},
		{"marked though not ECN-capable", [][]byte{a, b, forced, d}, 0, 1, 1, 0},
		{"an octet changed", [][]byte{a, spoiled, c, d}, 1, 0, 0, 0},
		{"TTL changed", [][]byte{ttl, b}, 1, 0, 0, 0},
		{"out of order", [][]byte{b, a}, 1, 0, 0, 0},
		{"twice", [][]byte{a, a}, 1, 0, 0, 0},
	}
	for _, c1 := range cases {
		t.Run(c1.name, func(t *testing.T) {
			o := &observed{}
			var sent, wan []captured
			for _, f := range [][]byte{a, b, c, d} {
				sent = append(sent, captured{data: f})
			}
			for _, f := range c1.wan {
				wan = append(wan, captured{data: f})
			}
			o.match(hosts, sent, wan)
			if o.strangers != c1.strangers || o.ceMarked != c1.ce || o.ceOnNotECT != c1.ceOnNotECT || o.badSums != c1.wrong {
				t.Errorf("%d strangers, %d CE, %d CE on Not-ECT, %d wrong sums; want %d, %d, %d, %d",
					o.strangers, o.ceMarked, o.ceOnNotECT, o.badSums, c1.strangers, c1.ce, c1.ceOnNotECT, c1.wrong)
			}
		})
	}
}

func TestRateGoesFromCEToCE(t *testing.T) {
	f := loadAll(t)[0].frames[0]
	ce := slices.Clone(f)
	p := parse(ce)
	packet.MarkCE(ce, &p)
	o := &observed{}
	o.forwarded = []captured{{0, f}, {1e6, ce}, {2e6, f}, {3e6, ce}, {90e6, f}}
	want := float64(2*8*(len(f)+lineOverhead)) / 2e-3
	if got := o.rate(); math.Abs(got-want) > 1 {
		t.Errorf("%g bit/s, want %g", got, want)
	}
}

// A notification counts only where the host it is about accepts it, may be sent that kind, and is the one that gets it.
func TestJudgeNotifications(t *testing.T) {
	hosts := loadAll(t)
	gw := &cnpgen.Gateway{
		IPv6: packet.AddrFrom(gateway6), HasIPv6: true, Code: packet.DefaultCodePoints, ICRCExtensionHeaders: true,
	}
	fast := func(of int) []byte {
		data := hosts[of].frames[0]
		p := parse(data)
		out := make([]byte, 256)
		n, _ := cnpgen.FastCNP(out, data, &p, gw)
		return out[:n]
	}
	changed := func(at int) []byte {
		f := fast(1)
		f[at] ^= 1
		return f
	}
	const fastBTH = 14 + 40 + 24 + 8
	cases := []struct {
		name            string
		frame           []byte
		arrived         int
		refused, astray bool
	}{
		{"as it should be", fast(1), 1, false, false},
		{"a kind that its sender wasn't granted", fast(2), 0, false, true},
		{"to another MAC address", changed(5), 0, false, true},
		{"about another QP", changed(fastBTH + 7), 0, true, false},
		{"damaged", changed(fastBTH + 20), 0, true, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := &observed{}
			for _, h := range hosts {
				p := parse(h.frames[0])
				o.flow(hosts, &p)
			}
			n := notification{captured: captured{data: c.frame}, parsed: parse(c.frame)}
			o.assign(hosts, &n)
			o.notifications = []notification{n}
			r := &gatewayReport{fabric: &report.Port{Counters: report.Values{"notifications_sent_total": map[string]any{"fast-cnp": 1.0}}}}
			v := judgeNotifications(o, r, hosts)
			if got := v[1].ok; got != (c.arrived == 1) {
				t.Errorf("%s: %t", v[1].what, got)
			}
			if !v[3].ok != c.refused || !v[4].ok != c.astray {
				t.Errorf("%s, %s; want refused %t, astray %t", v[3].got, v[4].got, c.refused, c.astray)
			}
		})
	}
}

func TestPicture(t *testing.T) {
	port := &report.Port{Name: "wan", KMinBytes: 2000, KMaxBytes: 4000, CapacityBytes: 8000}
	var timeline []report.Depth
	for i := range 9 {
		timeline = append(timeline, report.Depth{MS: int64(i * 50), Port: "wan", DepthBytes: uint64(i * 1000)},
			report.Depth{MS: int64(i * 50), Port: "fabric", DepthBytes: 8000})
	}
	var b strings.Builder
	picture(&b, timeline, port)
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{
		"       capacity 8 KB |········█", "                     |       ██", "                     |      ███", "                     |     ████",
		"          K_max 4 KB |····█████", "                     |   ██████", "          K_min 2 KB |··███████", "                     | ████████",
	} {
		if strings.TrimSpace(lines[i]) != strings.TrimSpace(want) {
			t.Errorf("row %d is %q, want %q", i, lines[i], want)
		}
	}
}
