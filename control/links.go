package control

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
)

// links copies the state of each port's link to its peer, as on a plain wire: when a link fails, the peer's link goes down too, and it
// comes up again when the first one is back.
//
// A link can be slow to come up: 10GBASE-T takes some seconds, 100G optics and DACs with FEC and link training up to a minute. So only a
// link that was up can fail, and a port whose link is coming up isn't changed until it is up, or until riseTime is over. At most one port
// of a pair is held down, and the state of a held port is not copied. So two ports can't hold each other down.
type links struct {
	devices Devices
	log     zerolog.Logger
	ports   []linkState
}

// phase is the state of a port's link.
type phase uint8

const (
	unread  phase = iota // the device has not reported it
	waiting              // not up since the start
	up
	down   // was up and has failed
	held   // taken down because of the peer
	rising // released, not up yet
)

const (
	// confirmTime is how long a link must be in its new state before the peer follows: it bounds how often a peer's link changes.
	confirmTime = 100 * time.Millisecond
	// riseTime is how long a released link may take to come up before it counts as failed.
	riseTime = 90 * time.Second
)

type linkState struct {
	name  string
	peer  int
	phase phase
	since time.Time // of the phase
	seen  bool      // the link's last state as read
	at    time.Time // time of the first such reading; zero before the first look
	fixed bool      // the device can't take its link down, or is a mirror port
	stuck bool      // the device refused the last change, which was logged
}

func newLinks(c *config.Config, d Devices, log zerolog.Logger) *links {
	l := &links{devices: d, log: log, ports: make([]linkState, len(c.Ports))}
	for i := range c.Ports {
		l.ports[i] = linkState{name: c.Ports[i].Name, peer: c.Ports[i].Peer, fixed: c.Ports[i].Tap}
	}
	return l
}

// look reads every link and copies changes to the peers.
func (l *links) look(now time.Time) {
	for i := range l.ports {
		if l.ports[i].phase != held {
			l.read(i, now)
		}
	}
	for i := range l.ports {
		p := &l.ports[i]
		switch peer := &l.ports[p.peer]; {
		case p.phase == down && peer.phase == up && !peer.fixed:
			l.set(p.peer, false, now)
		case p.phase == up && peer.phase == held:
			l.set(p.peer, true, now)
		}
	}
}

// read updates a port's phase by the state of its link.
func (l *links) read(i int, now time.Time) {
	p := &l.ports[i]
	isUp, err := l.devices.LinkUp(i)
	if err != nil {
		return // the device doesn't report its link; nothing changes
	}
	first := p.at.IsZero()
	if first || isUp != p.seen {
		p.seen, p.at = isUp, now
	}
	if !first && now.Sub(p.at) < confirmTime {
		return
	}
	switch {
	case isUp && p.phase != up:
		l.enter(p, up, p.at, "The link is up.")
	case !isUp && p.phase == up:
		l.enter(p, down, p.at, "The link is down.")
	case !isUp && p.phase == rising && now.Sub(p.since) >= riseTime:
		l.enter(p, down, p.since, "The link did not come up again.")
	case p.phase == unread:
		l.enter(p, waiting, now, "The link is not up yet.")
	}
}

// problem describes why a port has no link; "" if it has one, or if its device doesn't report it.
func (l *links) problem(i int) string {
	p := &l.ports[i]
	since := p.since.UTC().Format(time.RFC3339)
	switch p.phase {
	case waiting:
		return "no link since the gateway started at " + since
	case down:
		return "no link since " + since
	case held:
		return "link taken down at " + since + ", as port " + l.ports[p.peer].name + " has none"
	case rising:
		return "no link yet: let up again at " + since
	}
	return ""
}

func (l *links) enter(p *linkState, to phase, since time.Time, message string) {
	p.phase, p.since = to, since
	l.log.Info().Str("port", p.name).Bool("up", to == up).Msg(message)
}

// release releases every link that is held down. Some devices stay in the state that they were set to after the gateway has ended, and the
// next run would mistake it for the cable's state.
func (l *links) release() {
	for i := range l.ports {
		if l.ports[i].phase != held {
			continue
		}
		if err := l.devices.SetLink(i, true); err != nil {
			l.log.Error().Err(err).Str("port", l.ports[i].name).Msg("The link could not be let up again. It was taken down because the peer's link was down.")
			continue
		}
		l.ports[i].phase = rising
	}
}

// set takes a port's link down, or releases it.
func (l *links) set(i int, on bool, now time.Time) {
	p := &l.ports[i]
	err := l.devices.SetLink(i, on)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		p.fixed = true
		l.log.Warn().Str("port", p.name).Msg("The device can't take its link down. The state of the peer's link is not passed on.")
		return
	case err != nil:
		if !p.stuck { // this would be logged several times a second
			l.log.Error().Err(err).Str("port", p.name).Bool("up", on).Msg("The link could not be set. The gateway tries again.")
		}
		p.stuck = true
		return
	}
	p.phase, p.since, p.stuck, p.at = held, now, false, time.Time{}
	if on {
		p.phase, p.seen, p.at = rising, false, now
	}
	l.log.Info().Str("port", p.name).Str("peer", l.ports[p.peer].name).Bool("up", on).Msg("The link was set to the state of the peer's link.")
}
