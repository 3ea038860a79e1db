// Package rdma reads from the Linux kernel which RDMA devices, QPs and RDMA-CM IDs a host has: by RDMA netlink (rdma_netlink.h, the commands
// that the program rdma of iproute2 uses), and the devices' addresses from sysfs, as no netlink command has them. It changes nothing. The
// messages' codec is pure; Reader has the socket.
package rdma

import "net/netip"

// Device is an RDMA device.
type Device struct {
	Index    uint32 // of the kernel
	Name     string
	Ports    uint32
	Protocol string // roce, ib, iw and others; empty before Linux 5.2
}

// Transport is a QP's type, enum ib_qp_type.
type Transport uint8

// The transports that the kernel reports a remote QP for.
const (
	RC Transport = 2
	UC Transport = 3
)

// State is a QP's state, enum ib_qp_state.
type State uint8

// The states between which a QP is connected.
const (
	RTR State = 2 // ready to receive: answers requests
	SQD State = 4 // sends are drained
)

// QP is a queue pair.
type QP struct {
	Device    uint32 // index
	Port      uint32 // 0 until the QP has one
	Local     uint32 // its number
	Remote    uint32 // the number of the QP that it is connected to
	Transport Transport
	State     State
}

// Connected reports whether packets that the QP sends go to Remote.
func (q *QP) Connected() bool {
	return (q.Transport == RC || q.Transport == UC) && q.State >= RTR && q.State <= SQD && q.Remote > 1
}

// CMID is an RDMA-CM ID with a QP.
type CMID struct {
	Device              uint32
	QP                  uint32
	Source, Destination netip.Addr // the zero Addr if unknown, or no IP address
}
