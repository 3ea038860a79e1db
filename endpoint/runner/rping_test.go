package runner

import (
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// pinging is sending with rping's exchange.
func pinging() Config {
	s := connecting()
	s.Ping, s.Message, s.QPs = true, 5000, 2
	s.Load[0].Rate = 50_000_000
	return s
}

// TestRping: a receiver serves rping's exchange on each connection, through a gateway, until the sender's load ends.
func TestRping(t *testing.T) {
	s := pinging()
	n := newNetwork(t, s, listening(s), "")
	n.run(3 * second)
	r, got := n.ends[0].Report(), n.ends[1].Report()
	if !n.ends[0].Finished() || n.ends[0].Err() != nil || r.Pings < 100 || r.Pings != r.Messages || r.Bytes != 5000*r.Messages || r.PingErrors+got.PingErrors != 0 ||
		got.Pings < r.Pings || got.Pings > r.Pings+2 || r.CM.Ended["closed"] != 2 {
		t.Errorf("finished %v, %v: %+v\n%+v", n.ends[0].Finished(), n.ends[0].Err(), r, got)
	}
	n.close()
}

// TestSilentRping: a peer that accepts the connection, acknowledges the advertisement and then does nothing is given up in bounded time, with a reason.
func TestSilentRping(t *testing.T) {
	s := pinging()
	s.Load[0].Length = 60 * second
	r := listening(s)
	r.Timeout = 3600 * second
	n := newNetwork(t, s, r, "")
	var parsed packet.Parsed
	n.toSender = func(frame []byte) bool {
		packet.Parse(frame, uint32(len(frame)), &parsed)
		return parsed.Opcode != packet.RCReadRequest
	}
	n.run(mostSilence + mostFarewell + second)
	err := n.ends[0].Err()
	if want := "fd00:18::1 did not go on with rping's exchange for 10 s; check that rping -s runs there"; !n.ends[0].Finished() || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("finished %v: %v, expected %q", n.ends[0].Finished(), err, want)
	}
	n.close()
}

// TestPingNeedsCM: rping's exchange needs RDMA-CM and buffers that rping can have.
func TestPingNeedsCM(t *testing.T) {
	without, large := pinging(), pinging()
	without.CMPort, without.PeerFirstQP, large.Message = 0, 0x200, 1<<16
	for _, c := range []Config{without, large} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), "expected RDMA-CM, and at most 65535 bytes") {
			t.Errorf("%v", err)
		}
	}
}
