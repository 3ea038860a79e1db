package cm

import "math/bits"

// FlowLabel is the flow label that Linux's RDMA-CM puts into a REQ if the application sets none. It derives from RDMA-CM's ports at both
// ends (cma_get_roce_udp_flow_label), and determines the UDP source port of the connection's packets.
func FlowLabel(source, port uint16) uint32 {
	const prime, mask = 31, 1<<20 - 1
	return (uint32(source)*prime + uint32(port)) & mask
}

// Transaction is Linux's transaction ID of a message: the number of its MAD agent, then the requesting end's communication ID, least
// significant byte first.
func Transaction(comm uint32) uint64 {
	const agent = 2
	return agent<<32 | uint64(bits.ReverseBytes32(comm))
}
