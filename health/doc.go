// Package health follows RDMA connections by their headers, and says what is wrong with them: what was retransmitted and why, where packets were
// lost, how long acknowledgements take, and whether senders obey CNPs.
//
// # What is followed
//
// A Connection has two ends. Each end is the requester of its own PSNs: its requests go to the other end, and the responses to them (ACK, NAK, READ
// and ATOMIC responses) come back. A Half is one end's requests and their responses. UC has requests only. Of UD packets only bytes are counted: their
// PSNs belong to a QP that sends to many.
//
// # Why a packet was sent again
//
// A request whose PSN was passed before is late, duplicated in the network, or retransmitted. Half.behind decides which. A retransmission begins
// an episode, which has a cause: a NAK, an RNR NAK, a READ response that was lost, or a time-out. A time-out is spurious if the ACK was already on
// its way. That often can be said only once the ACK has come: the transmission that it answers is the one that lies a round trip back. A READ that is
// asked for again before the requester can have reacted to a response from here has timed out, too; one of which only the rest is asked for misses a
// response.
//
// # Memory and time
//
// The caller provides the memory (Size, New), the time, and the pairs of flows. The package allocates nothing while it follows packets, starts no
// goroutine and prints nothing. Every loop is bounded. A Table belongs to one worker. Judge and Summarize work on copies, outside a worker.
package health
