package ipfix

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/health"
)

// reportOf has one connection of each IP version.
func reportOf(packets uint64) *health.Report {
	connection := func(a, b string) health.Record {
		return health.Record{
			Ends:    [2]health.End{{IP: netip.MustParseAddr(a), QP: 17}, {IP: netip.MustParseAddr(b), QP: 18, CNPs: 3}},
			StartNS: 1_700_000_000e9, DurationNS: 5e9, Verdicts: []string{health.LossUpstream},
			Requests: []health.Side{{
				Packets: health.Amount{Packets: packets, Bytes: 1000 * packets}, Causes: map[string]health.Amount{"time-out": {Packets: 7}}, LostUpstream: 2,
			}},
		}
	}
	return &health.Report{Connections: []health.Record{connection("10.1.0.1", "10.9.0.9"), connection("fd00:1::1", "fd00:9::9")}}
}

// TestExport: a message has the templates, a record for each connection, and counts since the last one.
func TestExport(t *testing.T) {
	listener, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	e, err := New(listener.LocalAddr().String(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	receive := func() []byte {
		b := make([]byte, 2048)
		if err := listener.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, _, err := listener.ReadFrom(b)
		if err != nil {
			t.Fatal(err)
		}
		return b[:n]
	}
	for i, want := range []uint64{100, 50} {
		if err := e.Export(reportOf(100+50*uint64(i)), time.Unix(1_700_000_010, 0)); err != nil {
			t.Fatal(err)
		}
		b := receive()
		if int(be.Uint16(b[2:])) != len(b) || be.Uint32(b[8:]) != uint32(2*i) {
			t.Fatalf("the message has %d bytes, it says %d, and sequence %d", len(b), be.Uint16(b[2:]), be.Uint32(b[8:]))
		}
		data := b[headerLen+int(be.Uint16(b[headerLen+2:])):]
		if got := be.Uint64(data[setHeaderLen+2*4+3:]); be.Uint16(data) != template4 || got != want {
			t.Errorf("set %d with %d packets, want %d", be.Uint16(data), got, want)
		}
		data = data[be.Uint16(data[2:]):]
		if got := be.Uint64(data[setHeaderLen+2*16+3:]); be.Uint16(data) != template4+1 || got != want {
			t.Errorf("set %d with %d packets, want %d", be.Uint16(data), got, want)
		}
	}
	if err := e.Export(reportOf(150), time.Unix(1_700_000_020, 0)); err != nil { // nothing was added, so nothing is sent
		t.Fatal(err)
	}
	if len(messages(nil, 0, 0, 0)) != 0 {
		t.Error("a message without records")
	}
}
