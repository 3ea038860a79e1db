// Package rdmanet is a network of RDMA requesters and responders in virtual time, and a place on the path at which their packets are captured. It knows
// of each packet why it was sent, and what became of it, so that a diagnosis of the capture can be compared with the truth. It shares no code and no rule
// with the packages that diagnose.
//
// # What the ends do
//
// A Half is the requests of one end of a connection and the answers to them (RC). It follows the InfiniBand Architecture Specification:
//
//   - Requests take PSNs in order, a READ as many as it has responses (9.7.2, 9.7.3). PSNs are 24 bits and wrap.
//   - The responder executes the request whose PSN it expects. For one behind a gap it sends one NAK for the PSN that it expects, and none more until that
//     one comes (9.7.5.2.8). It answers duplicates again: with an ACK for the latest PSN, READ and ATOMIC with their responses (9.7.5.1.4).
//   - An ACK or a NAK acknowledges all PSNs before (9.7.5.1.2). A response beyond one of a READ that is missing is an implied NAK: the requester asks for the
//     rest again (9.7.5.2.9). After an RNR NAK it waits for as long as that says (9.7.5.2.8, table 46).
//   - The requester's timer runs while something isn't acknowledged, and begins anew with progress. When it ends the requester goes back to the oldest PSN
//     (9.7.6.1.3). After more retries than its retry count without progress, or a NAK that is an error, the connection ends (9.9.2).
//
// A NIC says what the specification leaves to an implementation: whether packets are accepted out of order and sent again one by one, when ACKs are sent
// and asked for, the time-out, the UDP source ports, first PSNs and IP identifications.
//
// # What is known
//
// Of each packet: when it was sent, passed the capture, and arrived, and its Fate; of each that is sent again the Episode, with what triggered it and the
// Reason behind that. A Capture keeps what a vantage point shows; its Expected says which verdicts hold, and which of them the capture suffices to prove.
package rdmanet
