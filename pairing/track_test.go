package pairing

import (
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// A flow that is confirmed after 2^31 packets took at least so many, or nearly.
func TestTookManyPackets(t *testing.T) {
	w := newWire(t)
	w.send(0, 200, packet.RCSendOnly, 5, 52769)
	k := &w.workers[0].tracks[w.find(0, 200)]
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

// TestCountersDoNotWrap: a flow's packets and bytes count beyond the range of its track, whether its packets are routine or observed.
func TestCountersDoNotWrap(t *testing.T) {
	const largest = 1<<16 - 1
	for name, op := range map[string]packet.Opcode{"routine": packet.RCSendOnly, "observed": packet.RCReadRequest} {
		w := newWire(t)
		worker, want := w.workers[0], Traffic{Transport: uint8(op) >> 5, Requests: true}
		k, x := [1]flowtable.Key{w.key(0, 200)}, [1]flowtable.Ref{}
		worker.lookup(k[:], w.now, x[:])
		p := packet.Parsed{Kind: packet.RoCEv2, Opcode: op, DestQP: 200, PSN: 7, Len: largest}
		var r [1]packet.Record
		r[0].Set(&p)
		worker.StartBurst()
		worker.Observe(x[0].Index, &k[0], &p, make([]byte, 64), w.now)
		worker.tracks[x[0].Index].packets = 1<<32 - 1<<15 - 1 // the maximum just before a packet must be observed
		worker.tally(x[0].Index, 0)
		want.Packets, want.Bytes = 1<<32-1<<15, largest
		routine := 0
		for range 1 << 18 { // 16 GiB
			worker.StartBurst()
			if worker.Routine(x[:], r[:], 0) == 1 {
				routine++
			} else {
				worker.Observe(x[0].Index, &k[0], &p, make([]byte, 64), w.now)
			}
			want.Packets++
			want.Bytes += largest
		}
		if got := worker.Traffic(x[0].Index); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if (routine > 1<<17) != (name == "routine") {
			t.Errorf("%s: %d packets were routine", name, routine)
		}
	}
}

// Frames longer than possible, from a capture.
func TestLongFrames(t *testing.T) {
	w := newWire(t)
	total := uint64(0)
	for i := range uint32(10) {
		w.frame(0, &packet.Parsed{Kind: packet.RoCEv2, Opcode: packet.UDSendOnly, DestQP: 200, SourceQP: 7, Len: 3 << 30}, make([]byte, 64))
		total += 3 << 30
		k := w.key(0, 200)
		k.SourceQP = 7
		x, _, _ := w.workers[0].Find(&k)
		if got := w.workers[0].Traffic(x); got.Bytes != total || got.Packets != uint64(i)+1 {
			t.Fatalf("%+v after %d packets, want %d bytes", got, i+1, total)
		}
	}
}
