package control

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
)

// settleTime is how long a link may take to come up again after the gateway let it: its state says nothing meanwhile.
const settleTime = 3 * time.Second

// links passes the state of each port's link on to its peer, so that the equipment on both sides sees the wire that the gateway
// stands for: a link that goes down takes the peer's down, and gives it back when it returns. A port that is held down has no
// state of its own, or two ports would hold each other down for ever.
type links struct {
	devices Devices
	log     zerolog.Logger
	ports   []linkState
}

type linkState struct {
	name  string
	peer  int
	known bool // seen at least once
	up    bool // as last seen
	held  bool // taken down for the peer's sake
	fixed bool // the device can't be taken down
	stuck bool // the device refused the last change, and the log has it
	since time.Time
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
		p := &l.ports[i]
		if p.held || now.Before(p.since) {
			continue
		}
		up, err := l.devices.LinkUp(i)
		if err != nil {
			continue // the device can't tell; the peer keeps its state
		}
		if !p.known || up != p.up {
			l.log.Info().Str("port", p.name).Bool("up", up).Msg("link")
		}
		p.known, p.up = true, up
		if peer := &l.ports[p.peer]; peer.held == up && !peer.fixed {
			l.set(p.peer, up, now)
		}
	}
}

// release lets every link up that is held down: some devices keep what they were told when the gateway is gone, and the next run
// would take it for the cable's state.
func (l *links) release() {
	for i := range l.ports {
		if !l.ports[i].held {
			continue
		}
		if err := l.devices.SetLink(i, true); err != nil {
			l.log.Error().Err(err).Str("port", l.ports[i].name).Msg("link left down: it was taken down as the peer's was")
			continue
		}
		l.ports[i].held = false
	}
}

// set takes a port's link down, or lets it up again.
func (l *links) set(i int, up bool, now time.Time) {
	p := &l.ports[i]
	err := l.devices.SetLink(i, up)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		p.fixed = true
		l.log.Warn().Str("port", p.name).Msg("the device can't take its link down: the state of the peer's link is not passed on")
		return
	case err != nil:
		if !p.stuck { // several tries a second, for as long as it lasts
			l.log.Error().Err(err).Str("port", p.name).Bool("up", up).Msg("link not set; trying again")
		}
		p.stuck = true
		return
	}
	p.held, p.stuck = !up, false
	if up {
		p.since = now.Add(settleTime)
	}
	l.log.Info().Str("port", p.name).Str("peer", l.ports[p.peer].name).Bool("up", up).Msg("link set as the peer's")
}
