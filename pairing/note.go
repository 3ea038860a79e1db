package pairing

import "github.com/cnpgate/cnpgate/pairing/store"

// note is the worker's state of a flow that has a slot. The memory for flows that never had one stays untouched.
type note struct {
	first uint32 // first PSN of the requests, but at most maxSpan behind the highest
	top   uint32 // highest PSN of a request itself
	high  uint32 // highest PSN that requests may have used: beyond top if that request is a READ, which uses one PSN for each packet of its response
	began uint32 // when the flow's present connection began, in milliseconds modulo 2^32
	took  uint32 // packets up to the one that confirmed the source QP; all while it isn't confirmed

	unexpected     uint32 // PSN of the last packet that was unexpected, with noteBit
	unexpectedPort uint16 // and its UDP source port
	lease          uint16 // of the flow's slot
	// While the flow waits for a response: the PSN beyond which its peer flow must respond to its requests, and the PSN beyond which it must respond
	// to its peer flow's, with noteBit. Either one is enough. 0 where there are no such requests.
	awaitPeer, awaitOwn uint32
	// After a gap that may be forged: the highest PSN before it, with noteBit, and the number of PSNs by which requests have continued from
	// there.
	gap     uint32
	resumed uint16

	peerAck uint32 // highest PSN of the peer flow's responses at the last silentFor, with noteBit
	width   uint32 // highest number of PSNs that were ever without a response
	moved   uint32 // number of the packet that last changed the UDP source port, with noteBit; 0: none
	seenCM  uint32 // cm.Records.Added when a claim about the flow was last looked for

	portChanges uint8 // how often the UDP source port has changed recently
	skip        uint8 // responses to skip because recent ones added no evidence
	idle        uint8 // exponent of two of the pause between looks at responses
	asks        uint8 // where the ring of PSNs continues that are to be acknowledged
	responses   uint8 // where the ring of PSNs continues that the last responses wait for
}

const (
	noteBit    = store.NoteBit // in a word that has a PSN or the number of a packet, so that it isn't 0
	maxSpan    = 1 << 20       // PSNs behind the highest within which a flow may go back, or be acknowledged
	maxGap     = 64            // maximum step of a request beyond the highest PSN: the requests between were lost before the gateway
	firstSlack = store.FirstSlack
)

const (
	maxPace = 10 // at most 2^10 packets between two judgements of a flow
	maxIdle = 6  // at least one in 2^6 responses is processed
)

// restartPace makes the flow's judgement due with the current packet or the next one, and from then on as often as for a new flow.
func (t *track) restartPace() {
	t.pace = 1
	t.wait(0)
}

// faster makes the flow's judgement due with the current packet or the next one, and from then on twice as often as before.
func (t *track) faster() {
	t.pace = max(t.pace, 2) - 1
	t.wait(0)
}

// slower halves how often the flow is judged.
func (t *track) slower() {
	t.pace = min(t.pace+1, maxPace)
	t.wait(1<<t.pace - 1)
}

// readAll makes every response be processed.
func (n *note) readAll() { n.idle, n.skip = 0, 0 }

// readFewer skips twice as many responses as before. It is for flows that use the same PSNs at the same time: responses distinguish none of
// them.
func (n *note) readFewer() {
	n.idle = min(n.idle+1, maxIdle)
	n.skip = 1<<n.idle - 1
}

// awaits reports whether the flow waits for a response.
func (n *note) awaits() bool { return n.awaitPeer != 0 || n.awaitOwn != 0 }
