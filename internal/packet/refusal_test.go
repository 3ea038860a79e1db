package packet

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// linuxRefusal is what Linux 6 sent to fd00:ffff::1 when that had sent it a Fast CNP with option type 0x9E, about a data packet from fd00:18::1 to QP 100
// at fd00:19::1.
func linuxRefusal(t testing.TB) []byte {
	return pcap.Octets(pcap.Read(t, "testdata/linux_parameter_problem.pcap"))[0]
}

// TestFastCNPRefusal: the kernel's answer is read, and nothing that differs from it where it matters.
func TestFastCNPRefusal(t *testing.T) {
	const l4, invoking = EthernetLen + IPv6Len, EthernetLen + IPv6Len + parameterProblemLen
	at := func(offset int, to byte) func(b []byte) []byte {
		return func(b []byte) []byte { b[offset] = to; return b }
	}
	for _, c := range []struct {
		name    string
		change  func(b []byte) []byte
		problem bool // an ICMPv6 Parameter Problem
		refusal bool
	}{
		{"as Linux sends it", nil, true, true},
		{"trace option", at(invoking+42, DefaultCodePoints.FastCNPTraceOption), true, true},
		{"another type", at(l4, 3), false, false},
		{"a next header that isn't known", at(l4+1, 1), true, false},
		{"pointer in front of the options", at(l4+7, 39), true, false},
		{"pointer at the header of the options", at(l4+7, 41), true, false},
		{"pointer at another option", at(l4+7, 60), true, false},
		{"pointer at the options' last octet", at(l4+7, 63), true, false},
		{"pointer behind the options", at(l4+7, 70), true, false},
		{"pointer beyond the packet", at(l4+4, 0xff), true, false},
		{"another option", at(invoking+42, 0x8f), true, false},
		{"an option of another length", at(invoking+43, 15), true, false},
		{"an option that runs out of its header", at(invoking+43, 200), true, false},
		{"the invoking packet from another host", at(invoking+8, 0xfc), true, false},
		{"the invoking packet to another host", at(invoking+24, 0xfc), true, false},
		{"the invoking packet without options", at(invoking+6, ProtoUDP), true, false},
		{"options longer than the packet", at(invoking+41, 99), true, false},
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, false, false},
		{"too short for the BTH", func(b []byte) []byte { b[19] -= 21; return b[:len(b)-21] }, true, false},
		{"no invoking packet", func(b []byte) []byte { b[18], b[19] = 0, 8; return b[:invoking] }, true, false},
		{"no pointer", func(b []byte) []byte { b[18], b[19] = 0, 4; return b[:l4+4] }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bytes.Clone(linuxRefusal(t))
			length := uint32(len(b))
			if c.change != nil {
				b = c.change(b)
				if c.name != "cut" {
					length = uint32(len(b))
				}
			}
			var p Parsed
			Parse(b, length, &p)
			if problem := ParameterProblem(b, &p); problem != c.problem {
				t.Fatalf("a Parameter Problem: %v", problem)
			}
			if !c.problem {
				return
			}
			if c.change != nil { // so that nothing is refused for its checksum alone
				be.PutUint16(b[l4+2:], ICMPv6Checksum(p.Src, p.Dst, b[p.L4:p.IPEnd]))
			}
			r, ok := DecodeFastCNPRefusal(b, &p, &DefaultCodePoints)
			if ok != c.refusal {
				t.Fatalf("read as %+v, %v", r, ok)
			}
			if want := (FastCNPRefusal{Dst: AddrFrom(netip.MustParseAddr("fd00:19::1")), DestQP: 100}); ok && r != want {
				t.Errorf("read as %+v, want %+v", r, want)
			}
		})
	}
	b := linuxRefusal(t)
	b[l4+2] ^= 1
	var p Parsed
	Parse(b, uint32(len(b)), &p)
	if r, ok := DecodeFastCNPRefusal(b, &p, &DefaultCodePoints); ok {
		t.Errorf("with a wrong checksum it is read as %+v", r)
	}
}
