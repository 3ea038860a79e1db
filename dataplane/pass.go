package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Most bursts come to a queue with room for all of them, and nobody is to be told. Such a burst passes: what forward, enqueue and
// respond decide for each of its frames is decided for all of them at once, and comes to the same (TestPass).

// smooth tells whether a plain burst that came in by port finds room in its peer's queue, and nobody to tell.
func (w *Worker) smooth(port, frames int, b *seen) bool {
	out := w.ports[port].Peer
	q, c := &w.egress[out], &w.ports[out]
	depth := q.depth[b.class] + q.others[b.class] + b.octets
	return !w.oneByOne && depth <= c.Capacity && q.classes[b.class].n+frames+q.othersFrames[b.class] <= c.Frames &&
		(c.Role != WAN || w.policy.Ports[out].Thresholds.Level(depth) != congestion.Second)
}

// pass queues a smooth burst.
func (w *Worker) pass(port int, rx []burst.Frame, b *seen) {
	out := w.ports[port].Peer
	q := &w.egress[out]
	w.counters.add(port, CEReceived, b.ce)
	before := q.depth[b.class] + q.others[b.class]
	w.counters.watermark(out, b.class, before+b.octets)
	if w.policy.Ports[out].Thresholds.Level(before+b.octets) != congestion.None {
		w.mark(out, before, rx)
	}
	for i := range rx {
		if x := w.flow[i]; x != flowtable.None {
			w.count(x, rx[i].Len, &w.parsed[i])
		}
	}
	q.enterAll(b.class, rx, w.flow[:len(rx)], b.octets, w.flows)
}

// count counts a frame at its flow.
func (w *Worker) count(x flowtable.Index, octets uint32, p *packet.Parsed) {
	f := w.flows.Flow(x)
	f.Packets++
	f.Bytes += uint64(octets)
	f.Transport = uint8(p.Opcode) >> 5
}

// mark marks the frames of a burst that find the queue above K_min, the first of them before octets deep.
func (w *Worker) mark(out int, before uint64, rx []burst.Frame) {
	k, depth, marked := w.policy.Ports[out].Thresholds, before, uint64(0)
	limit := min(k.KMin, k.KMax)
	for i := range rx {
		depth += uint64(rx[i].Len)
		if p := &w.parsed[i]; depth > limit && packet.MarkCE(w.batch.Bytes(rx[i]), p) {
			marked++
			if x := w.flow[i]; x != flowtable.None {
				w.flows.Flow(x).Marked++
			}
		}
	}
	w.counters.add(out, ECNMarked, marked)
}
