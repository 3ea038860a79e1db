package endpoint

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestPerftest: a Host returns the messages of a client of perftest, on the connection whose first message is a version, and only there; it ends the
// connection on which data came once the client has sent its keys twice after the data.
func TestPerftest(t *testing.T) {
	d := newPinging(t, 64, Config{Timeout: 200_000_000, Retries: 7})
	var up []uint32
	ended := 0
	client := d.hosts[0]
	client.c.CM.Changed = func(_ int64, c Connection) {
		if c.Up {
			up = append(up, c.QP)
		} else {
			ended++
		}
	}
	d.dial(1)
	d.run(d.now + 20_000_000)
	if len(up) != 1 {
		t.Fatalf("%d connections", len(up))
	}
	version, keys := make([]byte, perftestVersion), make([]byte, 56)
	copy(version, "6.06")
	for i := range keys {
		keys[i] = byte(i + 1)
	}
	exchange := &perftest{q: client.byNumber[up[0]]}
	answers := 0
	d.seen = func(_ int64, _ int, frame []byte, length int) {
		client.byNumber[up[0]].perftest = nil // the message is on its way
		if p := parsed(frame, length); p.Opcode == packet.RCSendOnly && p.DestQP == up[0] {
			answers++
			if got := payload(frame, p); string(got) != string(exchange.message) {
				t.Errorf("returned %q for %q", got, exchange.message)
			}
		}
	}
	say := func(b []byte) {
		exchange.message = append(exchange.message[:0], b...)
		client.byNumber[up[0]].perftest = exchange // so that its message has this content
		if err := client.Start(Stream{QP: up[0], Op: Send, Bytes: uint32(len(b)), At: d.now}); err != nil {
			t.Fatal(err)
		}
		d.run(d.now + 2_000_000)
	}
	say(version)
	say(keys)
	d.dial(2)
	d.run(d.now + 20_000_000)
	if len(up) != 2 || answers != 2 || ended != 0 {
		t.Fatalf("%d connections, %d answers, %d ended", len(up), answers, ended)
	}
	if err := client.Start(Stream{QP: up[1], Op: Write, Bytes: 1 << 16, At: d.now}); err != nil {
		t.Fatal(err)
	}
	d.run(d.now + 5_000_000)
	say(keys)
	say([]byte("bandwidth"))
	if answers != 4 || ended != 0 {
		t.Fatalf("%d answers, %d ended before the client's last keys", answers, ended)
	}
	say(keys)
	d.run(d.now + 500_000_000)
	if answers != 5 || ended != 1 || client.byNumber[up[0]] == nil {
		t.Errorf("%d answers, %d ended, expected the data's connection", answers, ended)
	}
}
