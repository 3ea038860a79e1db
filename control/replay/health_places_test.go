package replay_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestSeveralPlaces: what was captured at two places is judged as one of them has it, however far their clocks are apart, and counts once.
func TestSeveralPlaces(t *testing.T) {
	same := func(b []byte, _ int) []byte { return b }
	vlan := func(b []byte, _ int) []byte {
		return slices.Concat(b[:12], []byte{0x81, 0, 0, 7}, b[12:])
	}
	for _, c := range []struct {
		name         string
		clock, delay int64 // ns: how far the other clock is ahead, and the path between the places
		appended     bool  // the captures are one after the other in a file
		ids          bool  // the hosts number their packets
		change       func(b []byte, length int) []byte
		note         string
		says         string
	}{
		{"both hosts, merged", 6 * msec, 50 * usec, false, false, same, health.NoteClocks, "differ by"},
		{"the other clock is behind", -6 * msec, 50 * usec, false, true, same, health.NoteClocks, "differ by"},
		{"seconds apart", 3000 * msec, 50 * usec, false, true, same, health.NoteClocks, "3 s"},
		{"hours apart", 7_200_000 * msec, 50 * usec, true, false, same, health.NoteClocks, "2.0 h ahead"},
		{"one after the other", -8 * msec, 20 * usec, true, false, same, health.NoteClocks, "8 ms ahead"},
		{"in step", 0, 20 * usec, true, false, same, health.NoteCopies, "file 2"},
		{"a bond's VLAN and its member", 0, 300, false, false, vlan, health.NoteCopies, "VLAN 7"},
		{"an overlay and what is below it", 0, 2 * usec, false, false, inVXLAN, health.NoteCopies, "vxlan 9"},
	} {
		for _, loss := range []bool{false, true} {
			name := c.name
			job := lossy{op: endpoint.Write, bytes: 16384, messages: 100, timeout: 40 * msec, delay: [2]int64{60 * usec, 60 * usec}}
			if loss {
				job.rule, name = loses(100, 0, true), name+", loss"
			}
			t.Run(name, func(t *testing.T) {
				_, path := job.run(t, 1)
				once := frames(t, readFile(t, path))
				var other []frame
				for i := range once {
					once[i].at += 60_000 * msec // so that no time is before 1970
					b := once[i].octets
					number := uint16(0)
					if c.ids {
						number = uint16(i + 1)
					}
					binary.BigEndian.PutUint16(b[packet.EthernetLen+4:], number)
					from := c.delay
					if b[packet.EthernetLen+15] != once[0].octets[packet.EthernetLen+15] { // the other host's
						from = -c.delay
					}
					seen := c.change(slices.Clone(b), once[i].length)
					other = append(other, frame{at: once[i].at + c.clock + from, octets: seen, length: once[i].length + len(seen) - len(b)})
				}
				slices.SortStableFunc(other, func(x, y frame) int { return int(x.at - y.at) })
				want := healthOf(t, rewritten(t, once))
				var both string
				if c.appended {
					both = filepath.Join(t.TempDir(), "both.pcap")
					if err := os.WriteFile(both, slices.Concat(readFile(t, rewritten(t, once)), readFile(t, rewritten(t, other))), 0o600); err != nil {
						t.Fatal(err)
					}
				} else {
					all := slices.Concat(once, other)
					slices.SortStableFunc(all, func(x, y frame) int { return int(x.at - y.at) })
					both = rewritten(t, all)
				}
				got := healthOf(t, both)
				if g, w := got.Summary, want.Summary; g.Packets != w.Packets || g.Retransmitted != w.Retransmitted || g.Duplicates != 0 || g.Connections != 1 {
					t.Errorf("%d packets of %d connections, %v sent again, %d copies; want %d packets, %v sent again", g.Packets, g.Connections, g.Retransmitted, g.Duplicates, w.Packets, w.Retransmitted)
				}
				if len(got.Verdicts) != len(want.Verdicts) || len(got.Verdicts) > 0 && got.Verdicts[0].Name != want.Verdicts[0].Name {
					t.Errorf("verdicts %+v, want %+v", got.Verdicts, want.Verdicts)
				}
				if !slices.ContainsFunc(got.Notes, func(n health.Note) bool { return n.Name == c.note && strings.Contains(n.Text, c.says) }) {
					t.Errorf("notes %+v, want %s with %q", got.Notes, c.note, c.says)
				}
				if f := got.Frames; f.Total != f.Examined*2 || len(f.Unread) != 1 || f.Unread[0].Frames != f.Examined {
					t.Errorf("%+v; want each frame twice", f)
				}
			})
		}
	}
}

// TestTenantsAreNoCopies: two tenants with the same addresses, QPs, ports and PSNs in two VLANs, or with two VNIs, are two, even if they send at the same time.
func TestTenantsAreNoCopies(t *testing.T) {
	job := lossy{op: endpoint.Write, bytes: 16384, messages: 100, timeout: 40 * msec, delay: [2]int64{60 * usec, 60 * usec}, rule: loses(100, 0, true)}
	_, path := job.run(t, 1)
	once := frames(t, readFile(t, path))
	for name, of := range map[string]func(b []byte, length int, tenant byte) []byte{
		"VLANs": func(b []byte, _ int, tenant byte) []byte {
			return slices.Concat(b[:12], []byte{0x81, 0, 0, tenant}, b[12:])
		},
		"VNIs": func(b []byte, length int, tenant byte) []byte {
			b = inVXLAN(b, length)
			b[packet.EthernetLen+20+8+6] = tenant
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all []frame
			for _, f := range once {
				for tenant := range byte(2) {
					b := of(slices.Clone(f.octets), f.length, 7+tenant)
					all = append(all, frame{at: f.at + int64(tenant)*20*usec, octets: b, length: f.length + len(b) - len(f.octets)})
				}
			}
			slices.SortStableFunc(all, func(x, y frame) int { return int(x.at - y.at) })
			one, two := healthOf(t, rewritten(t, once)).Summary, healthOf(t, rewritten(t, all)).Summary
			if two.Packets != 2*one.Packets || two.Connections != 2*one.Connections || two.NAKs != 2*one.NAKs {
				t.Errorf("%+v of both tenants, one has %+v", two, one)
			}
		})
	}
}

// inVXLAN is a frame in VXLAN with the VNI 9.
func inVXLAN(b []byte, length int) []byte {
	outer := make([]byte, 14+20+8+8, 50+len(b))
	copy(outer, b[:12])
	outer[12] = 8
	ip := outer[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, packet.ProtoUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(36+length))
	copy(ip[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp[2:], 4789)
	binary.BigEndian.PutUint16(udp[4:], uint16(16+length))
	udp[8], udp[14] = 8, 9
	return append(outer, b...)
}

// TestDirectionsOfTwoClocks: requests and answers are captured by two clocks that differ, at two places, or at one by two taps.
func TestDirectionsOfTwoClocks(t *testing.T) {
	for _, c := range []struct {
		behind int64 // ns: the clock of the answers
		taps   bool
		note   string
	}{{0, false, ""}, {160 * msec, false, "160 ms before"}, {5000 * msec, false, "5 s before"}, {400 * usec, true, "us before"}, {-400 * usec, true, "us before"}, {-20 * usec, true, ""}} {
		job := lossy{op: endpoint.Write, bytes: 16384, messages: 60, timeout: 40 * msec, delay: [2]int64{60 * usec, 60 * usec}, rule: loses(100, 0, true)}
		_, path := job.run(t, 1)
		once := frames(t, readFile(t, path))
		want := healthOf(t, rewritten(t, once))
		var requests, answers []frame
		for _, f := range once {
			if f.octets[packet.EthernetLen+15] == once[0].octets[packet.EthernetLen+15] {
				f.at += 60_000 * msec
				requests = append(requests, f)
			} else {
				f.at += 60_000*msec - c.behind
				answers = append(answers, f)
			}
		}
		both := filepath.Join(t.TempDir(), "both.pcap")
		if c.taps {
			all := slices.Concat(requests, answers)
			slices.SortStableFunc(all, func(x, y frame) int { return int(x.at - y.at) })
			both = rewritten(t, all)
		} else if err := os.WriteFile(both, slices.Concat(readFile(t, rewritten(t, requests)), readFile(t, rewritten(t, answers))), 0o600); err != nil {
			t.Fatal(err)
		}
		got := healthOf(t, both)
		if g, w := got.Summary, want.Summary; g.Packets != w.Packets || g.Retransmitted != w.Retransmitted || g.NAKs != w.NAKs || g.LostDownstream != w.LostDownstream || g.Connections != 1 || g.NotPaired != 0 {
			t.Errorf("%v behind: %+v, want %+v", c.behind, g, w)
		}
		if len(got.Verdicts) == 0 {
			t.Errorf("%v behind: no verdict, want %+v", c.behind, want.Verdicts)
		}
		for _, v := range got.Verdicts {
			if v.Name != want.Verdicts[0].Name {
				t.Errorf("%v behind: %+v, want %+v", c.behind, v, want.Verdicts)
			}
		}
		if said := slices.ContainsFunc(got.Notes, func(n health.Note) bool { return n.Name == health.NoteClocks && strings.Contains(n.Text, c.note) }); said != (c.note != "") || len(got.Notes) > 1 {
			t.Errorf("%v behind: notes %+v, want %q", c.behind, got.Notes, c.note)
		}
	}
}
