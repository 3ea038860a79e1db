package replay_test

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// inIPv4 is a payload in an Ethernet frame and IPv4, from one mirror to another.
func inIPv4(proto uint8, payload ...[]byte) []byte {
	body := slices.Concat(payload...)
	ip := make([]byte, packet.IPv4Len)
	packet.PutIPv4(ip, uint16(packet.IPv4Len+len(body)), 0, 64, proto, 0xc0a80001, 0xc0a80002)
	return slices.Concat([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0}, ip, body)
}

func inERSPAN2(frame []byte) []byte {
	return inIPv4(packet.ProtoGRE, []byte{0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0}, frame)
}

func inGRE(frame []byte) []byte {
	return inIPv4(packet.ProtoGRE, []byte{0, 0, 8, 0}, frame[packet.EthernetLen:])
}

// TestMirrored: what tools for captures and clouds make of the frames of a lossy connection changes nothing about the answer.
func TestMirrored(t *testing.T) {
	capture, err := replay.Open("testdata/cases/cut_tail.pcap.zst", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	var all []frame
	for {
		f, err := capture.Next()
		if err != nil {
			break
		}
		all = append(all, frame{f.Time, slices.Clone(f.Octets), int(f.Length)})
	}
	cut := func(b []byte, n int) []byte { return b[:min(n, len(b))] }
	first := all[0].parse().Src
	lossy := lossy2("")
	for _, c := range []struct {
		name   string
		change func(i int, f frame) []frame
		want   answer
	}{
		{"as it is", func(_ int, f frame) []frame { return []frame{f} }, lossy},
		{"the last four bytes are missing, as the driver takes a checksum away", func(_ int, f frame) []frame {
			return []frame{{f.at, cut(f.octets, f.length-4), f.length - 4}}
		}, lossy},
		{"a cloud's mirror cuts frames and puts them into VXLAN", func(_ int, f frame) []frame {
			in := cut(f.octets, 96)
			b := inVXLAN(in, len(in))
			return []frame{{f.at, b, len(b)}}
		}, lossy},
		{"one direction in ERSPAN, the other plain", func(_ int, f frame) []frame {
			if p := f.parse(); p.Src == first {
				b := inERSPAN2(f.octets)
				return []frame{{f.at, b, len(b) + f.length - len(f.octets)}}
			}
			return []frame{f}
		}, lossy},
		{"GRE in ERSPAN", func(_ int, f frame) []frame {
			b := inERSPAN2(inGRE(f.octets))
			return []frame{{f.at, b, len(b) + f.length - len(f.octets)}}
		}, lossy},
		{"each frame with its copy in the tunnel that it leaves in", func(_ int, f frame) []frame {
			b := inVXLAN(f.octets, f.length)
			return []frame{f, {f.at + 2000, b, len(b) + f.length - len(f.octets)}}
		}, answer{verdicts: lossy.verdicts, causes: lossy.causes, lost: lossy.lost, note: health.NoteCopies}},
		{"TCP beside it, in the same overlay", func(_ int, f frame) []frame {
			in := inIPv4(packet.ProtoTCP, make([]byte, 40))
			tcp := inVXLAN(in, len(in))
			return []frame{f, {f.at, tcp, len(tcp)}}
		}, lossy},
		{"padded to 64 bytes and more by a switch", func(_ int, f frame) []frame {
			b := append(slices.Clone(f.octets), make([]byte, 18)...)
			return []frame{{f.at, b, max(f.length, len(b))}}
		}, lossy},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, write, end := pcap.Create(t, pcap.Whole)
			for i, f := range all {
				for _, g := range c.change(i, f) {
					write(g.at, g.octets, g.length)
				}
			}
			end()
			c.want.check(t, healthOf(t, path), "")
		})
	}
}
