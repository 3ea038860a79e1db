package control

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
)

// links passes the state of each port's link on to its peer, so that the equipment on both sides sees the wire that the gateway stands
// for: a link that fails takes the peer's down, and lets it up again when it is back.
//
// A link takes its time to come up: 10GBASE-T some seconds, 100G optics and DACs with FEC and link training up to a minute. So only a link
// that was up can fail, and a port whose link is coming up is left alone until it is up, or until riseTime is over. At most one port of a
// pair is held down, and a port that is held has no state of its own; so two ports can't hold each other, whatever the cables do.
type links struct {
	devices Devices
	log     zerolog.Logger
	ports   []linkState
}

// phase is where a port's link is between the cable and the gateway.
type phase uint8

const (
	waiting phase = iota // not up since the start
	up
	down   // was up and has failed
	held   // taken down for the peer's sake
	rising // let up again, not up yet
)

const (
	// confirmTime is how long a link must be seen in its new state before it is passed on: it bounds how often a peer is switched.
	confirmTime = 100 * time.Millisecond
	// riseTime is how long a link that was let up may take before it counts as failed.
	riseTime = 90 * time.Second
)

type linkState struct {
	name  string
	peer  int
	phase phase
	since time.Time // of rising
	seen  bool      // the link's last state as read
	at    time.Time // since when it was read so; zero before the first look
	fixed bool      // the device can't take its link down
	stuck bool      // the device refused the last change, and the log has it
}

func newLinks(c *config.Config, d Devices, log zerolog.Logger) *links {
	l := &links{devices: d, log: log, ports: make([]linkState, len(c.Ports))}
	for i := range c.Ports {
		l.ports[i] = linkState{name: c.Ports[i].Name, peer: c.Ports[i].Peer}
	}
	return l
}

// look reads every link and passes changes on.
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

// read moves a port to the phase that its link is in.
func (l *links) read(i int, now time.Time) {
	p := &l.ports[i]
	isUp, err := l.devices.LinkUp(i)
	if err != nil {
		return // the device can't tell; everything stays as it is
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
		l.enter(p, up, "link is up")
	case !isUp && p.phase == up:
		l.enter(p, down, "link is down")
	case !isUp && p.phase == rising && now.Sub(p.since) >= riseTime:
		l.enter(p, down, "link did not come up again")
	case first:
		l.log.Info().Str("port", p.name).Bool("up", false).Msg("link is not up yet")
	}
}

func (l *links) enter(p *linkState, to phase, message string) {
	p.phase = to
	l.log.Info().Str("port", p.name).Bool("up", to == up).Msg(message)
}

// release lets every link up that is held down: some devices keep what they were told when the gateway is gone, and the next run
// would take it for the cable's state.
func (l *links) release() {
	for i := range l.ports {
		if l.ports[i].phase != held {
			continue
		}
		if err := l.devices.SetLink(i, true); err != nil {
			l.log.Error().Err(err).Str("port", l.ports[i].name).Msg("link left down: it was taken down as the peer's was")
			continue
		}
		l.ports[i].phase = rising
	}
}

// set takes a port's link down, or lets it up again.
func (l *links) set(i int, on bool, now time.Time) {
	p := &l.ports[i]
	err := l.devices.SetLink(i, on)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		p.fixed = true
		l.log.Warn().Str("port", p.name).Msg("the device can't take its link down: the state of the peer's link is not passed on")
		return
	case err != nil:
		if !p.stuck { // several tries a second, for as long as it lasts
			l.log.Error().Err(err).Str("port", p.name).Bool("up", on).Msg("link not set; trying again")
		}
		p.stuck = true
		return
	}
	p.phase, p.since, p.stuck, p.at = held, now, false, time.Time{}
	if on {
		p.phase, p.seen, p.at = rising, false, now
	}
	l.log.Info().Str("port", p.name).Str("peer", l.ports[p.peer].name).Bool("up", on).Msg("link set as the peer's")
}
