package report

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
)

// UnresponsiveSender is a sender that doesn't react to notifications.
type UnresponsiveSender struct {
	IP   netip.Addr `json:"source_ip"`
	VLAN []uint16   `json:"vlan,omitempty"` // VID of each tag of its flows, the outer one first
	Port string     `json:"port"`           // by which its flows leave
}

// unresponsive lists the senders of a dataplane that don't react to notifications.
func unresponsive(c *config.Config, d *dataplane.Dataplane) (all []UnresponsiveSender) {
	senders, _ := d.Unresponsive()
	for i := range senders {
		var k flowtable.Key
		k.SetScope(senders[i].Host.Scope)
		var f Flow
		f.setPlace(&k)
		all = append(all, UnresponsiveSender{senders[i].Host.Netip(), f.VLAN, c.Ports[senders[i].Port].Name})
	}
	return all
}
