// Package dpdk moves frames between workers and devices: a thin binding to libdpdk (found by pkg-config, tested with 22.11) that starts
// the EAL, opens devices as ports with a pair of queues a worker, makes the mempool, and gives each worker a burst.Backend that moves all
// its frames with one cgo call an iteration. It is the only package with `import "C"`, and uses the names of go-dpdk for what both have.
//
// It never looks into a frame, decides nothing about one, and starts no worker: whoever calls Exchange is the worker. Frames the
// device refuses for now stay with the caller; those that it refuses for ever are dropped and named (burst.Port.Lost). Control calls (open,
// statistics, link state, close) run on one parked thread, EAL's main lcore, so that the affinity that rte_eal_init gives its caller stays
// there.
//
// The build tag nodpdk leaves everything but this comment out.
//
// # A page each
//
//   - config.go, device.go: what is asked for, and the device strings
//   - devices.go, port.go: the ports of a gateway, and what all of them can do
//   - ethdev.go: a port that DPDK has a driver for; profile.go: what it can do
//   - interface.go, socket.c, segment.c: a port on an interface of the kernel's; watch.go, lock.go: what happens to it, and who has it
//   - mempool.go, pool.c: the frames' memory; memory.go: whether there is enough
//   - backend.go, crossing.c: a worker's exchange
//   - eal.go, eal.c, worker.go: DPDK's runtime, and its threads
//
// # Interfaces of the kernel's
//
// A device net_af_packet is served by packet sockets of this package, not by DPDK's driver of that name. That one hands frames to a ring in
// which the kernel discards what is longer than the MTU, or keeps what can't leave until the link is back, and counts all of it as sent; it
// has the kernel put IP fragments together; it turns an 802.1ad tag into an 802.1Q one; it doesn't complete checksums that the other end
// of a veth left to be offloaded; and it goes on with a deleted interface for ever. Here:
//
//   - sendmmsg, past the queueing discipline (PACKET_QDISC_BYPASS), says of each frame whether the device took it. One that is too long or
//     has no link is lost, with its cause; one for which there is no place stays with the worker, whose queue's depth shows it.
//   - recvmmsg with PACKET_AUXDATA gives tags back as they were; with PACKET_VNET_HDR it says what was left to be offloaded: checksums
//     are completed, and large TCP and UDP packets are cut into frames, as a NIC would. Other large packets are dropped and counted.
//   - A frame may have one 802.1Q tag beyond the MTU; with two, or an 802.1ad tag, it must be 4 bytes shorter. That is the kernel's rule.
//   - The kernel hands over what the host itself receives, too. The interface should have no address of the host's own.
package dpdk
