package main

import (
	"fmt"
	"os"
)

// peerGroups are the rows of scripts/bench --peers: programs that people would use in place of cnpgate, on the same devices and captures.
func peerGroups() []group {
	of := func(flows int) traffic { return traffic{flows: flows, payload: smallest} }
	groups := []group{
		beside(row{Name: "nic64_1k_l3fwd", What: "64-byte class, IPv4", Peer: "l3fwd -E", Wanted: 1.1}, of(1<<10), startL3fwd),
		beside(row{Name: "nic64_1k_ovs", What: "64-byte class, IPv4", Peer: "OVS-DPDK", Wanted: 2.7}, of(1<<10), startOVS),
		beside(row{Name: "nic64_32k_ovs", What: "64-byte class, IPv4, 32,768 flows", Peer: "OVS-DPDK", Wanted: 2.7}, of(32<<10), startOVS),
	}
	groups[2].once = true
	return groups
}

// forwarder is another program that forwards.
type forwarder interface {
	side
	close()
}

// beside compares cnpgate with another forwarder in one row.
func beside(r row, t traffic, start func(b *bench, l *layout, t traffic) (forwarder, error)) group {
	r.Unit = "Mpps"
	return group{
		name: r.Name, rows: []row{r}, hugepages: 2.5, more: true,
		measure: func(b *bench, rows []row) error {
			l, err := b.both(r.Name, t, 1)
			if err != nil {
				return err
			}
			defer l.remove()
			b.likeNIC(l, true)
			peer, err := start(b, l, t)
			if err != nil {
				return err
			}
			defer peer.close()
			gw, err := b.gatewayOf(l, nil)
			if err != nil {
				return err
			}
			defer gw.close()
			return b.compareOne(&rows[0], gw, peer)
		},
	}
}

// found returns a file of a peer, or why its rows are left out.
func found(path, source string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: there is no %s, which is made from %s", errLeftOut, path, source)
	}
	return path, nil
}

// tuple is a flow of IPv4 as other programs know it: by its five-tuple.
type tuple struct {
	in, out             int // ports
	source, destination string
}

// UDP ports of the captures' frames.
const (
	tupleSource      = 0xc000
	tupleDestination = 4791
)

// tuples are the flows of a layout of both, and the ports that they pass.
func (t traffic) tuples() []tuple {
	var all []tuple
	for i := range t.flows {
		f, in := flowNumber(i), 0
		if i >= t.flows/2 {
			in = 1
		}
		all = append(all, tuple{
			in, 1 - in, fmt.Sprintf("10.0.%d.%d", f.source>>8, f.source&0xff), fmt.Sprintf("11.0.%d.%d", f.destination>>8, f.destination&0xff),
		})
	}
	return all
}
