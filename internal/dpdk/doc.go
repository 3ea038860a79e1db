// Package dpdk moves frames between workers and devices: a thin binding to libdpdk (found by pkg-config, tested with 22.11) that starts the
// EAL, opens devices as ports with a pair of queues a worker, makes the mempool, and gives each worker a burst.Backend that moves all its
// frames with one cgo call an iteration. It is the only package with `import "C"`, and uses go-dpdk's names where both have the same
// function.
//
// It never reads frames or decides about them, except for offloads on kernel interfaces, and starts no worker: the caller of Exchange is
// the worker. Frames that the device refuses for now stay with the caller; those that it always refuses are dropped and reported
// (burst.Port.Lost). Control calls (open, statistics, link state, close) run on one dedicated thread, EAL's main lcore, so that only this
// thread gets the affinity of rte_eal_init.
//
// With the build tag nodpdk the package has only this comment.
//
// # Files
//
//   - config.go, device.go: the configuration, and the device strings; driver.go: traits of drivers
//   - devices.go, port.go: the ports of a gateway, and their common functions
//   - ethdev.go: a port with a DPDK driver; profile.go: its capabilities
//   - interface.go, socket.c, segment.c: a port on a kernel interface; watch.go: changes of that interface; lock.go: exclusive use of devices
//   - mempool.go, pool.c: the frames' memory; memory.go: checks the available memory
//   - backend.go, crossing.c: a worker's exchange
//   - eal.go, eal.c, worker.go: DPDK's runtime, and its threads; log.go: its log
//
// # Kernel interfaces
//
// For a device net_af_packet this package uses its own packet sockets, not DPDK's driver of that name. DPDK's driver puts frames into a
// ring. There the kernel discards frames longer than the MTU, or keeps frames until the link is back, and the driver counts all of them as
// sent. It makes the kernel reassemble IP fragments, turns an 802.1ad tag into an 802.1Q one, doesn't complete checksums that the other end
// of a veth left to be offloaded, and never notices that its interface was deleted. Here:
//
//   - sendmmsg bypasses the queueing discipline (PACKET_QDISC_BYPASS) and reports for each frame whether the device accepted it. A frame that
//     is too long or has no link is lost, with its cause; one for which there is no space stays with the worker, whose queue's depth shows it.
//   - recvmmsg with PACKET_AUXDATA restores tags unchanged; with PACKET_VNET_HDR it reports the pending offloads: checksums are completed,
//     and large TCP and UDP packets are segmented, as a NIC would, also in tunnels. Frames for which that is impossible are dropped and
//     counted.
//   - A frame may exceed the interface's MTU by one 802.1Q tag, but not by a second one, nor by an 802.1ad tag. That is the kernel's rule.
//   - The kernel also delivers frames that the host itself receives. So the interface should have no address.
package dpdk
