package control

import (
	"context"
	"sync"
)

// health is which ports don't forward, and why. It is read and written by any goroutine.
type health struct {
	mutex sync.Mutex
	ill   map[string]string // port -> what happened to it
}

// note takes a notice of a port.
func (h *health) note(port string, n Notice) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if n.Healthy {
		delete(h.ill, port)
		return
	}
	if h.ill == nil {
		h.ill = map[string]string{}
	}
	h.ill[port] = n.Text
}

// problems are the ports that don't forward, with what happened to each.
func (h *health) problems() map[string]string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	out := make(map[string]string, len(h.ill))
	for port, text := range h.ill {
		out[port] = text
	}
	return out
}

// watchDevices logs what happens to the devices until the context ends, and keeps the ports' health.
func (g *gateway) watchDevices(ctx context.Context) {
	err := g.devices.Watch(ctx, func(n Notice) {
		name := g.config.Ports[n.Port].Name
		g.health.note(name, n)
		event := g.options.Log.Warn()
		if n.Healthy {
			event = g.options.Log.Info()
		}
		event.Str("port", name).Bool("healthy", n.Healthy).Msg(n.Text)
	})
	if err != nil {
		g.options.Log.Error().Err(err).Msg("interfaces are not watched: one that is deleted and made again isn't used again")
	}
}
