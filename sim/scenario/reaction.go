package scenario

import (
	"fmt"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/sim"
)

// Reaction is the reaction point of a NIC, for a host whose line has a rate in bit/s: one of NICs, or a file. Of Long-haul CNP and PPFC, which use the same
// bit, it obeys the first if the NIC obeys both.
func Reaction(nic string, line int64, files Files) (c endpoint.ReactionConfig, err error) {
	const text = `{name: nic, length: 1ms, topology: {dumbbell: {senders: 1, spans: [{rate: %[2]dbps, delay: 1us}], rate: %[2]dbps}}, hosts: {nic: %[1]q}, traffic: [{incast: {}}]}`
	s, err := Parse("the NIC", fmt.Appendf(nil, text, nic, line), nil, files)
	if err != nil {
		return c, err
	}
	n, err := s.Config(LongHaulCNP)
	if err != nil {
		return c, err
	}
	return reactionOf(n, line), nil
}

// reactionOf is the reaction point of a network's first host, whose line has a rate in bit/s.
func reactionOf(n *sim.Config, line int64) endpoint.ReactionConfig {
	h := n.Host
	h.Reaction.LineRate = line
	n.EachHost(0, &h)
	return h.Reaction
}
