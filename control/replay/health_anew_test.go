package replay_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// rewritten writes frames that were changed to a capture, without their ICRC, which is another one then.
func rewritten(t *testing.T, all []frame) string {
	t.Helper()
	path, write, end := pcap.Create(t, pcap.Whole)
	for _, x := range all {
		write(x.at, x.octets[:min(len(x.octets), x.length-packet.ICRCLen)], x.length)
	}
	end()
	return path
}

// TestHealthOfSecondConnection: QPs that are connected again, from the same PSN on or another, are another connection, and nothing was sent again. A requester
// that waits long for a lost ACK is still the same.
func TestHealthOfSecondConnection(t *testing.T) {
	job := lossy{op: endpoint.Write, bytes: 8192, messages: 40, timeout: 20 * msec, delay: [2]int64{20 * usec, 20 * usec}, first: 9000}
	for _, c := range []struct {
		name        string
		second      int   // first PSN
		after       int64 // ns
		connections int
	}{
		{"same PSN", 9000, 30_000 * msec, 2},
		{"lower PSN", 1000, 30_000 * msec, 2},
		{"higher PSN", 20000, 30_000 * msec, 2},
		{"goes on", 9000 + 320, 30_000 * msec, 1},
		{"soon", 9000, 300 * msec, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			again := job
			again.first = c.second
			_, one := job.run(t, 1)
			_, two := again.run(t, 1)
			all := frames(t, readFile(t, one))
			for _, f := range frames(t, readFile(t, two)) {
				f.at += c.after
				all = append(all, f)
			}
			r := healthOf(t, rewritten(t, all))
			if r.Summary.Connections != c.connections || r.Summary.Retransmitted.Packets != 0 || len(r.Verdicts) > 0 {
				t.Errorf("%d connections, %d packets sent again, %+v; want %d connections with nothing wrong", r.Summary.Connections, r.Summary.Retransmitted.Packets, r.Verdicts, c.connections)
			}
		})
	}
	t.Run("answers recorded before their requests", func(t *testing.T) {
		_, path := job.run(t, 1)
		var all []frame
		for _, after := range [...]int64{0, 30_000 * msec} {
			for _, f := range frames(t, readFile(t, path)) {
				if f.at += after; packet.Opcode(f.octets[14+20+packet.UDPLen]) == packet.RCAcknowledge {
					f.at -= 150 * usec
				}
				all = append(all, f)
			}
		}
		slices.SortStableFunc(all, func(a, b frame) int { return cmp.Compare(a.at, b.at) })
		if r := healthOf(t, rewritten(t, all)); len(r.Verdicts) > 0 {
			t.Errorf("%+v; want nothing wrong", r.Verdicts)
		}
	})
	t.Run("ACK lost", func(t *testing.T) {
		lost := lossy{op: endpoint.Send, bytes: 512, messages: 300, window: 1024, timeout: 400 * msec, delay: [2]int64{100 * usec, 100 * usec}, rule: loses(20, 1, true)}
		_, path := lost.run(t, 1)
		if r := healthOf(t, path); r.Summary.Connections != 1 || r.Summary.AcksLost == 0 {
			t.Errorf("%d connections, %d ACKs lost; want 1, and some", r.Summary.Connections, r.Summary.AcksLost)
		}
	})
}

// TestHealthOfManyConnections: each of the connections that the same two QPs have one after the other is listed, though the flow table has two flows.
func TestHealthOfManyConnections(t *testing.T) {
	const connections = 9
	job := lossy{op: endpoint.Write, bytes: 8192, messages: 40, timeout: 20 * msec, delay: [2]int64{20 * usec, 20 * usec}, first: 9000}
	_, path := job.run(t, 1)
	one := frames(t, readFile(t, path))
	var all []frame
	for n := range connections {
		for _, f := range one {
			f.at += 1000 * msec << n // what comes again after the same time is sent again after a time-out
			all = append(all, f)
		}
	}
	if r := healthOf(t, rewritten(t, all)); r.Summary.Connections != connections || len(r.Connections) != connections || len(r.Notes) > 0 {
		t.Errorf("%d connections, %d listed, notes %+v; want %d", r.Summary.Connections, len(r.Connections), r.Notes, connections)
	}
}
