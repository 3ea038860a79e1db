//go:build secondopinion

package dataplane_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// TestSecondOpinionProxy: scapy and tshark read what a congested gateway sends to proxies as it is meant: scapy compares the five-tuple with the
// invoking packet and checks lengths and checksums, tshark reads addresses and ports and checks the checksums.
func TestSecondOpinionProxy(t *testing.T) {
	var lines strings.Builder
	var frames [][]byte
	for _, c := range []struct {
		v6 bool
		to string
	}{{false, proxy4}, {false, proxy6}, {true, proxy4}, {true, proxy6}} {
		for _, size := range []int{100, 1400} {
			p := proxied(t, c.to, c.to)
			above(p)
			s := newScene(t, p, nil)
			cause := data(c.v6, 0)
			cause.Size = size
			s.fill(1, cause)
			for _, n := range s.finish() {
				fmt.Fprintf(&lines, "proxy-notification 0 ffff %x\n", n.Octets)
				frames = append(frames, n.Octets)
			}
		}
	}
	if len(frames) != 8 {
		t.Fatalf("%d notifications, expected 8", len(frames))
	}
	if out := opinion.Scapy(t, lines.String(), "../cnpgen/testdata/second_opinion.py"); !strings.Contains(out, "checked 8 frames, 0 wrong") {
		t.Errorf("scapy: %s", out)
	}
	tsharkReadsProxy(t, frames)
}

// tsharkReadsProxy has tshark read the outer headers, the checksums and the first octet of the payload: the IP version and the level.
func tsharkReadsProxy(t *testing.T, frames [][]byte) {
	t.Helper()
	out := opinion.Tshark(t, frames, "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
		"-T", "fields", "-e", "ip.src", "-e", "ip.dst", "-e", "ip.checksum.status", "-e", "ipv6.src", "-e", "ipv6.dst", "-e", "udp.srcport",
		"-e", "udp.dstport", "-e", "udp.checksum.status", "-e", "udp.payload")
	read := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(read) != len(frames) {
		t.Fatalf("tshark reads %d packets", len(read))
	}
	for i, line := range read {
		ends, version := "192.0.2.1\t"+proxy4+"\t1\t\t", "47"
		if i/2%2 == 1 {
			ends = "\t\t\t2001:db8::1\t" + proxy6
		}
		if i >= 4 {
			version = "67"
		}
		want := ends + "\t49443\t1022\t1\t" + version + "110000c12312b7"
		if !strings.HasPrefix(line, want) {
			t.Errorf("tshark reads %.120q, want %q (%s)", line, want, hex.EncodeToString(frames[i][:20]))
		}
	}
}
