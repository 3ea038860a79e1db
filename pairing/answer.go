package pairing

import (
	"fmt"
	"github.com/cnpgate/cnpgate/internal/packet"

	"github.com/cnpgate/cnpgate/flowtable"
)

// State is the certainty of a flow's source QP.
type State uint8

const (
	Unknown   State = iota // nothing points to a source QP
	Candidate              // weak evidence points to it; or the flow has a peer flow and is suspended
	Confirmed              // notifications may name it
)

func (s State) String() string {
	return [...]string{"unknown", "candidate", "confirmed", "invalid"}[min(s, 3)]
}

// Evidence is the source of a source QP, best first.
type Evidence uint8

const (
	EvidenceNone   Evidence = iota
	EvidenceStatic          // the operator's map of QP pairs
	EvidenceHint            // a host agent
	EvidenceCM              // RDMA-CM: REQ and REP of the connection, and data that begins at the PSNs that they name
	EvidenceDETH            // UD packets carry their source QP
	EvidencePort            // the UDP source port, the same in both directions
	EvidencePSN             // PSNs of responses, by elimination
	EvidenceCNP             // a receiver's CNP; makes candidates only
	EvidencePeer            // another gateway has seen the peer flow, and this one's own evidence agrees (peers.go)
	Evidences      = iota
)

func (e Evidence) String() string {
	return [...]string{"none", "static", "hint", "cm", "deth", "port", "psn", "cnp", "peer", "invalid"}[min(e, Evidences)]
}

// Ending is the reason why a flow record (see doc.go) is closed. A closed record keeps its answer for the report. No notification names its
// source QP.
type Ending uint8

const (
	Open       Ending = iota
	EndedDREQ         // RDMA-CM released or rejected the connection; packets of the next second still belong to it
	EndedReuse        // one of its QPs serves another connection
	// EndedAged and EndedEviction are for flows that leave the flow table; no Answer has them.
	EndedAged     // no packet for longer than the aging time
	EndedEviction // another flow needed its entry of the table
)

func (e Ending) String() string {
	return [...]string{"", "dreq", "reuse", "aged", "evicted", "invalid"}[min(e, 5)]
}

// Answer describes a flow's source QP. The flow's entry in the flow table has it.
//
//	30  29 28    26 25   24 23          0
//	+------+--------+-------+------------+
//	|ending|evidence| State | source QP  |
//	+------+--------+-------+------------+
//
// EvidencePeer is written as 0, which nothing else has in this place unless the state is Unknown.
type Answer flowtable.Answer

const (
	stateBits = 3 << 24
	endedBits = 3 << 29
)

func makeAnswer(qp uint32, s State, e Evidence) Answer {
	return Answer(qp&packet.MaxQP) | Answer(s)<<24 | Answer(e&7)<<26
}

// SourceQP is the flow's source QP, 24 bits; don't rely on it unless the answer is Usable.
func (a Answer) SourceQP() uint32 { return uint32(a & packet.MaxQP) }

// State is the certainty of the source QP.
func (a Answer) State() State { return State(a >> 24 & 3) }

// Evidence is the source of the source QP.
func (a Answer) Evidence() Evidence {
	e := a.written()
	if e == EvidenceNone && a.State() != Unknown {
		return EvidencePeer
	}
	return e
}

// written is the evidence as it is written: 0 for EvidencePeer. Unlike Evidence it is inlined.
func (a Answer) written() Evidence { return Evidence(a >> 26 & 7) }

// Ended is Open unless the record is closed: EndedDREQ or EndedReuse.
func (a Answer) Ended() Ending { return Ending(a & endedBits >> 29) }

// Usable reports whether a notification may name the source QP: it is confirmed, and the record is open.
func (a Answer) Usable() bool { return a&(endedBits|stateBits) == Answer(Confirmed)<<24 }

// Keep reports whether the flow table must not evict a flow with this answer while it has packets (flowtable.Config): those whose source QP was
// learned. One that a map, a hint or a DETH names is known again with its next packet.
func Keep(a flowtable.Answer) bool { return Answer(a).Usable() && !Answer(a).fixed() }

// fixed reports whether the answer comes from a source of evidence that no packet can change: a map, a hint or a DETH.
func (a Answer) fixed() bool {
	return a.State() == Confirmed && (a.Evidence() == EvidenceStatic || a.Evidence() == EvidenceHint || a.Evidence() == EvidenceDETH)
}

func (a Answer) closed(why Ending) Answer { return a&^endedBits | Answer(why)<<29 }

// String is for tests and debugging.
func (a Answer) String() string {
	s := fmt.Sprintf("%v from %d by %v", a.State(), a.SourceQP(), a.Evidence())
	if a.Ended() != Open {
		s += ", ended " + a.Ended().String()
	}
	return s
}
