// Package sim is a network in virtual time around the gateway's real dataplane: hosts (package endpoint), switches with a shared buffer, ECN and
// PFC, links with rate, delay and loss, and gateways on the in-memory backend. The same configuration and seed give the same result, byte for
// byte. It is pure: it reads no file and no clock, starts no goroutine and logs nothing.
//
// Frames are simulated as their headers and a length. All hosts speak IPv6; host n has the address fd00::n+1 (HostAddr).
package sim

import (
	"fmt"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Kind is the kind of a node.
type Kind uint8

const (
	HostNode Kind = iota
	SwitchNode
	GatewayNode
)

// Node is one node of a network.
type Node struct {
	Name    string
	Kind    Kind
	Gateway *Gateway // of a GatewayNode
	// Switch, if not nil, replaces the network's SwitchConfig for a SwitchNode.
	Switch *SwitchConfig
}

// Gateway is a gateway's dataplane and how to run it.
type Gateway struct {
	// Dataplane is the configuration for dataplane.New, without Backends, Allocate and Ended.
	Dataplane dataplane.Config
	Burst     int   // frames for each port and direction in one exchange, 1 to 64
	Workers   int   // 0: 1
	Buffers   int   // of each worker's backend: at least as many as the dataplane can hold
	Loop      int64 // ns between two polls of the ports; at least 1
	// KnowsQPs gives the gateway the operator's map of QP pairs with all flows; otherwise it learns the sender's QP.
	KnowsQPs bool
}

// Link connects two nodes in both directions. At a gateway's end, it names the port of the dataplane; other ends have no port number.
type Link struct {
	A, B         int // nodes
	PortA, PortB int // ports of the dataplane where A or B is a gateway
	Rate         uint64
	Delay        int64   // ns, one way
	Loss         float64 // probability that a frame is lost
	// PFC makes the two ends stop each other's data instead of dropping it. The switches keep headroom for data in flight.
	PFC bool
}

// Network describes the simulated network.
type Network struct {
	Nodes    []Node
	Links    []Link
	Switch   SwitchConfig // of all switches without a configuration of their own
	Overhead int          // bytes that a frame occupies on a line beyond its length without FCS: 24 on Ethernet
	MaxFrame int          // bytes of the longest data frame, from which headroom is calculated
	Seed     uint64
	// IOAM makes each switch add its data about the link to the trace of each packet that carries one (RFC 9197), as HPCC needs it. A node
	// in front of a gateway does so for the gateway's queue.
	IOAM bool
	// MaxPackets bounds the frames in the network at one time; 0: 64 Mi. A frame takes 128 bytes of memory, with a trace or as a notification
	// 448.
	MaxPackets int
	Fleet      *Fleet   // nil: each gateway is alone
	Changes    []Change // of links' rates, by time
}

const (
	defaultMaxPackets = 64 << 20
	maxNodes          = 1 << 16
	minRate           = 100_000 // bit/s: from it on, the time of a frame fits the fixed point
	maxRoutes         = 1 << 27 // 1 GiB
)

// hostNet is the upper half of all hosts' addresses.
const hostNet = 0xfd00 << 48

// HostAddr is the address of host n, counted from 0 in the order of the nodes.
func HostAddr(n int) packet.Addr { return packet.Addr{Hi: hostNet, Lo: uint64(n) + 1} }

// HostMAC is the MAC address of host n, a locally administered one.
func HostMAC(n int) [6]byte { return [6]byte{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)} }

// CheckSize refuses a network that is too large to simulate.
func (n *Network) CheckSize() error {
	hosts := 0
	for i := range n.Nodes {
		if n.Nodes[i].Kind == HostNode {
			hosts++
		}
	}
	if len(n.Nodes) > maxNodes || hosts*len(n.Nodes) > maxRoutes {
		return fmt.Errorf("a network of %d nodes, of which %d are hosts: expected at most %d nodes, and at most %d for the product of the two numbers",
			len(n.Nodes), hosts, maxNodes, maxRoutes)
	}
	return nil
}

func (n *Network) validate() error {
	if len(n.Nodes) < 2 || len(n.Links) == 0 {
		return fmt.Errorf("a network of %d nodes and %d links: expected at least two nodes and a link", len(n.Nodes), len(n.Links))
	}
	if err := n.CheckSize(); err != nil {
		return err
	}
	links := make([]int, len(n.Nodes))
	for i := range n.Links {
		if err := n.validateLink(i); err != nil {
			return err
		}
		links[n.Links[i].A]++
		links[n.Links[i].B]++
	}
	for i := range n.Nodes {
		switch node := &n.Nodes[i]; {
		case node.Kind == HostNode && links[i] != 1:
			return fmt.Errorf("host %s has %d links, expected one", node.Name, links[i])
		case node.Kind == GatewayNode && node.Gateway == nil:
			return fmt.Errorf("gateway %s has no dataplane", node.Name)
		case node.Kind == GatewayNode && links[i] != len(node.Gateway.Dataplane.Ports):
			return fmt.Errorf("gateway %s has %d ports and %d links, expected a link a port", node.Name, len(node.Gateway.Dataplane.Ports), links[i])
		}
	}
	if err := n.validateChanges(); err != nil {
		return err
	}
	for i := range n.Nodes {
		if n.Nodes[i].Kind == SwitchNode {
			if err := n.switchOf(i).validate(); err != nil {
				return fmt.Errorf("switch %s: %w", n.Nodes[i].Name, err)
			}
		}
	}
	return nil
}

// LongLink is the delay from which on a link is one between data centres, ns: 10 km of fibre.
const LongLink = 50_000

// Sites are the data centres of the nodes, each by the number of one of its nodes. Links shorter than LongLink connect the nodes of one.
func (n *Network) Sites() []int {
	site := make([]int, len(n.Nodes))
	for i := range site {
		site[i] = i
	}
	root := func(i int) int {
		for site[i] != i {
			i = site[i]
		}
		return i
	}
	for _, l := range n.Links {
		if l.Delay < LongLink {
			site[root(l.A)] = root(l.B)
		}
	}
	for i := range site {
		site[i] = root(i)
	}
	return site
}

// switchOf is the configuration of a switch.
func (n *Network) switchOf(node int) *SwitchConfig {
	if c := n.Nodes[node].Switch; c != nil {
		return c
	}
	return &n.Switch
}

func (n *Network) validateLink(i int) error {
	l := &n.Links[i]
	switch {
	case l.A < 0 || l.B < 0 || l.A >= len(n.Nodes) || l.B >= len(n.Nodes) || l.A == l.B:
		return fmt.Errorf("link %d connects nodes %d and %d, expected two of the %d nodes", i, l.A, l.B, len(n.Nodes))
	case l.Rate < minRate:
		return fmt.Errorf("link %d has %d bit/s, expected at least %d", i, l.Rate, minRate)
	case l.Delay < 0 || !(l.Loss >= 0 && l.Loss <= 1):
		return fmt.Errorf("link %d has a delay of %d ns and a loss of %v: expected no negative delay and a probability", i, l.Delay, l.Loss)
	}
	return nil
}
