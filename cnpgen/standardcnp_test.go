package cnpgen

import (
	"bytes"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestCNPFields: each field of a standard CNP that can be set is as set, the others are unchanged, and the ICRC is right.
func TestCNPFields(t *testing.T) {
	for _, c := range []struct {
		name       string
		fields     CNPFields
		from4      packet.Addr
		from6      packet.Addr
		class, ttl uint8
		flags      uint8
		port       uint16
	}{
		{"default", CNPFields{}, flow4.dst, flow6.dst, 48 << 2, 64, 0x40, 52769},
		{"from the gateway", CNPFields{FromGateway: true}, testGateway.IPv4, testGateway.IPv6, 48 << 2, 64, 0x40, 52769},
		{"may be fragmented", CNPFields{MayFragment: true}, flow4.dst, flow6.dst, 48 << 2, 64, 0, 52769},
		{"as ConnectX sends it", CNPFields{OwnPort: true, Own: true, Class: 48<<2 | packet.ECT0, HopLimit: 255}, flow4.dst, flow6.dst, 48<<2 | 2, 255, 0x40, 0},
		{"as libconntrack-cm sends it", CNPFields{OwnPort: true, Port: 0xf000, Own: true, Class: 0xc2, HopLimit: 255}, flow4.dst, flow6.dst, 0xc2, 255, 0x40, 0xf000},
		{"DSCP 0, TTL 1", CNPFields{Own: true, HopLimit: 1}, flow4.dst, flow6.dst, 0, 1, 0x40, 52769},
	} {
		for _, data := range []dataPacket{flow4, flow6} {
			g, target := testGateway, data.target()
			g.CNP = c.fields
			out := make([]byte, MaxLen)
			n := StandardCNP(out, &target, &g, 100)
			var p packet.Parsed
			packet.Parse(out[:n], uint32(n), &p)
			from, ttl := c.from4, out[14+8]
			if p.Family == 6 {
				from, ttl = c.from6, out[14+7]
			}
			if p.Opcode != packet.CNP || p.Src != from || p.DestQP != 100 || p.SrcPort != c.port || ttl != c.ttl || !packet.VerifyICRC(out[:n], &p) {
				t.Errorf("%s: %+v, TTL %d, ICRC right %v", c.name, p, ttl, packet.VerifyICRC(out[:n], &p))
			}
			class := out[14+1]
			if p.Family == 6 {
				class = out[14]<<4 | out[14+1]>>4
			} else if out[14+6] != c.flags || !packet.IPv4ChecksumOK(out[:n], &p) {
				t.Errorf("%s: flags %#x, checksum right %v", c.name, out[14+6], packet.IPv4ChecksumOK(out[:n], &p))
			}
			if class != c.class {
				t.Errorf("%s: traffic class %#x, want %#x", c.name, class, c.class)
			}
			if plain := make([]byte, MaxLen); c.name == "default" && (StandardCNP(plain, &target, &testGateway, 100) != n || !bytes.Equal(plain, out)) {
				t.Errorf("%s: differs from a gateway without fields of its own", c.name)
			}
		}
	}
	g, target := testGateway, flow4.target()
	g.CNP.FromGateway, g.HasIPv4 = true, false
	if n := StandardCNP(make([]byte, MaxLen), &target, &g, 100); n != 0 {
		t.Errorf("%d octets from a gateway without an address", n)
	}
}
