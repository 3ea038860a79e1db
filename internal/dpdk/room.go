package dpdk

const (
	// A device should accept frames with two VLAN tags at the port's full MTU.
	tagSize = 4
	maxTags = 2
	tagRoom = maxTags * tagSize
	// driverHead is the maximum that a driver needs in a buffer in addition to its MTU: net_virtio counts an Ethernet header, a tag
	// and its own header of 12 bytes; the others two tags, or an FCS.
	driverHead = 14 + 4 + 12
	// roomUnit is the unit of some NICs (ixgbe) for a buffer's size: they don't use the rest of a buffer, and split long frames.
	roomUnit = 1024
)

// bufferFor is the number of bytes of a buffer with which every device stores frames of this MTU with two tags contiguously.
func bufferFor(mtu int) int { return (mtu + tagRoom + driverHead + roomUnit - 1) / roomUnit * roomUnit }
