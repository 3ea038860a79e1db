// Package cm is a host's communication manager: it sets up and tears down RC connections by the messages of RDMA-CM (IBTA 12.6 to 12.9). It
// is pure: time (int64 nanoseconds) and messages come from the caller, who carries messages between the hosts' QPs 1.
//
// The active end sends REQ, the passive end answers by REP, and the active end confirms by RTU. REQ and REP carry each end's QPN and the
// first PSN of the other end's requests. Either end ends the connection by DREQ, which the other one answers by DREP. An end repeats a
// message until it is answered or the end gives up; each repetition is answered again. Only the communication IDs, which each end chooses
// at random, authenticate a message.
package cm
