// Package dpdk is a thin binding to libdpdk (found by pkg-config, tested with 22.11): it starts the EAL, opens devices as ports
// with a pair of queues a worker, makes the mempool, and gives each worker a burst.Backend that moves all its frames with one
// cgo call an iteration. It is the only place with `import "C"`, and uses the names of go-dpdk for what both have.
//
// It never looks into a frame, decides nothing about one, and starts no worker: whoever calls Exchange is the worker. Frames the
// device refuses stay with the caller. Control calls (open, statistics, link state, close) run on one parked thread, EAL's main
// lcore, so that the affinity that rte_eal_init gives its caller stays there.
//
// The build tag nodpdk leaves everything but this comment out.
//
// # What the af_packet PMD of 22.11 does
//
// Read in its source and seen in tests; none of it shows in its counters, so judge loss end to end.
//
//   - Every queue, also a single one, joins a PACKET_FANOUT group with FLAG_DEFRAG and FLAG_ROLLOVER: the kernel reassembles IPv4
//     fragments before the port sees them, and the whole datagram no longer fits the other side's MTU. RoCEv2 sets DF; other
//     fragmented traffic needs a NIC of its own.
//   - A frame longer than framesz less 66 octets comes in as its stump, without a mark. Hence framesz=16384, the check of the
//     interface's MTU at start, and the advice to switch GRO, TSO and GSO off.
//   - On the way out a frame longer than framesz less 32 octets, or than the interface's MTU, is dropped and counted as sent; so
//     is everything while the interface is down.
//   - The kernel keeps the outer VLAN tag beside the frame and the PMD puts it back, always as 0x8100: an 802.1ad S-tag (0x88a8)
//     changes its type on the way through. Inner tags stay as they are.
//   - Its sockets see every interface until they are bound, and the frames the host itself sends on theirs. Open throws away
//     what arrived before it was ready; the interface must carry no address (IPv6 link-local included) of the host's own.
//   - It always says that the link is up; Port.LinkUp asks the kernel instead.
//   - Its rings are locked memory: a process without CAP_IPC_LOCK needs RLIMIT_MEMLOCK to cover 2 x framesz x framecnt a queue.
package dpdk
