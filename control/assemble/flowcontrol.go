package assemble

import (
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane/link"
)

// localAddress is the source of PFC frames if no device has an address: locally administered (IEEE 802 8.4).
var localAddress = [6]byte{0x02, 'p', 'f', 'c', 0, 0}

// flowControl is the flow control of a port's link, nil if it has none.
func flowControl(c *config.Config, port int, addresses [][6]byte) *link.FlowControl {
	own := &c.Ports[port]
	if own.FlowControl == nil {
		return nil
	}
	f := &link.FlowControl{Address: localAddress, Speed: own.FlowControl.Link.Speed, Watchdog: own.FlowControl.Watchdog}
	if port < len(addresses) && addresses[port] != [6]byte{} {
		f.Address = addresses[port]
	}
	for class := range f.Priority {
		f.Priority[class] = -1
	}
	for class := range own.Classes {
		f.Priority[class] = int8(own.Classes[class].Priority)
	}
	for class, peer := range c.Ports[own.Peer].Classes {
		if peer.Lossless != nil {
			f.Lossless[class] = link.Lossless{On: true, Priority: uint8(peer.Priority), Thresholds: *peer.Lossless}
		}
	}
	return f
}
