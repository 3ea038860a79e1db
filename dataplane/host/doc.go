// Package host is the gateway as a host (RFC 1122): what it does with frames to its own addresses. It answers ARP requests, Neighbor
// Solicitations, echo requests and STAMP test packets, matches the replies to its own test packets, and reads what only a gateway gets:
// notifications to a proxy, and the Parameter Problems of hosts that don't know the Fast CNP option.
//
// A worker's stage classify gives it a Frame outside tunnels, with a buffer for a reply, and gets a Result:
//
//	Stage.Receive(*Frame) Result     a Verdict, what to count besides it (Event), the reply in Frame.Out, a round-trip time
//	Stage.Probe(*Frame, ...) Result  the next STAMP test packet
//	Stage.Accept(*Frame, known)      for the verdict Notification: the request that is in it, or why it is refused
//	Refused(*Frame)                  for the verdict ParameterProblem: the flow whose Fast CNP was refused
//	Requests                         a worker's requests of congested nodes, until their flows' next data packets
//	Refusals                         the hosts that get no Fast CNP
//
// The caller alone counts, frees and queues frames, applies the domain filter, and knows flows. Nothing here blocks, allocates or reads a
// clock. Workers share a Stage, whose state is atomic; a Requests is one worker's.
package host
