package control

import (
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/dataplane"
)

// unresponsive logs senders that don't react to notifications.
type unresponsive struct {
	log    zerolog.Logger
	found  uint64
	logged time.Time
}

const (
	unresponsiveLog    = 10 * time.Second // the least time between two lines
	unresponsiveLogged = 8                // senders in a line
)

// look logs the senders that were found since the last line.
func (u *unresponsive) look(now time.Time, plane *dataplane.Dataplane) {
	if now.Sub(u.logged) < unresponsiveLog {
		return
	}
	senders, found := plane.Unresponsive()
	if found == u.found {
		return
	}
	var latest []netip.Addr
	for i := len(senders) - 1; i >= 0 && len(latest) < min(unresponsiveLogged, int(found-u.found)); i-- {
		latest = append(latest, senders[i].Host.Netip())
	}
	u.log.Warn().Uint64("count", found-u.found).Interface("senders", latest).
		Msg("Senders don't react to notifications. Configure their NICs to obey CNPs, or pace their flows: ports[].pacing.senders of the WAN port.")
	u.found, u.logged = found, now
}
