package proxy_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/proxy"
)

// notification is a notification to a proxy about a data packet.
func notification(t *testing.T, f testkit.RoCE, level uint8) []byte {
	t.Helper()
	frame, out := f.Frame(), make([]byte, cnpgen.MaxLen)
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	target, _ := cnpgen.TargetOf(frame, &p)
	g := cnpgen.Gateway{IPv4: packet.AddrFrom4([]byte{203, 0, 113, 7}), HasIPv4: true, Code: packet.DefaultCodePoints}
	n := cnpgen.ProxyNotification(out, &target, &g, frame, &p, packet.AddrFrom4([]byte{192, 0, 2, 1}), level)
	if n == 0 {
		t.Fatal("not built")
	}
	return out[:n]
}

// TestRead: the flow comes from the invoking packet, also from one that is cut at the longest notification, and the level from the five-tuple.
func TestRead(t *testing.T) {
	four := testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: 7, SrcPort: 0xc001}
	six := testkit.RoCE{Src: "fd00:18::1", Dst: "fd00:19::1", DestQP: 0xffffff, SrcPort: 0xc001}
	long, datagram, request, qp1 := four, four, four, six
	long.Size = 4096
	datagram.Opcode, datagram.SourceQP = packet.UDSendOnly, 0x123456
	request.Opcode, qp1.DestQP = packet.RCReadRequest, 1
	for _, c := range []struct {
		name     string
		flow     testkit.RoCE
		level    uint8
		refusal  proxy.Refusal
		sourceQP uint32
	}{
		{"IPv4", four, 0, proxy.Accepted, 0}, {"IPv6", six, 7, proxy.Accepted, 0}, {"cut", long, 5, proxy.Accepted, 0}, {"UD", datagram, 3, proxy.Accepted, 0x123456},
		{"without data", request, 5, proxy.NotData, 0}, {"QP 1", qp1, 5, proxy.ManagementQP, 0},
	} {
		frame := notification(t, c.flow, c.level)
		var p packet.Parsed
		packet.Parse(frame, uint32(len(frame)), &p)
		var data packet.Parsed
		packet.Parse(c.flow.Frame(), uint32(len(c.flow.Frame())), &data)
		want := proxy.Request{Sender: data.Src, Receiver: data.Dst, DestQP: c.flow.DestQP, SourceQP: c.sourceQP, Level: c.level}
		if c.refusal != proxy.Accepted {
			want = proxy.Request{}
		}
		if got, refusal := proxy.Read(frame, &p, &packet.DefaultCodePoints); got != want || refusal != c.refusal {
			t.Errorf("%s: %+v, %v, expected %+v, %v", c.name, got, refusal, want, c.refusal)
		}
	}
}

// TestRefusalNames: each refusal has a name of its own.
func TestRefusalNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range proxy.Refusals + 1 {
		if name := r.String(); name == "" || name == "unknown" || seen[name] {
			t.Errorf("refusal %d is %q", r, name)
		} else {
			seen[name] = true
		}
	}
	if name := (proxy.Refusals + 1).String(); name != "unknown" {
		t.Errorf("%q", name)
	}
}
