package flowtable

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// A flow that is confirmed after 2^31 packets took at least so many, or nearly.
func TestTookManyPackets(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 5, 52769)
	k := &w.tables[0].tracks[w.find(0, 200)]
	k.packets, k.due = carried-2, uint16((carried-2)&0xffff)
	for range 5 {
		w.send(0, 200, packet.RCSendOnly, 5, 52769)
	}
	w.send(1, 100, packet.RCAcknowledge, 5, 52769)
	w.send(0, 200, packet.RCSendOnly, 6, 52769)
	w.is(0, 200, 100, EvidencePort)
	if took := w.took(0, 200); took < carried-2 || took > carried+8 {
		t.Errorf("it took %d packets", took)
	}
}

// TestCountersDoNotWrap: a flow's packets and octets go on beyond what its track holds, whether its packets are routine or observed.
func TestCountersDoNotWrap(t *testing.T) {
	const largest = 1<<16 - 1
	for name, op := range map[string]packet.Opcode{"routine": packet.RCSendOnly, "observed": packet.RCReadRequest} {
		w := newWire(t)
		table, want := w.tables[0], Flow{Transport: uint8(op) >> 5}
		x := one(table, w.key(0, 200), w.now)
		parsed := [maxBurst]packet.Parsed{{Kind: packet.RoCEv2, Opcode: op, DestQP: 200, PSN: 7, Len: largest}}
		table.Observe(x, &parsed[0], make([]byte, 64), w.now)
		table.tracks[x].packets = 1<<32 - 1<<15 - 1 // as it can be just before a packet is observed in any case
		table.tally(x, 0)
		want.Packets, want.Bytes = 1<<32-1<<15, largest
		routine := 0
		for range 1 << 18 { // 16 GiB
			if table.Routine([]Index{x}, []uint8{0}, &parsed, 0) == 1 {
				routine++
			} else {
				table.Observe(x, &parsed[0], make([]byte, 64), w.now)
			}
			want.Packets++
			want.Bytes += largest
		}
		if got := table.Flow(x); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if (routine > 1<<17) != (name == "routine") {
			t.Errorf("%s: %d packets were routine", name, routine)
		}
	}
}

// Frames that a capture says were longer than any is.
func TestLongFrames(t *testing.T) {
	tab := newTable(t, Config{Capacity: 8})
	k := keyOf(1)
	total := uint64(0)
	for i := range uint32(10) {
		x := one(tab, k, int64(1+i))
		p := packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.UDSendOnly, DestQP: k.DestQP, Len: 3 << 30}
		observe(tab, x, &p, make([]byte, 64), int64(1+i))
		total += 3 << 30
		if got := tab.Flow(x).Bytes; got != total {
			t.Fatalf("%d octets after %d packets, want %d", got, i+1, total)
		}
	}
}
