package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// learn finds or adds the flow of every RoCEv2 packet of the batch (draft-tian 5.2), and learns source QPs from the packets.
func (w *Worker) learn(b *batch) {
	if b.flowless != 0 {
		w.learnCNPs(b)
	}
	n := len(b.frames)
	records, flows := b.records[:n], b.flow[:n]
	w.flows.Lookup(records, w.now, flows)
	t := &w.trackers[w.ports[b.port].Peer]
	for i := w.learner.Routine(flows, records, 0); i < n; i = w.learner.Routine(flows, records, i+1) {
		if b.flowless>>i&1 != 0 {
			continue
		}
		if flows[i] == t.tracked && t.tracked.Index != flowtable.None {
			t.observed(&records[i])
		}
		data, p := b.frame(i)
		w.learner.Observe(flows[i].Index, flowtable.KeyOf(&records[i]), p, data, w.now)
		replace(flows, flows[i], w.flows.Ref(flows[i].Index))
		b.inHand = notInHand
	}
}

// replace gives packets the Ref of the flow that has replaced theirs, if its QPs were found to serve another connection.
func replace(flows []flowtable.Ref, was, is flowtable.Ref) {
	if is == was {
		return
	}
	for i := range flows {
		if flows[i] == was {
			flows[i] = is
		}
	}
}

// learnCNPs passes receivers' CNPs to the learner. A CNP makes no flow: it answers one. A gateway's notification has no evidence about the
// receiver's QPs.
func (w *Worker) learnCNPs(b *batch) {
	for left := b.special &^ b.gone; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		data, p := b.frame(i)
		if p.Opcode != packet.CNP || p.BTHFlags&packet.ExtensionBit != 0 || p.DstOpts != 0 || p.IPv4Mapped() { // only RoCEv2 packets have an opcode
			continue
		}
		var k flowtable.Key
		setKey(&k, b.port, p)
		w.learner.Observe(flowtable.None, &k, p, data, w.now)
	}
	b.inHand = notInHand
}
