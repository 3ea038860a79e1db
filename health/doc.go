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
// The model is what both ends must do (IBTA 9.7): a requester goes back to a PSN because a NAK asked for it, an RNR NAK permitted it, a READ or ATOMIC
// response beyond a missing one came (an implied NAK), or its timer ended. What can be seen here is when requests and answers pass.
//
// A request whose PSN was passed before is sent again, late, or a copy (again.go). Its number, its hops or its time tell; if they don't, the next request
// does, as a requester that goes back sends what follows. An episode begins with the first packet that is sent again (episode.go). It keeps what may
// have caused it, and what came after it. Its cause is decided when it must be (cause.go): the latest twelve stay open until the counts are read, as by
// then the times that the path and both ends take are known best. The rules are in the order of their proof:
//
//   - an RNR NAK or a NAK for just that packet, obeyed in the usual time: not much later than this requester reacts to what passes here (timing.obeys). A NAK
//     acknowledges all before it, so who goes back to an earlier packet doesn't obey it, nor does who has gone back since, if a response beyond a missing one came after that. If a responder that isn't ready sends both (Soft-RoCE does), both are
//     obeyed, one after the other;
//   - a response beyond the one that is missing, or a NAK that acknowledges it, likewise. If the requester may have timed out, the missing one did not pass, or
//     those before it did, or it is known how long the requester takes, and it took just that long, or it has waited as long for other answers;
//   - it comes to the requester on the path of a NAK, so neither is obeyed much sooner than the other. If packets don't pass here in order and both passed, either
//     may be the reason: the cause is unknown;
//   - a requester's timer runs since it sent the packet, or went back, at the latest: sooner than a time-out can be, a READ is asked for again because of an
//     implied NAK, if anything beyond it was answered. If nothing was, and no NAK passed, the clocks of the directions differ, or the capture misses frames;
//   - a time-out is spurious if an answer to an earlier transmission comes after it: sooner than a round trip, or more answers than packets that can have
//     caused them, if all was sent again and not just the only answer may have been lost, or one that can't have come to the requester yet, or the first one comes as long after the first transmission as the last one after the last;
//   - answers come in the order of what they answer: only those that precede the answer to something new are compared with what was sent again before that;
//   - it follows a loss if a NAK or an answer had passed for longer than the requester ever takes to react (not known where packets
//     pass out of order), or just behind one that the requester has got, as it goes back to what that left, or none had long after a round trip, or fewer answers come than transmissions that ask for one, unless a response beyond the one that is
//     asked for had just come; or one comes just a round trip after the last of several transmissions;
//   - the rest is undecided: unknown, unless all of it has something in common. Loss is rare: what seems to be lost again and again, without a NAK, isn't.
//     If the capture misses frames, or its clocks differ, the cause is unknown.
//
// # Where packets were lost
//
// While the MTU isn't known, the last response to a READ says where that ends: what is missing behind it isn't the READ's.
// A gap may be a loss before this place, or the capture's: it misses as large a part of what is sent again as of the rest (withoutMissed). The responder proves the loss: it asks for just the packet that is missing, or the requester for just
// that READ response (lostBefore). A packet that passed here was lost behind if the responder asked for it a round trip later or more, and acknowledged it
// only after it was sent again; if it did before, the packet was overtaken. If the requester had gone back over it before, and it did not pass since, it was
// lost before this place. So was it if no answer came to what passed since the requester last went back
// (lostBehind), if an ACK was due and came later: a peer that never answers again is no loss. What may be just late is neither lost, copied nor missed by the
// capture. What is missing before two requests have passed in sequence may have passed before the capture. A responder drops what comes behind a missing packet:
// if its requester sends only what a NAK asks for, the next NAK proves no loss.
//
// A requester that goes back sends all that follows (unless it has never done so), and nobody asks for the last packet alone, as a NAK needs one behind it.
// So a packet that comes again alone was late or copied, and so were several in a row if something new follows before the rest was sent again. Several in a row
// up to the latest were sent again, unless the capture has each packet twice (copies.end): nobody sends all again, each once.
//
// After a silence, a message that begins at a PSN that was passed may be of another connection of the same QPs (anew.go). The MSN of the next answer tells: a
// responder counts on, or from 0. Until then, and if it isn't in the capture, the cause is unknown.
//
// # What a verdict needs
//
// A READ takes as many PSNs as it has responses of the path MTU. If the requester counts by another one than the responder, neither losses nor causes are known, and
// that is the verdict (mtu.go).
//
// Evidence that excludes what is usual. What isn't acknowledged in three attempts isn't too large for the path if their answers may still be on their way. Responses without a request may answer requests from before the first packet; a requester that gets its answers on
// another path goes on. What waits in a queue passes as fast as before after a CNP, whether its sender obeys or not: a run of CNPs counts once twice the window
// has passed, if as many still come, or if they come too soon after one another for a sender that obeys to raise its rate between them (run.go). Between directions that are recorded by different clocks no order is known: an answer may be to a request that is
// recorded later, also one of another connection of the same QPs.
//
// # Memory and time
//
// The caller provides the memory (Size, New), the time, and the pairs of flows. The package allocates nothing while it follows packets, starts no
// goroutine and prints nothing. Every loop is bounded. A Table belongs to one worker. Judge and Summarize work on copies, outside a worker.
package health
