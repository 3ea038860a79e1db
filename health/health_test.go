package health

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// anyPacket is a packet of any kind, with PSNs that often follow each other.
func anyPacket(r *rand.Rand, now int64, psn uint32) Packet {
	opcodes := []packet.Opcode{
		packet.RCSendFirst, packet.RCSendMiddle, packet.RCSendLast, packet.RCWriteOnly, packet.RCReadRequest, packet.RCReadRespFirst, packet.RCReadRespLast,
		packet.RCReadRespOnly, packet.RCAcknowledge, packet.RCAtomicAcknowledge, packet.UC | packet.RCSendOnly, packet.UDSendOnly, packet.RCFetchAdd,
	}
	return Packet{
		Time: now, PSN: (psn + uint32(r.IntN(8)) - 3) & packet.PSNMask, Len: 1100, Data: uint32(r.IntN(4097)), Message: r.Uint32(), ID: uint16(r.IntN(5)),
		Opcode: opcodes[r.IntN(len(opcodes))], Syndrome: uint8(r.Uint32()), AckReq: r.IntN(2) == 0, CE: r.IntN(9) == 0, HasAETH: r.IntN(2) == 0,
	}
}

// TestAnything: no sequence of packets panics, allocates, or is counted more than once.
func TestAnything(t *testing.T) { rapid.Check(t, checkAnything) }

func FuzzAnything(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkAnything)) }

func checkAnything(t *rapid.T) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	var c Connection
	psn, now, n := r.Uint32()&packet.PSNMask, int64(1e9), rapid.IntRange(1, 2000).Draw(t, "packets")
	for range n {
		switch r.IntN(40) {
		case 0:
			psn = r.Uint32() & packet.PSNMask
		case 1:
			c.missed()
		case 2:
			c.notify(r.IntN(2), now)
		}
		p := anyPacket(r, now, psn)
		c.Observe(r.IntN(2), &p)
		psn, now = (psn+uint32(r.IntN(2)))&packet.PSNMask, now+r.Int64N(int64(1)<<(10+r.IntN(18)))
	}
	last := c
	last.snapshot(now)
	total := last.Datagram.Packets
	for i := range last.Half {
		h := &last.Half[i]
		total += h.Requests.Packets + h.Responses.Packets
		if again := h.Retransmissions().Packets; again > h.Requests.Packets+h.Responses.Packets {
			t.Errorf("%d of %d packets were sent again", again, h.Requests.Packets+h.Responses.Packets)
		}
	}
	if total != uint64(n) {
		t.Errorf("%d packets are counted, want %d", total, n)
	}
	var b Builder
	b.Add(&last, "")
	b.Report(nil, 0)
}

// TestNoAllocation: to follow a packet allocates nothing.
func TestNoAllocation(t *testing.T) {
	var c Connection
	r := rand.New(rand.NewPCG(1, 1))
	now := int64(1e9)
	if n := testing.AllocsPerRun(10000, func() {
		now += 1000
		p := anyPacket(r, now, uint32(now/5000))
		c.Observe(r.IntN(2), &p)
	}); n >= 1 {
		t.Errorf("%v allocations a packet", n)
	}
}

// TestTable: a full table replaces the connection that was silent longest, and no longer finds its ends.
func TestTable(t *testing.T) {
	const many = 8
	table, err := New(make([]byte, Size(many)), many)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(nil, many); err == nil {
		t.Error("a table without memory")
	}
	ends := func(n int) Ends {
		return Ends{End: [2]Endpoint{{Addr: packet.Addr{Lo: uint64(n)}, QP: uint32(n + 2)}, {Addr: packet.Addr{Lo: 1000}, QP: uint32(n + 500)}}}
	}
	for n := range 3 * many {
		e := ends(n)
		i := table.follow(e, true)
		p := Packet{Time: int64(n + 1), Opcode: packet.RCSendOnly}
		table.at(i).Observe(0, &p)
		if found := table.find(e.End[0].Addr, e.End[0].QP, 0); found.id() != i || found.side() != 0 {
			t.Errorf("connection %d isn't found", n)
		}
		if n < many {
			continue
		}
		old := ends(n - many)
		if table.find(old.End[0].Addr, old.End[0].QP, 0) != 0 {
			t.Errorf("connection %d is still found", n-many)
		}
	}
	if s := table.Stats(); s.Followed != 3*many || s.Replaced != 2*many || table.Len() != many {
		t.Errorf("%+v, %d in use", s, table.Len())
	}
}
