package dataplane

import (
	"math/bits"

	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// learner is the stage that finds the flow of each packet, and learns source QPs.
type learner struct {
	*stage.State
	trackers []tracker // by port
}

// learn finds or adds the flow of every RoCEv2 packet of the batch (draft-tian 5.2), and learns source QPs from the packets.
func (l *learner) learn(b *frames.Batch) {
	if b.Flowless != 0 {
		l.learnCNPs(b)
	}
	n := len(b.Frames)
	records, flows := b.Records[:n], b.Flow[:n]
	l.Flows.Lookup(records, l.Now, flows)
	t := &l.trackers[l.Ports[b.Port].Peer]
	for i := l.Learner.Routine(flows, records, 0); i < n; i = l.Learner.Routine(flows, records, i+1) {
		if b.Flowless>>i&1 != 0 {
			continue
		}
		if flows[i] == t.tracked && t.tracked.Index != flowtable.None {
			t.observed(&records[i])
		}
		data, p := b.Frame(i)
		l.Learner.Observe(flows[i].Index, flowtable.KeyOf(&records[i]), p, data, l.Now)
		replace(flows, flows[i], l.Flows.Ref(flows[i].Index))
		b.InHand = frames.NotInHand
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

// learnCNPs passes a receiver's CNP to the learner: the first of the burst, as looking at one costs more than forwarding a packet, and all that they
// can do is to suggest a candidate. A CNP makes no flow: it answers one. A gateway's notification has no evidence about the receiver's QPs.
func (l *learner) learnCNPs(b *frames.Batch) {
	for left := b.Special &^ b.Gone; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(uint64(left))
		data, p := b.Frame(i)
		if p.Opcode != packet.CNP || p.BTHFlags&packet.ExtensionBit != 0 || p.DstOpts != 0 || p.IPv4Mapped() { // only RoCEv2 packets have an opcode
			continue
		}
		var k flowtable.Key
		frames.SetKey(&k, b.Port, p)
		l.Learner.Observe(flowtable.None, &k, p, data, l.Now)
		break
	}
	b.InHand = frames.NotInHand
}
