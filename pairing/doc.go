// Package pairing finds out which QP a RoCEv2 packet comes from.
//
// A packet carries the QP that it goes to (BTH, IBTA 9.2). It does not carry the QP that it comes from, but a notification has to name that
// QP (draft-tian 5.2, 6.1). A notification to a wrong QP slows an innocent job down, so the rule is: abstain when unsure. docs/qp-pairing.md
// explains the rules to an operator, with the probability that each is wrong, and what an attacker can do.
//
// # The idea
//
// A connection is two flows, one in each direction, and the destination QP of each is the source QP of the other. So the package learns a
// flow's source QP by finding the flow's mate, the other flow of its connection, among the flows of the opposite direction:
//
//	F: host A -> host B, to QP b   --->
//	                               <---   G: host B -> host A, to QP a
//	Are F and G one connection? Then F comes from QP a, and G comes from QP b.
//
// # The parts
//
// The workers of a gateway share one Pairing. Each worker has a Learner for its own flow table, and shows it every RoCEv2 packet:
//
//	learner.StartBurst()
//	table.Lookup(keys, now, flows)
//	for k := learner.Routine(flows, of, &parsed, 0); k < len(keys); k = learner.Routine(flows, of, &parsed, k+1) {
//		learner.Observe(flows[k], &keys[k], &parsed[of[k]], frame, now)
//	}
//	qp, ok := learner.SourceQP(flow)
//
// Routine only counts packets that say nothing new, which are most packets of confirmed flows. Observe learns from the others. What is known
// of a flow is its Answer, 31 bits in its entry of the flow table: a source QP, how sure it is, and the evidence for it.
//
// # How a flow is learned
//
// The flows between two hosts, behind the same ports and with the same VLAN tags, are a group (group.go). A flow gets a place on its side of
// the group (enter.go, allocate.go). Its requests show which PSNs it has used (requests.go). Its responses rule out the flows of the other
// side that have not used the PSN in the response (learn.go). From time to time the flow is judged (judge.go) by the rules, best first:
// RDMA-CM (cmrule.go, from what cm.go has read), the UDP source port (portrule.go), and PSNs by elimination (psnrule.go, rhythm.go). When
// a rule is wrong with a probability below 2^-20, it is sure. It then makes two flows mates (tie.go), and both answers are Confirmed.
//
// # How a pair is kept
//
// Each packet of a flow that has a mate is compared with what the connection can send (guard.go, character.go). A packet that is out of
// character puts the flow in doubt: its answer becomes a Candidate until a packet in character comes. Two packets in a row that are out of
// character and near each other belong to another connection. If they are requests, the flow's record ends and a new one begins. If they
// are responses, the pair is taken back. Retransmission is in character as far back as 2^20 PSNs. No state is final: a pair that was
// taken back can be confirmed again, after a contradiction by more evidence than before.
//
// # Threads
//
// Two workers may see the two directions of a connection. A worker writes the tracks, notes and totals of its own flows only. It publishes
// their PSNs as atomic words (sentWord, ackWord). Each word carries the lease of the flow's place, so that a reader knows which flow the
// word is about. Whoever compares flows of a group holds the group's claim; whoever gives out groups, pages or places holds
// Pairing.allocating. No worker waits for a claim: if another worker holds it, the worker goes on without, and the evidence comes again with
// a later packet. An answer changes by compare-and-swap of the flow's state in the flow table. The state has the flow's generation in it, so
// a change reaches the flow that it is meant for, or none.
//
// # Bounds
//
// The caller provides the memory, whose size is fixed. Flows that find no place are only counted. Each burst brings a budget of comparisons
// (StartBurst), and every packet that needs more than a look at its track pays from it. So nobody can make a worker slow by what he sends.
// The caller also provides the time. The package has no goroutine, allocates nothing after Join, and prints nothing.
package pairing
