package dataplane

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// Border keeps notifications inside the domain (draft fast-cnp-05 5, draft proxy-03 6, draft-tian 9): what comes in by a WAN port
// must be from a known source, what leaves by one must be for a member. A nil Border lets everything pass, and standard CNPs
// always pass, as they are the receivers' own.
type Border struct {
	members, sources *prefix.Table[struct{}]
}

// NewBorder makes the policy of a domain.
func NewBorder(members, sources []netip.Prefix) *Border {
	return &Border{members: set(members), sources: set(sources)}
}

func set(prefixes []netip.Prefix) *prefix.Table[struct{}] {
	entries := make([]prefix.Entry[struct{}], len(prefixes))
	for i, p := range prefixes {
		entries[i].Prefix = p
	}
	return prefix.New(entries)
}

// stops tells whether a notification that came in by a port of the given role ends here, and as what it counts. What comes in by
// a fabric port leaves by a WAN port. An impostor, whose address a table would take for an IPv4 host's, is from and for nobody.
func (b *Border) stops(role Role, note packet.Notification, p *packet.Parsed) (Counter, bool) {
	if b == nil || note == packet.StandardCNP {
		return 0, false
	}
	if role == WAN {
		_, known := b.sources.Lookup(p.Src)
		return DroppedBorderIn, !known || impostor(p)
	}
	_, member := b.members.Lookup(p.Dst)
	return DroppedBorderOut, !member || impostor(p)
}
