package scenario

import (
	"fmt"

	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Bound is what a drawn network has whatever standard CNPs its senders get: each gets one each microsecond, from the time on when the gateway can have answered its
// first packet, and until the queue is empty. A gateway doesn't know at once that it must slow down senders, nor that one more CNP isn't too many.
type Bound struct {
	Loses bool // a queue of the gateway's default capacity overflows
	Long  bool // if the WAN is full, the queue isn't short for more than the hundredth of the time that the 99th percentile leaves out
}

// Bound computes the network's bound.
func (d *Drawn) Bound() (b Bound, err error) {
	s, err := Parse(d.Name, d.Text, nil, nil)
	if err != nil {
		return b, err
	}
	c, err := s.Config(StandardCNP)
	if err != nil {
		return b, err
	}
	sender, err := endpoint.NewReactionPoint(reactionOf(c, int64(d.host)))
	if err != nil {
		return b, fmt.Errorf("%s: %w", d.Name, err)
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
	peak, long := d.overload(sender.Open(endpoint.FlowID{QP: 1, Dst: packet.Addr{Lo: 1}, DestQP: 1}))
	takes := float64(d.bytes*d.senders)*8e9/float64(d.WAN) + float64(s.rtt)
	return Bound{Loses: peak > float64(capacity), Long: long > takes/DrawnFull/100}, nil
}

const (
	boundPacket = 4096 // bytes
	boundCNPs   = 1000 // ns between two
)

// overload sends packets of one sender as all do, until the queue is empty. What is queued is what came, less what the WAN sent from the first packet on. It returns the
// most bytes that are queued, and for how long the queue isn't short, ns.
func (d *Drawn) overload(f *endpoint.Flow) (peak, long float64) {
	wan := float64(d.WAN) / 8e9 // bytes per ns
	now, cnp, came := 0.0, d.loop, 0.0
	for sent := boundPacket; sent <= d.bytes; sent += boundPacket {
		for ; cnp <= now; cnp += boundCNPs {
			f.SlowDown(int64(cnp))
		}
		next := now + boundPacket*8e9/f.Rate(int64(now))
		f.Sent(int64(now), boundPacket)
		came = float64(sent * d.senders)
		long += max(min(next, (came-d.short())/wan)-now, 0)
		now = next
		depth := came - now*wan
		if depth <= 0 {
			break
		}
		peak = max(peak, depth)
	}
	return peak, long + max((came-d.short())/wan-now, 0)
}
