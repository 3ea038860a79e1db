// Package fleet is what the gateways of a site, and the hosts behind them, tell each other: which subjects and messages there are, who may
// send them, and what a gateway makes of those that it gets. docs/fleet.md is the introduction.
//
// Nothing of it is needed to forward or to notify. A message never replaces a gateway's own evidence: it only adds to it. The package is pure:
// messages, time and memory come from the caller. control/fleetlink connects it to NATS, and sim to a simulated bus.
package fleet
