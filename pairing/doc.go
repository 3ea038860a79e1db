// Package pairing learns the source QP of RoCEv2 packets.
//
// A packet carries its destination QP (BTH, IBTA 9.2), but not its source QP, which a notification has to name (draft-tian 5.2, 6.1). A
// notification to a wrong QP slows down an innocent job, so the gateway abstains when unsure. docs/qp-rules.md explains the rules,
// with the probability that each is wrong, and what an attacker can do.
//
// A connection is two flows, one in each direction, and the destination QP of each is the source QP of the other. So the package learns a
// flow's source QP by finding its peer flow, the other flow of the connection, among the flows of the opposite direction:
//
//	F: host A -> host B, to QP b   --->
//	                               <---   G: host B -> host A, to QP a
//	If F and G are one connection, F comes from QP a, and G from QP b.
//
// # Packages and types
//
//	Pairing   what the workers of a gateway share: a store.Store, the cm.Records, what QPs are used for, the hints
//	Learner   one worker's part: its flows' tracks and notes, a budget, the messages of RDMA-CM that wait, counts
//	flow      one flow with a slot, at one packet of it: its track, its note and its store.Slot
//	check     a packet of a flow that has a peer flow, compared with what the connection can send
//	rules     functions that compare two flows' evidence (store.View, which can't be changed) and return a verdict
//	Answer    the result for a flow: 31 bits in its entry of the flow table
//
//	store     the slots: what the workers know of each other's flows. Groups, memory, eviction; nothing about answers
//	cm        what RDMA-CM's messages say: records, claims, the queue of messages that wait. Nothing about flows
//
// From store come a Slot, its View, a Link (a slot's peer) and a Ref (a flow of any worker); from cm a Message and a Claim. Both packages
// import neither pairing nor each other.
//
// The workers of a gateway share one Pairing. Each worker has a Learner for its own flow table, and passes every RoCEv2 packet to it:
//
//	learner.StartBurst()
//	table.Lookup(packets, now, flows)
//	for i := learner.Routine(flows, packets, 0); i < len(packets); i = learner.Routine(flows, packets, i+1) {
//		learner.Observe(flows[i], key, headers, frame, now) // of packet i, if it has a flow
//	}
//	qp, ok := learner.SourceQP(flow)
//
// Routine only counts packets without new evidence, which are most packets of confirmed flows. Observe learns from the others.
//
// A flow record is one use of a table entry: it begins with the flow's first packet, and lasts until it is closed, ages or is evicted. A
// later packet with the same key begins another one.
//
// # How a flow is learned
//
// The flows between two hosts, behind the same gateway ports and in one VLAN or tunnel, are a group; its two sides may be in two VLANs or
// tunnels that many connections prove to belong together (scopes.go). A flow gets a slot on its side of the group (flow.go). Its requests show which PSNs it has used (psn.go). Its responses rule out the flows of the other side that have
// not used the PSN in the response (learn.go). From time to time the flow is judged (judge.go) by the rules, best first: RDMA-CM, the UDP
// source port (portrule.go), and PSNs by elimination (psnrule.go). If a rule is certain, two flows become each other's peer (pair.go), and
// both answers are Confirmed. The rules for equal ports and for PSNs add up bits of evidence, and are certain if the probability of an
// error is below 2^-20. RDMA-CM and the port's formula have fixed conditions.
//
// # How a pair is kept
//
// Each packet of a flow that has a peer flow is compared with what the connection can send (check.go). An unexpected packet suspends the
// flow: its answer becomes a Candidate until an expected packet comes. Two unexpected packets in a row that are near each other belong to
// another connection: if they are requests, the flow record ends and a new one begins; if they are responses, the pair is withdrawn. No
// state is final: a withdrawn pair can be confirmed again, after a contradiction with more evidence than before.
//
// UD packets carry their source QP (maps.go). It is unknown while the QP is known to be one end of a connection (service.go).
//
// # Threads
//
// The two directions of a connection may pass through two workers. A worker writes only the tracks, notes and totals of its own flows. It
// publishes their PSNs as atomic words (store.Sent, store.Ack). Each word carries the lease of the flow's slot. So a reader knows to which
// flow the word belongs, and a worker whose flow has lost its slot publishes nothing there. A worker compares flows of a group only under
// the group's lock, and assigns groups or slots only under the store's. No worker waits for a lock: if another worker holds it, the
// worker continues without it, and a later packet brings the evidence again. An answer changes by compare-and-swap of the flow's state in
// the flow table. The state includes the flow's generation, so a change reaches the right flow or none.
//
// # Bounds
//
// The caller provides the memory, whose size is fixed: as many flows have a slot as it is made for, whatever hosts they are of. If all slots are
// in use, a flow without a peer flow makes way for one whose source has fewer (store). A flow with a peer flow never does, so what is paired
// stays paired. Between two hosts with more flows than a group has slots, flows are in branches of the group (branch.go). Flows without a slot are only counted. Each burst adds a budget of comparisons
// (StartBurst), and every packet that needs more than its track uses some of it. So no traffic can make a worker slow. The caller also
// provides the time. The package has no goroutine, allocates nothing after Join, and prints nothing.
package pairing
