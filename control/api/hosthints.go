package api

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Hints of hosts come from `cnpgate agent`, through the fleet or the socket. Each has a lifetime, and says something about packets from its source
// only: a host can't speak for the other end.

const (
	// maxHostHints bounds the hints of a host, so that one can't use up the space of all.
	maxHostHints = maxHints / 4
	// expireEvery is how late a hint dies, at most.
	expireEvery = 500 * time.Millisecond
	// localHost is the owner of hints that come through the socket.
	localHost = ""
)

// hostHint is what a host says of packets of a direction, which have no destination if the host doesn't know it.
type hostHint struct {
	sourceQP uint32
	host     string
	dies     time.Time
}

// directionOf is the direction that a host's hint is about, after a check of the hint.
func directionOf(h *fleet.Hint) (d direction, err error) {
	d = direction{h.Source.Unmap(), h.Destination.Unmap(), h.DestinationQP, h.Tags, h.Tunnel}
	switch {
	case !d.source.IsValid() || d.source.Zone() != "" || d.destination.Zone() != "":
		return d, fmt.Errorf("source_ip %v, destination_ip %v: expected addresses without a zone", h.Source, h.Destination)
	case d.destination.IsValid() && (d.destination == d.source || d.destination.Is4() != d.source.Is4()):
		return d, fmt.Errorf("destination_ip %v: expected another address than source_ip %v, of the same IP version", h.Destination, h.Source)
	case !packet.ConnectionQP(h.SourceQP) || !packet.ConnectionQP(h.DestinationQP):
		return d, fmt.Errorf("source_qp %d, destination_qp %d: expected 2 to %d", h.SourceQP, h.DestinationQP, packet.MaxQP-1)
	case h.Tags == "" && h.Tunnel == "":
		return d, nil
	}
	p, err := config.ParseQPPair(map[string]string{ // for the scope; a destination that isn't known doesn't matter for it
		"source_ip": "192.0.2.1", "destination_ip": "192.0.2.2", "source_qp": "2", "destination_qp": "2", "tags": cmp.Or(h.Tags, "none"), "tunnel": h.Tunnel,
	})
	d.tags, d.tunnel = p.Tags, p.Tunnel
	return d, err
}

// takeHost takes a host's message: all of it, or nothing. The hints of another host stay as they are.
func (h *hints) takeHost(host string, m *fleet.HintMessage, now time.Time) (taken, withdrawn int, err error) {
	about := make([]direction, 0, len(m.Hints)+len(m.Withdrawn))
	for _, list := range [...][]fleet.Hint{m.Hints, m.Withdrawn} {
		for i := range list {
			d, err := directionOf(&list[i])
			if err != nil {
				return 0, 0, failed(http.StatusBadRequest, "hint %d: %w", i+1, err)
			}
			about = append(about, d)
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	changed := false
	defer func() {
		if changed {
			h.tell()
		}
	}()
	for i, d := range about[len(m.Hints):] {
		if old, ok := h.ofHosts[d]; ok && old.host == host && old.sourceQP == m.Withdrawn[i].SourceQP {
			h.removeHost(d, old)
			withdrawn, changed = withdrawn+1, true
		}
	}
	for i, d := range about[:len(m.Hints)] {
		old, ok := h.ofHosts[d]
		switch {
		case ok && old.host != host:
			continue // until it dies
		case !ok && h.n+len(h.ofHosts) >= maxHints:
			return taken, withdrawn, failed(http.StatusInsufficientStorage, "there are %d hints, the maximum; those of connections that have ended die by their lifetime", maxHints)
		case !ok && h.hosts[host] >= maxHostHints:
			return taken, withdrawn, failed(http.StatusInsufficientStorage, "the host has %d hints, the maximum of one host", maxHostHints)
		case !ok:
			h.hosts[host]++
		}
		qp := m.Hints[i].SourceQP
		changed = changed || !ok || old.sourceQP != qp
		h.ofHosts[d] = hostHint{qp, host, now.Add(time.Duration(m.Lifetime) * time.Millisecond)}
		taken++
	}
	return taken, withdrawn, nil
}

func (h *hints) removeHost(d direction, of hostHint) {
	delete(h.ofHosts, d)
	if h.hosts[of.host]--; h.hosts[of.host] == 0 {
		delete(h.hosts, of.host)
	}
}

// expire forgets the hints of hosts whose lifetime has ended.
func (h *hints) expire(now time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	before := len(h.ofHosts)
	for d, of := range h.ofHosts {
		if !now.Before(of.dies) {
			h.removeHost(d, of)
		}
	}
	if len(h.ofHosts) != before {
		h.tell()
	}
}

// hostPairs are the hints of hosts as the workers use them, without those that contradict a hint of both directions, as that wins.
func (h *hints) hostPairs() []pairing.QPPair {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	pairs := make([]pairing.QPPair, 0, len(h.ofHosts))
	for d, of := range h.ofHosts {
		if _, ok := h.by[d]; ok {
			continue
		}
		p := config.QPPair{Source: d.source, Destination: d.destination, SourceQP: of.sourceQP, DestinationQP: d.destinationQP, Tags: d.tags, Tunnel: d.tunnel}
		s := p.Stated()
		if s.OneWay = true; !d.destination.IsValid() {
			s.Destination = packet.Addr{}
		}
		pairs = append(pairs, s)
	}
	return pairs
}

// TakeHints takes the hints of a host, and withdraws what it says has ended. The caller has checked that they are the host's, and about its own
// addresses. An error means that some or all weren't taken. Any goroutine may call it.
func (s *Server) TakeHints(host string, m *fleet.HintMessage) error {
	_, _, err := s.hints.takeHost(host, m, time.Now())
	return err
}

// HostHint is a host's hint about the packets from one of its QPs.
type HostHint struct {
	Host          string      `json:"host" doc:"Name of the host in the fleet; empty for an agent that uses the socket." column:"HOST"`
	Source        netip.Addr  `json:"source_ip" doc:"Address of the host." column:"SOURCE,,host"`
	Destination   *netip.Addr `json:"destination_ip,omitempty" doc:"The host at the other end; left out if the host doesn't know it." column:"DESTINATION,,host"`
	SourceQP      uint32      `json:"source_qp" doc:"QP of the host." column:"SOURCE_QP,,id"`
	DestinationQP uint32      `json:"destination_qp" doc:"QP that it is connected to." column:"DESTINATION_QP,,id"`
	Tags          string      `json:"tags,omitempty" doc:"VLAN tags of the connection." column:"TAGS"`
	Tunnel        string      `json:"tunnel,omitempty" doc:"Tunnel of the connection." column:"TUNNEL"`
	Remaining     int64       `json:"remaining_ms" doc:"Time until the hint dies, unless it is repeated, ms." column:"REMAINING,,ms"`
}

// listHosts has every hint of a host, sorted.
func (h *hints) listHosts(now time.Time) []HostHint {
	h.mutex.Lock()
	all := maps.Clone(h.ofHosts)
	h.mutex.Unlock()
	list := make([]HostHint, 0, len(all))
	for d, of := range all {
		v := HostHint{of.host, d.source, nil, of.sourceQP, d.destinationQP, d.tags, d.tunnel, max(of.dies.Sub(now).Milliseconds(), 0)}
		if d.destination.IsValid() {
			v.Destination = &d.destination
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b HostHint) int {
		return cmp.Or(a.Source.Compare(b.Source), cmp.Compare(a.SourceQP, b.SourceQP), cmp.Compare(a.DestinationQP, b.DestinationQP), cmp.Compare(a.Tags, b.Tags),
			cmp.Compare(a.Tunnel, b.Tunnel))
	})
	return list
}

// hostHintsRequest describes the body of POST /v1/hints in the OpenAPI document.
type hostHintsRequest struct {
	Lifetime  int               `json:"lifetime_ms,omitempty" minimum:"1000" maximum:"600000" doc:"Lifetime of hints, ms."`
	Hints     []hostHintRequest `json:"hints,omitempty" doc:"What the host says now, again or for the first time."`
	Withdrawn []hostHintRequest `json:"withdrawn,omitempty" doc:"Hints of connections that have ended."`
}

type hostHintRequest struct {
	SourceIP      netip.Addr `json:"source_ip" doc:"Address of the host."`
	DestinationIP netip.Addr `json:"destination_ip,omitempty" doc:"The host at the other end. Without it, the hint applies where exactly one flow goes from source_ip to a QP with the number destination_qp."`
	SourceQP      uint32     `json:"source_qp" minimum:"2" maximum:"16777214" doc:"QP of the host."`
	DestinationQP uint32     `json:"destination_qp" minimum:"2" maximum:"16777214" doc:"QP that it is connected to."`
	Tags          string     `json:"tags,omitempty" doc:"VLAN tags of the connection."`
	Tunnel        string     `json:"tunnel,omitempty" doc:"Tunnel of the connection."`
}

// HintsTaken is the answer to POST /v1/hints.
type HintsTaken struct {
	Taken     int `json:"taken" doc:"Number of hints that were taken."`
	Withdrawn int `json:"withdrawn" doc:"Number of hints that were withdrawn."`
}

const hostHintsExpected = `one JSON object, such as {"lifetime_ms":10000,"hints":[{"source_ip":"10.1.0.1","source_qp":17,"destination_qp":18}]}`

// answerPost takes the hints of an agent on this machine: whoever may use the socket speaks for any address.
func (h *hints) answerPost(r *request) (any, error) {
	body, err := io.ReadAll(http.MaxBytesReader(r.to, r.Body, wire.MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, failed(http.StatusRequestEntityTooLarge, "the body is longer than %d bytes; expected %s", wire.MaxBody, hostHintsExpected)
	}
	if err != nil {
		return nil, failed(http.StatusBadRequest, "the body: %w", err)
	}
	m, err := fleet.DecodeHints(body)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "the body: %w; expected %s", err, hostHintsExpected)
	}
	taken, withdrawn, err := h.takeHost(localHost, m, time.Now())
	return HintsTaken{taken, withdrawn}, err
}
