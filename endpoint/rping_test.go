package endpoint

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// newPinging is a network of two hosts; host 1 serves rping's exchange, and host 0 begins it on each connection, with buffers of size bytes.
func newPinging(t *testing.T, size uint32, c Config) *dialling {
	t.Helper()
	c.Payload, c.CM.Rping = PayloadReal, true
	d := newDialling(t, c)
	d.stream.Messages = 0
	d.hosts[0].c.CM.Changed = func(now int64, c Connection) {
		d.changed(0, c)
		if !c.Up {
			return
		}
		if err := d.hosts[0].Ping(now, c.QP, size, c.ID); err != nil {
			t.Error(err)
		}
	}
	return d
}

// TestPing: rounds of rping's exchange go on, whatever the buffers' size and with losses; the content that comes back is that which was fetched.
func TestPing(t *testing.T) {
	for _, c := range []struct {
		size    uint32
		percent int // lost
	}{{1, 0}, {64, 0}, {1024, 0}, {1025, 0}, {MaxPing, 0}, {64, 10}, {5000, 10}, {MaxPing, 2}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			d := newPinging(t, c.size, Config{Timeout: 200_000, Retries: 1000})
			random := rand.New(rand.NewPCG(1, 2))
			d.change = func(int64, int, []byte, int) bool { return random.IntN(100) >= c.percent }
			opcodes := map[packet.Opcode]int{}
			d.seen = func(_ int64, _ int, frame []byte, length int) { opcodes[parsed(frame, length).Opcode]++ }
			d.dial(7)
			d.run(100_000_000)
			client, server := d.hosts[0].Counters(), d.hosts[1].Counters()
			if client.Pings < 20 || client.PingErrors+server.PingErrors > 0 || d.done[0] != int(client.Pings) || server.Pings-client.Pings > 1 {
				t.Errorf("%d completions; the client counted %+v\nthe server %+v", d.done[0], client, server)
			}
			if opcodes[packet.RCReadRequest] == 0 || opcodes[packet.RCWriteOnly]+opcodes[packet.RCWriteFirst] == 0 {
				t.Errorf("opcodes %v; expected READs and WRITEs", opcodes)
			}
			d.hosts[0].DisconnectAll(d.now)
			d.run(d.now + 3_000_000_000)
			if d.hosts[1].Connections() != 0 {
				t.Errorf("%d connections are left", d.hosts[1].Connections())
			}
			checkAccount(t, d.hosts[1].Counters())
		})
	}
}

// TestPingWrong: a server that returns something else, and one that refuses, end the connection, and the client's round fails.
func TestPingWrong(t *testing.T) {
	for name, wrong := range map[string]func(d *dialling) func(int64, int, []byte, int) bool{
		"other content": func(d *dialling) func(int64, int, []byte, int) bool {
			return func(int64, int, []byte, int) bool {
				for _, q := range d.hosts[1].byNumber {
					if q != nil && q.ping != nil && q.ping.returning {
						q.ping.data[0] ^= 1
						d.change = nil
					}
				}
				return true
			}
		},
		"two advertisements": func(d *dialling) func(int64, int, []byte, int) bool {
			return func(now int64, _ int, _ []byte, _ int) bool {
				for _, q := range d.hosts[0].byNumber {
					if q != nil && q.ping != nil {
						q.ping.advertise(now)
						d.change = nil
					}
				}
				return true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newPinging(t, 64, Config{})
			d.change = wrong(d)
			d.dial(7)
			d.run(2_000_000_000)
			client, server := d.hosts[0].Counters(), d.hosts[1].Counters()
			if client.PingErrors+server.PingErrors == 0 || d.hosts[0].Connections()+d.hosts[1].Connections() != 0 {
				t.Errorf("the client counted %+v\nthe server %+v", client, server)
			}
		})
	}
}

// TestNoPing: a SEND that is no advertisement, or not the first, is only acknowledged.
func TestNoPing(t *testing.T) {
	for _, size := range []uint32{15, 16, 17, 5000} { // the pattern's length field is above MaxPing
		d := newDialling(t, Config{Payload: PayloadReal, CM: CMConfig{Rping: true}})
		d.stream = Stream{Op: Send, Bytes: size, Messages: 300}
		d.dial(1)
		d.run(never)
		if c := d.hosts[1].Counters(); d.done[0] != 300 || c.Pings+c.PingErrors+c.MessagesDone != 0 || c.DataSent != 0 {
			t.Errorf("messages of %d bytes: %d done, the receiver counted %+v", size, d.done[0], c)
		}
	}
}

// TestRemote: WRITE and READ name the peer's memory as configured.
func TestRemote(t *testing.T) {
	for _, op := range []Op{Write, Read} {
		d := newDialling(t, Config{Payload: PayloadReal, Remote: &Region{0x1234_5678_9abc, 0xfedcba98}})
		d.stream.Op = op
		names := 0
		d.seen = func(_ int64, _ int, frame []byte, length int) {
			p := parsed(frame, length)
			if p.Opcode.Headers()&packet.HasRETH == 0 {
				return
			}
			names++
			if r := packet.DecodeRETH(frame[p.Ext():]); r.VirtualAddress != 0x1234_5678_9abc || r.RKey != 0xfedcba98 {
				t.Errorf("the packet names %#x, %#x", r.VirtualAddress, r.RKey)
			}
		}
		d.dial(1)
		d.run(never)
		if d.done[0] != 3 || names != 3 {
			t.Errorf("%d messages done, %d packets name memory", d.done[0], names)
		}
	}
}
