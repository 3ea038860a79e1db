package main

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// TestCapture: a capture holds one sound RoCEv2 data packet of each flow, and captures that begin elsewhere share no flow with it.
func TestCapture(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, payload := range []int{smallest, 1024} {
			seen := map[flowtable.Key]bool{}
			order := []uint32{}
			for first := 0; first < 2*hosts; first += hosts {
				for _, frame := range captured(t, traffic{flows: hosts, first: first, v6: v6, payload: payload}) {
					var p packet.Parsed
					packet.Parse(frame, uint32(len(frame)), &p)
					if p.Kind != packet.RoCEv2 || !p.Opcode.HasPayload() || p.ECN != packet.ECT0 || (p.Family == 6) != v6 {
						t.Fatalf("the frame is %+v", p)
					}
					if data := int(p.ICRC) - int(p.Payload); data != payload {
						t.Fatalf("%d octets of data, expected %d", data, payload)
					}
					whole := bytes.Clone(frame)
					packet.PutICRC(whole, int(p.L3), int(p.BTH), int(p.ICRC), true)
					if !bytes.Equal(whole, frame) {
						t.Fatal("the ICRC is wrong")
					}
					seen[flowtable.Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP}] = true
					order = append(order, p.DestQP)
				}
			}
			if len(seen) != 2*hosts {
				t.Errorf("%d flows, expected %d", len(seen), 2*hosts)
			}
			steps := 0
			for i := range order[1:] {
				if order[i+1] > order[i] {
					steps++
				}
			}
			if steps < hosts/2 || steps > 3*hosts/2 {
				t.Errorf("%d of %d steps go up: not a random order", steps, 2*hosts)
			}
		}
	}
}

// TestIMIX: frames have the lengths of IMIX, in their proportions, and right ICRCs.
func TestIMIX(t *testing.T) {
	lengths := map[int]int{}
	for _, frame := range captured(t, traffic{flows: 1200, payload: smallest, imix: true}) {
		var p packet.Parsed
		if packet.Parse(frame, uint32(len(frame)), &p); p.Kind != packet.RoCEv2 || !packet.VerifyICRC(frame, &p) {
			t.Fatalf("the frame is %+v", p)
		}
		lengths[len(frame)]++
	}
	if want := map[int]int{62: 700, 572: 400, 1514: 100}; !maps.Equal(lengths, want) {
		t.Errorf("lengths %v, expected %v", lengths, want)
	}
}

func captured(t *testing.T, c traffic) [][]byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.pcap")
	if err := c.write(path); err != nil {
		t.Fatal(err)
	}
	return pcap.Octets(pcap.Read(t, path))
}

// TestCaptureNames: captures that differ have files that differ, since a layout reuses a capture of the same name.
func TestCaptureNames(t *testing.T) {
	b := bench{dir: t.TempDir()}
	paths := map[string]bool{}
	all := []traffic{{}, {v6: true}, {imix: true}, {payload: smallest}, {first: 8}}
	for _, c := range all {
		c.flows = 8
		var l layout
		if err := b.capture(&l, c); err != nil {
			t.Fatal(err)
		}
		paths[l.captures[0]] = true
	}
	if len(paths) != len(all) {
		t.Errorf("%d files of %d captures", len(paths), len(all))
	}
}

// TestKeysAreTheFrames': the keys that the flow table is measured with are those of the captures.
func TestKeysAreTheFrames(t *testing.T) {
	for i := range 3 * hosts {
		frame := traffic{}.frame()
		traffic{}.put(frame, i)
		var p packet.Parsed
		packet.Parse(frame, uint32(len(frame)), &p)
		if want := (flowtable.Key{Src: p.Src, Dst: p.Dst, DestQP: p.DestQP}); (traffic{}).key(i) != want {
			t.Fatalf("flow %d has key %+v, its frame %+v", i, traffic{}.key(i), want)
		}
	}
}

// TestGatewaySetup: every configuration that the rows ask for is sound, and has the thresholds they want.
func TestGatewaySetup(t *testing.T) {
	for _, c := range []struct {
		respond, accepts string
		v6               bool
		marks, notifies  bool
	}{
		{"", "", false, false, false}, {"mark", "", true, true, false},
		{"notify", "long-haul-cnp", false, true, true}, {"notify", "fast-cnp", true, true, true},
		{"notify", "long-haul-cnp-icmpv6", true, true, true},
	} {
		t.Run(fmt.Sprint(c.respond, " ", c.accepts), func(t *testing.T) {
			s := gatewaySetup{Workers: []int{0, 1}, Burst: 64, Devices: []string{"net_null0", "net_null1"}, Room: roomOf(0), Respond: c.respond, Accepts: c.accepts}
			cfg, err := config.Parse("bench.yaml", []byte(s.yaml(traffic{flows: 1024, v6: c.v6}.pairs())))
			if err != nil {
				t.Fatal(err)
			}
			if len(cfg.QPMap) != 1024 || len(cfg.Warnings) != 0 {
				t.Errorf("%d pairs of QPs, warnings %v", len(cfg.QPMap), cfg.Warnings)
			}
			th := s.thresholds(congestion.Thresholds{KMin: cfg.Ports[1].Policy.KMin, KMax: cfg.Ports[1].Policy.KMax})
			if burst := uint64(64 * 62); burst > th.KMin != c.marks || burst > th.KMax != c.notifies {
				t.Errorf("a burst of %d bytes against %+v", burst, th)
			}
		})
	}
}
