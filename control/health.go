package control

import (
	"context"
	"strings"
	"sync"
)

// cause is a cause that keeps a port from forwarding. Each is noted by a different goroutine, and ends independently.
type cause uint8

const (
	deviceCause cause = iota // reported by Devices.Watch
	linkCause                // no link
	workerCause              // a worker has stopped stepping
	causes
)

// health has the ports that don't forward, and why. Any goroutine may read and write it.
type health struct {
	mutex sync.Mutex
	ill   map[string]*[causes]string // by port; "" if the cause doesn't apply
}

// note sets the description of a cause for a port: "" if it doesn't apply.
func (h *health) note(port string, c cause, problem string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.ill == nil {
		h.ill = map[string]*[causes]string{}
	}
	if h.ill[port] == nil {
		h.ill[port] = &[causes]string{}
	}
	h.ill[port][c] = problem
}

// problems are the ports that don't forward, with all causes of each.
func (h *health) problems() map[string]string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	out := map[string]string{}
	for port, ill := range h.ill {
		var texts []string
		for _, text := range ill {
			if text != "" {
				texts = append(texts, text)
			}
		}
		if len(texts) > 0 {
			out[port] = strings.Join(texts, "; ")
		}
	}
	return out
}

// sentence capitalises a text and adds a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// watchDevices logs events of the devices until the context ends, and updates the ports' health.
func (g *gateway) watchDevices(ctx context.Context) {
	err := g.devices.Watch(ctx, func(n Notice) {
		name := g.started.Ports[n.Port].Name
		g.health.note(name, deviceCause, n.Problem)
		event := g.options.Log.Info()
		if n.Problem != "" {
			event = g.options.Log.Warn().Str("problem", n.Problem)
		}
		event.Str("port", name).Bool("healthy", n.Problem == "").Msg(sentence(n.Text))
	})
	if err != nil {
		g.options.Log.Error().Err(err).Msg("Interfaces are not watched. If one is deleted and created again, the gateway does not use it again.")
	}
}
