package replay_test

import (
	"bufio"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// site is a capture of many connections at the same time, each between two of so many hosts. Each writes four messages, and of every tenth connection the
// third one is lost after it has passed.
type site struct{ connections, hosts int }

// siteSteps are what a connection does: PSN, whether it is the response, and for which connections: those that lose a packet, the others, or both.
var siteSteps = [...]struct {
	psn      uint32
	response bool
	well     bool
	loses    bool
}{
	{0, false, true, true}, {0, true, true, true}, {1, false, true, true}, {1, true, true, true}, {2, false, true, true}, {2, true, true, false},
	{2, false, false, true}, {2, true, false, true}, {3, false, true, true}, {3, true, true, true},
}

func (s site) losing() int { return (s.connections + 9) / 10 }

// frames is how many the capture has.
func (s site) frames() int { return 8*s.connections + s.losing() }

// write writes the capture, of headers only: a packet each microsecond, or slower, so that a step takes at least 20 ms.
func (s site) write(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "site.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	put := func(b []byte) {
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	header := make([]byte, 24)
	for at, v := range map[int]uint32{0: 0xa1b23c4d, 4: 2 | 4<<16, 16: 128, 20: 1} {
		binary.LittleEndian.PutUint32(header[at:], v)
	}
	put(header)
	at, gap := int64(1e18), max(1000, int64(20e6)/int64(s.connections))
	for _, step := range siteSteps {
		if !step.well {
			at += 2 * gap * int64(s.connections) // the time-out is longer than a round trip
		}
		for n := range s.connections {
			at += gap
			if loses := n%10 == 0; loses && !step.loses || !loses && !step.well {
				continue
			}
			b := s.packet(n, step.psn, step.response)
			length := uint32(packet.EthernetLen) + uint32(binary.BigEndian.Uint16(b[packet.EthernetLen+2:]))
			for i, v := range [...]uint32{uint32(at / 1e9), uint32(at % 1e9), uint32(len(b)), length} {
				binary.LittleEndian.PutUint32(header[4*i:], v)
			}
			put(header[:16])
			put(b)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// packet is a WRITE of connection n, or its ACK.
func (s site) packet(n int, psn uint32, response bool) []byte {
	const payload = 1000
	length := uint16(20 + 8 + packet.BTHLen + packet.RETHLen + payload + packet.ICRCLen)
	from, to, qp := uint32(n%s.hosts), uint32((n%s.hosts+1+n/s.hosts)%s.hosts)|1<<16, uint32(1<<21+n)
	opcode, ports := packet.RCWriteOnly, uint16(49152+n%16384)
	if response {
		from, to, qp, opcode, length = to, from, uint32(1<<22+n), packet.RCAcknowledge, 20+8+packet.BTHLen+4+packet.ICRCLen
	}
	b := make([]byte, 0, 96)
	b = append(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, byte(length>>8), byte(length), 0, 0, 0x40, 0, 64, 17, 0, 0)
	b = binary.BigEndian.AppendUint32(b, 10<<24|from)
	b = binary.BigEndian.AppendUint32(b, 10<<24|to)
	b = binary.BigEndian.AppendUint16(b, ports)
	b = append(b, 0x12, 0xb7, byte((length-20)>>8), byte(length-20), 0, 0, byte(opcode), 0, 0xff, 0xff)
	b = binary.BigEndian.AppendUint32(b, qp)
	b = binary.BigEndian.AppendUint32(b, psn|1<<31)
	if response {
		return append(b, 0x1f, 0, 0, byte(psn)) // an ACK that limits no credits
	}
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	return binary.BigEndian.AppendUint32(b, payload)
}

// TestHealthOfSite: totals are exact also if a site has more connections than are followed at a time.
func TestHealthOfSite(t *testing.T) {
	s := site{connections: 6000, hosts: 100}
	path := s.write(t)
	for _, at := range []int{0, 1000} {
		s.check(t, path, at)
	}
}

func (s site) check(t *testing.T, path string, limit int) {
	t.Helper()
	c, err := replay.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := diagnosed(c, replay.HealthOptions{Connections: limit})
	if err != nil {
		t.Fatal(err)
	}
	got := &r.Summary
	if got.Connections != s.connections || got.Bad != s.losing() || got.Packets != uint64(s.frames()) || got.NotPaired != 0 || got.OneDirection != 0 {
		t.Errorf("%d followed at a time: %d connections, %d with a verdict, %d packets, %d not paired, %d of one direction; want %d, %d, %d, 0, 0",
			limit, got.Connections, got.Bad, got.Packets, got.NotPaired, got.OneDirection, s.connections, s.losing(), s.frames())
	}
	if got.LostDownstream != uint64(s.losing()) || got.Retransmitted.Packets != uint64(s.losing()) || got.GoodputBytes != 4*1000*uint64(s.connections) {
		t.Errorf("%d followed at a time: %d lost, %+v sent again, %d bytes; want %d, %d, %d", limit, got.LostDownstream, got.Retransmitted, got.GoodputBytes,
			s.losing(), s.losing(), 4000*s.connections)
	}
	if f := r.Frames; f == nil || f.Examined != uint64(s.frames()) {
		t.Errorf("%d followed at a time: %+v; want %d examined", limit, f, s.frames())
	}
}
