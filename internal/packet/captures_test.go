package packet

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

const capturesDir = "../../testdata/captures"

// end is a host with a QP.
type end struct {
	ip string
	qp uint32
}

// captureQPs reads the true QPs of both ends from the JSON beside a capture. Each host has QP 1, too.
func captureQPs(t *testing.T, path string) map[end]bool {
	t.Helper()
	var truth struct {
		Connections []struct {
			ClientIP  string `json:"client_ip"`
			ClientQPN uint32 `json:"client_qpn"`
			ServerIP  string `json:"server_ip"`
			ServerQPN uint32 `json:"server_qpn"`
		}
	}
	b, err := os.ReadFile(strings.TrimSuffix(path, ".pcap") + ".json")
	if err == nil {
		err = json.Unmarshal(b, &truth)
	}
	if err != nil || len(truth.Connections) == 0 {
		t.Fatalf("truth of %s: %v", path, err)
	}
	qps := map[end]bool{}
	for _, c := range truth.Connections {
		qps[end{c.ClientIP, c.ClientQPN}], qps[end{c.ClientIP, 1}] = true, true
		qps[end{c.ServerIP, c.ServerQPN}], qps[end{c.ServerIP, 1}] = true, true
	}
	return qps
}

// isRoCEv2 looks for an untagged UDP datagram to port 4791 without options and extension headers, which is all the captures have.
func isRoCEv2(f []byte) bool {
	switch {
	case len(f) > 38 && f[12] == 0x08 && f[13] == 0x00:
		return f[14] == 0x45 && f[23] == 17 && be.Uint16(f[36:]) == 4791
	case len(f) > 58 && f[12] == 0x86 && f[13] == 0xdd:
		return f[20] == 17 && be.Uint16(f[56:]) == 4791
	}
	return false
}

// TestCaptures: all RoCEv2 frames of real traffic are found, with a right ICRC and the true QPs; MarkCE keeps both checksums.
func TestCaptures(t *testing.T) {
	for _, path := range pcap.Real(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			qps := captureQPs(t, path)
			roce, transports := 0, map[string]bool{}
			for i, f := range pcap.Octets(pcap.Read(t, path)) {
				var p Parsed
				Parse(f, uint32(len(f)), &p)
				if (p.Kind == RoCEv2) != isRoCEv2(f) {
					t.Fatalf("frame %d: kind %d, RoCEv2: %v", i+1, p.Kind, isRoCEv2(f))
				}
				if p.Kind != RoCEv2 {
					continue
				}
				roce++
				transports[p.Opcode.Transport()] = true
				if !VerifyICRC(f, &p) {
					t.Fatalf("frame %d: wrong ICRC", i+1)
				}
				if dst := (end{p.Dst.Netip().String(), p.DestQP}); !qps[dst] {
					t.Fatalf("frame %d: destination %v isn't among %v", i+1, dst, qps)
				}
				if src := (end{p.Src.Netip().String(), p.SourceQP}); p.SourceQP != 0 && !qps[src] {
					t.Fatalf("frame %d: source %v isn't among %v", i+1, src, qps)
				}
				if Classify(f, &p, &DefaultCodePoints) != NotANotification {
					t.Fatalf("frame %d: a notification", i+1)
				}
				checkMarkCE(t, f, &p)
			}
			if roce == 0 {
				t.Fatal("no RoCEv2 frame")
			}
			want := strings.ToUpper(filepath.Base(path)[:2])
			if want == "CM" { // MADs and then an RC connection
				want = "RC"
			}
			if !transports[want] {
				t.Fatalf("transports %v, want %s", transports, want)
			}
		})
	}
}

// checkMarkCE marks a copy of a sound frame as if it were ECT(0) and checks what a receiver would.
func checkMarkCE(t *testing.T, frame []byte, p *Parsed) {
	t.Helper()
	f := append([]byte(nil), frame...)
	ip := f[p.L3:]
	if p.Family == 4 {
		ip[1] = ip[1]&^3 | ECT0
		be.PutUint16(ip[10:], 0)
		be.PutUint16(ip[10:], plainChecksum(ip[:20]))
	} else {
		ip[1] = ip[1]&^0x30 | ECT0<<4
	}
	q := *p
	q.ECN = ECT0
	if !markCE(f, &q) || q.ECN != CE {
		t.Fatal("not marked")
	}
	var again Parsed
	Parse(f, uint32(len(f)), &again)
	if again != q {
		t.Fatalf("marked frame parses to\n%+v, want\n%+v", again, q)
	}
	if !VerifyICRC(f, &again) {
		t.Fatal("marking broke the ICRC")
	}
	if p.Family == 4 && plainChecksum(ip[:20]) != 0 {
		t.Fatal("marking broke the IPv4 header checksum")
	}
}

// TestCapturesHideNothing: no frame of real traffic may hide a notification.
func TestCapturesHideNothing(t *testing.T) {
	for _, path := range pcap.Real(t) {
		for i, f := range pcap.Octets(pcap.Read(t, path)) {
			if hides, _ := mayHideFrame(f); hides {
				t.Errorf("%s, frame %d may hide one: % x", path, i+1, f[:min(len(f), 90)])
			}
		}
	}
}
