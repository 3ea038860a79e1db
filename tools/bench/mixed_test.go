package main

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestMix: each port receives about half of the traffic; all checksums are right, and no kind of packet is missing.
func TestMix(t *testing.T) {
	m, err := newMix()
	if err != nil {
		t.Fatal(err)
	}
	seen, bytes := map[string]int{}, 0
	all := slices.Concat(m.frames[0], m.frames[1])
	for _, frame := range all {
		var p packet.Parsed
		packet.Parse(frame, uint32(len(frame)), &p)
		if p.Kind != packet.RoCEv2 || !packet.VerifyICRC(frame, &p) || p.Family == 4 && !packet.IPv4ChecksumOK(frame, &p) {
			t.Fatalf("the frame is %+v", p)
		}
		bytes += len(frame)
		for what, is := range map[string]bool{
			"IPv4": p.Family == 4, "IPv6": p.Family == 6, "VLAN": p.Tags == 1, "CNP": p.Opcode == packet.CNP, "CM": p.DestQP == packet.GSIQP,
			"ACK": p.Opcode == packet.RCAcknowledge, "UD": p.SourceQP > packet.GSIQP, "READ": p.Opcode == packet.RCReadRespMiddle, "long": len(frame) > 2000,
		} {
			if is {
				seen[what]++
			}
		}
	}
	t.Logf("%d and %d frames of %d flows, %d octets on average: %v", len(m.frames[0]), len(m.frames[1]), m.flows, bytes/len(all), seen)
	for what, least := range map[string]float64{
		"IPv4": 0.4, "IPv6": 0.3, "VLAN": 0.2, "CNP": 0.04, "CM": 0.004, "ACK": 0.05, "UD": 0.04, "READ": 0.05, "long": 0.01,
	} {
		if share := float64(seen[what]) / float64(len(all)); share < least {
			t.Errorf("%.2g %% are %s, expected at least %.2g %%", 100*share, what, 100*least)
		}
	}
	if share := float64(len(m.frames[0])) / float64(len(all)); share < 0.45 || share > 0.55 {
		t.Errorf("the fabric port receives %.2g of the frames", share)
	}
}
