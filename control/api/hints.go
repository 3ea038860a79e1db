package api

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

const (
	maxHints     = 1 << 16
	publishEvery = 200 * time.Millisecond // at most so often do workers get a new map, which costs them a look at every flow
)

// direction is what the packets of one direction of a connection show.
type direction struct {
	source, destination netip.Addr
	destinationQP       uint32
}

// directions are both of a pair, each with its source QP.
func directions(p config.QPPair) [2]struct {
	direction
	sourceQP uint32
} {
	return [2]struct {
		direction
		sourceQP uint32
	}{
		{direction{p.Source, p.Destination, p.DestinationQP}, p.SourceQP},
		{direction{p.Destination, p.Source, p.SourceQP}, p.DestinationQP},
	}
}

// hints are what host agents have said, as long as the gateway runs. Of two that contradict each other the later one stays: QPs are
// reused, and an agent that died can't take back what it said. None contradicts the operator's map.
type hints struct {
	static  map[direction]uint32
	changed chan struct{} // has a token while there is something to publish

	mutex sync.Mutex
	by    map[direction]config.QPPair // each hint under both its directions
	n     int                         // hints
}

func newHints(static []config.QPPair) *hints {
	h := &hints{static: map[direction]uint32{}, changed: make(chan struct{}, 1), by: map[direction]config.QPPair{}}
	for _, p := range static {
		for _, d := range directions(p) {
			h.static[d.direction] = d.sourceQP
		}
	}
	return h
}

// put adds a hint, and returns those that it takes the place of; created is false for one that was there.
func (h *hints) put(p config.QPPair) (replaced []config.QPPair, created bool, err error) {
	for _, d := range directions(p) {
		if qp, ok := h.static[d.direction]; ok && qp != d.sourceQP {
			return nil, false, failed(http.StatusConflict, "the source QP of packets from %s to QP %d at %s is %d by the configuration's qp_map, and the hint "+
				"would make it %d; the operator's map wins: correct the hint, or qp_map", d.source, d.destinationQP, d.destination, qp, d.sourceQP)
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, d := range directions(p) {
		old, ok := h.by[d.direction]
		if ok && sameConnection(old, p) {
			return nil, false, nil
		}
		if ok && !slices.Contains(replaced, old) {
			replaced = append(replaced, old)
		}
	}
	if h.n-len(replaced) >= maxHints {
		return nil, false, failed(http.StatusInsufficientStorage, "there are %d hints, the most there can be; delete those of connections that are over", h.n)
	}
	for _, old := range replaced {
		h.remove(old)
	}
	for _, d := range directions(p) {
		h.by[d.direction] = p
	}
	h.n++
	h.tell()
	return replaced, true, nil
}

// delete takes the hint of a connection back; false if there is none.
func (h *hints) delete(p config.QPPair) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	old, ok := h.by[directions(p)[0].direction]
	if !ok || !sameConnection(old, p) {
		return false
	}
	h.remove(old)
	h.tell()
	return true
}

// sameConnection tells whether two pairs are one, written in either direction.
func sameConnection(a, b config.QPPair) bool {
	return a == b || a == config.QPPair{Source: b.Destination, Destination: b.Source, SourceQP: b.DestinationQP, DestinationQP: b.SourceQP}
}

func (h *hints) remove(p config.QPPair) {
	for _, d := range directions(p) {
		delete(h.by, d.direction)
	}
	h.n--
}

func (h *hints) tell() {
	select {
	case h.changed <- struct{}{}:
	default: // it is known already
	}
}

// list has every hint once, by source, destination, destination QP.
func (h *hints) list() []config.QPPair {
	h.mutex.Lock()
	pairs := make([]config.QPPair, 0, h.n)
	for d, p := range h.by {
		if directions(p)[0].direction == d {
			pairs = append(pairs, p)
		}
	}
	h.mutex.Unlock()
	slices.SortFunc(pairs, func(a, b config.QPPair) int {
		return cmp.Or(a.Source.Compare(b.Source), a.Destination.Compare(b.Destination), cmp.Compare(a.DestinationQP, b.DestinationQP))
	})
	return pairs
}

// table is the map for the workers, nil for none. Host agents choose what is in it, so each map's hash has a seed that nobody knows.
func (h *hints) table() (*pairing.QPMap, error) {
	list := h.list()
	if len(list) == 0 {
		return nil, nil
	}
	pairs := make([]pairing.QPPair, len(list))
	for i, p := range list {
		pairs[i] = pairing.QPPair{
			Source: packet.AddrFrom(p.Source), Destination: packet.AddrFrom(p.Destination), SourceQP: p.SourceQP, DestinationQP: p.DestinationQP,
		}
	}
	return pairing.NewQPMap(pairs, rand.Uint64())
}
