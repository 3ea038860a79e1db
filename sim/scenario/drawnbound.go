package scenario

import (
	"fmt"

	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// BeyondCNPs reports whether a drawn network loses packets whatever standard CNPs its senders get: a queue of the gateway's default capacity overflows
// although each sender gets a CNP each microsecond, from the time on when the gateway can have answered its first packet, and until all together send no
// more than the WAN does. This is a bound: a gateway doesn't know at once that it must slow down senders, nor that one more CNP isn't too many.
func (d *Drawn) BeyondCNPs() (bool, error) {
	s, err := Parse(d.Name, d.Text, nil, nil)
	if err != nil {
		return false, err
	}
	c, err := s.Config(StandardCNP)
	if err != nil {
		return false, err
	}
	sender, err := endpoint.NewReactionPoint(reactionOf(c, int64(d.host)))
	if err != nil {
		return false, fmt.Errorf("%s: %w", d.Name, err)
	}
	capacity := uint64(0)
	for i := range c.Network.Nodes {
		if g := c.Network.Nodes[i].Gateway; g != nil {
			for _, p := range g.Dataplane.Ports {
				if p.Role == stage.WAN {
					capacity = p.Capacity
				}
			}
		}
	}
	return d.overflows(sender.Open(endpoint.FlowID{QP: 1, Dst: packet.Addr{Lo: 1}, DestQP: 1}), float64(capacity)), nil
}

const (
	boundPacket = 4096 // bytes
	boundCNPs   = 1000 // ns between two
)

// overflows sends packets of one sender as all do. What is queued is what came, less what the WAN sent from the first packet on.
func (d *Drawn) overflows(f *endpoint.Flow, capacity float64) bool {
	now, cnp, sent := 0.0, d.loop, 0
	for sent < d.bytes {
		for ; cnp <= now; cnp += boundCNPs {
			f.SlowDown(int64(cnp))
		}
		rate := f.Rate(int64(now))
		if rate*float64(d.senders) <= float64(d.WAN) {
			return false
		}
		sent += boundPacket
		f.Sent(int64(now), boundPacket)
		now += boundPacket * 8e9 / rate
		if float64(sent*d.senders)-now*float64(d.WAN)/8e9 > capacity {
			return true
		}
	}
	return false
}
