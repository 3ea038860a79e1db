package flowtable

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

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
		table.carry(x)
		want.Packets, want.Bytes = 1<<32-1<<15-1, largest
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
