package stage

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// Border is the domain filter (draft fast-cnp-05 5, draft proxy-03 6, draft-tian 9): a notification that arrives on a WAN port must have a
// known source, one that leaves by it must have a member as destination. A frame that may hide a notification (packet.MayHide) is dropped
// in both directions. Standard CNPs always pass, since receivers send them. A nil Border drops nothing.
type Border struct {
	members, sources *prefix.Table[struct{}]
	observe          bool // count what it would drop, and drop nothing
}

// NewBorder makes the policy of a domain, which drops frames, or with observe only counts them.
func NewBorder(members, sources []netip.Prefix, observe bool) *Border {
	return &Border{members: prefix.Set(members), sources: prefix.Set(sources), observe: observe}
}

// Stops reports whether to drop a frame that arrived on a port of the given role, and under which counter: a notification that may not
// cross, or a frame that may hide one, whatever its addresses. Frames from a fabric port leave by a WAN port. b is the frame.
func (d *Border) Stops(role Role, note packet.Notification, b []byte, p *packet.Parsed, c *packet.CodePoints) (counters.Counter, bool) {
	switch {
	case d == nil:
		return 0, false
	case note == packet.NotANotification, note == packet.StandardCNP:
		return unclassified(role), packet.MayHide(b, p, c)
	case role == WAN:
		return counters.DroppedBorderIn, !d.From(p)
	}
	return counters.DroppedBorderOut, !d.to(b, p)
}

// OnlyObserves reports whether the filter lets a frame pass that it stops, and then counts it.
func (d *Border) OnlyObserves(c *counters.Ports, port int, reason counters.Counter) bool {
	if d.observe {
		c.Add(port, counters.BorderObservedFirst+reason-counters.DroppedBorderIn, 1)
	}
	return d.observe
}

func unclassified(role Role) counters.Counter {
	if role == WAN {
		return counters.DroppedBorderUnclassifiedIn
	}
	return counters.DroppedBorderUnclassifiedOut
}

// From reports whether a notification has a known source. An IPv4-mapped address, which a table would confuse with an IPv4 host's, never
// matches, as source or destination.
func (d *Border) From(p *packet.Parsed) bool {
	_, known := d.sources.Lookup(p.Src)
	return known && !p.IPv4Mapped()
}

// to reports whether a notification is for a member. If the member would forward it to another host, it isn't.
func (d *Border) to(b []byte, p *packet.Parsed) bool {
	_, member := d.members.Lookup(p.Dst)
	return member && !p.IPv4Mapped() && !packet.SourceRouted(b, p)
}
