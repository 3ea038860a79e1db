package congestion

import "github.com/cnpgate/cnpgate/internal/packet"

// Preference is the kinds of notification that an endpoint accepts, the preferred one first. The zero value accepts none.
type Preference uint32 // preferenceBits for each kind, the first one lowest: the kind plus 1

const (
	preferenceBits = 4
	preferenceMask = 1<<preferenceBits - 1
)

var _ [32 - packet.SenderNotifications*preferenceBits]struct{} // they fit

// Prefer makes a Preference. It ignores kinds that don't go to a sender, and repetitions.
func Prefer(kinds ...packet.Notification) Preference {
	p, n := Preference(0), 0
	for _, k := range kinds {
		if int(k) < packet.SenderNotifications && !p.Accepts(k) {
			p |= Preference(k+1) << n
			n += preferenceBits
		}
	}
	return p
}

// Accepts reports whether k is among the accepted kinds.
func (p Preference) Accepts(k packet.Notification) bool {
	for ; p != 0; p >>= preferenceBits {
		if p.first() == k {
			return true
		}
	}
	return false
}

// first is the preferred kind; p accepts one.
func (p Preference) first() packet.Notification { return packet.Notification(p&preferenceMask - 1) }
