// Package agent runs on a host: it tells gateways which QPs the host's are connected to, as the kernel knows what no packet shows. It reads the QPs
// (internal/rdma), derives hints, and publishes them with a lifetime: to a broker (NATS), or to the API of a gateway on the same machine.
// docs/agent.md is for its users.
//
// A Scanner says when to read the QPs, so that the kernel is never busy with it. Derive makes the hints of what was read. A Book remembers which
// hints were published, and says what to publish next. Agent connects them with a Transport.
package agent
