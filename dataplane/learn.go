package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// learn finds or adds the flow of every RoCEv2 packet of the batch (draft-tian 5.2), and learns source QPs from the packets.
func (w *Worker) learn(b *batch) {
	n := len(b.frames)
	found, of := w.flow[:n], inOrder[:n]
	if b.flowless != 0 {
		found, of = w.found[:b.keys], w.of[:b.keys]
		w.place(n, b.flowless)
		w.learnCNPs(b)
	}
	keys := w.keys[:b.keys]
	if len(keys) == 0 {
		return
	}
	for i := range keys {
		w.records[i].Flow = keys[i].Words()
	}
	w.flows.Lookup(w.records[:len(keys)], w.now, found)
	w.learner.Touch(found)
	out := w.ports[b.port].Peer
	t := &w.trackers[out]
	for k := w.learner.Routine(found, of, &w.parsed, 0); k < len(keys); k = w.learner.Routine(found, of, &w.parsed, k+1) {
		if found[k] == t.flow && t.flow.Index != flowtable.None {
			w.observed(out, t, &w.parsed[of[k]])
		}
		w.inHand = of[k]
		w.learner.Observe(found[k].Index, &keys[k], &w.parsed[of[k]], w.batch.Bytes(b.frames[of[k]]), w.now)
		w.nameAnew(found, found[k])
		w.inHand = notInHand
	}
	if b.flowless != 0 {
		for k, i := range of {
			w.flow[i] = found[k]
		}
	}
}

// nameAnew gives packets the Ref of the flow that has replaced theirs, if its QPs were found to serve another connection.
func (w *Worker) nameAnew(found []flowtable.Ref, was flowtable.Ref) {
	is := w.flows.Ref(was.Index)
	if is == was {
		return
	}
	for i := range found {
		if found[i] == was {
			found[i] = is
		}
	}
}

// learnCNPs passes receivers' CNPs to the learner. A CNP makes no flow: it answers one. A gateway's notification has no evidence about the
// receiver's QPs.
func (w *Worker) learnCNPs(b *batch) {
	for left := b.special &^ b.gone; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		data, p := w.frame(b, i)
		if p.Opcode != packet.CNP || p.BTHFlags&packet.ExtensionBit != 0 || p.DstOpts != 0 || impostor(p) { // only RoCEv2 packets have an opcode
			continue
		}
		var k flowtable.Key
		setKey(&k, b.port, p)
		w.learner.Observe(flowtable.None, &k, p, data, w.now)
	}
}

// inOrder are the positions of packets in a batch in which each has a flow.
var inOrder = func() (of [burst.MaxSize]uint8) {
	for i := range of {
		of[i] = uint8(i)
	}
	return of
}()

// place records the positions of the packets that have a flow, in a batch where not all have one.
func (w *Worker) place(n int, flowless mask) {
	k := 0
	for i := range n {
		w.flow[i] = flowtable.Ref{}
		if flowless>>i&1 == 0 {
			w.of[k] = uint8(i)
			k++
		}
	}
}
