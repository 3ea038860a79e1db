package health

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// class is what queues and lossless priorities tell data apart by, on the way to a host.
type class struct {
	to   netip.Addr
	dscp uint8
}

// carried is of the packets of a class, and how many of them were lost.
type carried struct{ packets, lost uint64 }

// classify counts what an end sends, and what comes back to its READs.
func (b *Builder) classify(to, from netip.Addr, h *Half) {
	add := func(m class, packets, lost uint64) {
		if b.classes[m] == nil {
			b.classes[m] = &carried{}
		}
		b.classes[m].packets += packets
		b.classes[m].lost += lost
	}
	lost := h.LostUpstream + h.LostDownstream - min(h.lostBack, h.LostDownstream)
	switch {
	case h.Goodput > 0:
		add(class{to, h.dscp[0]}, h.Requests.Packets, lost)
	case h.ReadGoodput > 0:
		add(class{from, h.dscp[1]}, h.Responses.Packets, lost+h.lostBack)
	}
}

// spared says which other data to the same host lost nothing, though of so many packets as many as enough would be lost of those of a class.
func (b *Builder) spared(m class) string {
	const enough = 8
	lossy := b.classes[m]
	if lossy == nil {
		return ""
	}
	var others []string
	for o, n := range b.classes {
		if o.to == m.to && o.dscp != m.dscp && n.lost == 0 && n.packets*lossy.lost >= enough*lossy.packets {
			others = append(others, fmt.Sprint(o.dscp))
		}
	}
	if len(others) == 0 {
		return ""
	}
	slices.Sort(others)
	return fmt.Sprintf("; it has DSCP %d, and what goes to %v with DSCP %s loses nothing: not all have the lossless priority", m.dscp, m.to, strings.Join(others, " or "))
}
