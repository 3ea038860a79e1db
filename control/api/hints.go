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
	publishEvery = 200 * time.Millisecond // least time between two maps: for each, workers go through all flows
)

// direction is what the packets of one direction of a connection show.
type direction struct {
	source, destination netip.Addr
	destinationQP       uint32
	tags, tunnel        string
}

// directions are the two directions of a pair, each with its source QP.
func directions(p config.QPPair) [2]sourced {
	return [2]sourced{
		{direction{p.Source, p.Destination, p.DestinationQP, p.Tags, p.Tunnel}, p.SourceQP},
		{direction{p.Destination, p.Source, p.SourceQP, p.Tags, p.Tunnel}, p.DestinationQP},
	}
}

// sourced is a direction with its source QP.
type sourced struct {
	direction
	sourceQP uint32
}

// hints are the hints of host agents since the gateway's start. A hint replaces those that contradict it: QPs are reused, and an
// agent that died can't withdraw its hints. No hint contradicts the operator's map.
type hints struct {
	static  func() *pairing.QPMap // the operator's in force
	changed chan struct{}         // has a token while there is something to publish

	mutex sync.Mutex
	by    map[direction]config.QPPair // each hint under both its directions
	n     int                         // hints
	// What hosts say of their own packets, in addition.
	ofHosts map[direction]hostHint
	hosts   map[string]int // number of hints of each host
}

func newHints(static func() *pairing.QPMap) *hints {
	return &hints{
		static: static, changed: make(chan struct{}, 1), by: map[direction]config.QPPair{}, ofHosts: map[direction]hostHint{}, hosts: map[string]int{},
	}
}

// put adds a hint, and returns those that it replaces; created is false for one that exists already.
func (h *hints) put(p config.QPPair) (replaced []config.QPPair, created bool, err error) {
	for _, d := range directions(p) {
		if qp, ok := h.stated(&p, d.direction); ok && qp != d.sourceQP {
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
	if h.n+len(h.ofHosts)-len(replaced) >= maxHints {
		return nil, false, failed(http.StatusInsufficientStorage, "there are %d hints, the maximum; delete those of connections that have ended", maxHints)
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

// stated is what the operator's map says of a direction: by an entry for the scope of the hint, or by one without any.
func (h *hints) stated(p *config.QPPair, d direction) (qp uint32, ok bool) {
	m, src, dst := h.static(), packet.AddrFrom(d.source), packet.AddrFrom(d.destination)
	if scope, in := p.Scope(); in {
		if qp, ok = m.LookupIn(scope, src, dst, d.destinationQP); ok {
			return qp, true
		}
	}
	return m.Lookup(src, dst, d.destinationQP)
}

// delete withdraws the hint of a connection; false if there is none.
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

// sameConnection reports whether two pairs are the same connection, in the same or the reverse direction.
func sameConnection(a, b config.QPPair) bool {
	return a == b || a == config.QPPair{Source: b.Destination, Destination: b.Source, SourceQP: b.DestinationQP, DestinationQP: b.SourceQP, Tags: b.Tags, Tunnel: b.Tunnel}
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

// list has every hint once, sorted by source, destination and destination QP.
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
		return cmp.Or(a.Source.Compare(b.Source), a.Destination.Compare(b.Destination), cmp.Compare(a.DestinationQP, b.DestinationQP),
			cmp.Compare(a.Tags, b.Tags), cmp.Compare(a.Tunnel, b.Tunnel))
	})
	return pairs
}

// table is the map for the workers, nil without hints. Host agents choose its keys, so each map's hash has a secret random seed.
func (h *hints) table() (*pairing.QPMap, error) {
	pairs := h.hostPairs()
	for _, p := range h.list() {
		pairs = append(pairs, p.Stated())
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	return pairing.NewQPMap(pairs, rand.Uint64())
}

// Hint is a host agent's statement that two QPs are connected. Like an entry of qp_map it is valid for both directions. It is also the body of PUT /v1/hints,
// which flatObject reads.
type Hint struct {
	Source        netip.Addr `json:"source_ip" doc:"The host at one end." column:"SOURCE,,host"`
	Destination   netip.Addr `json:"destination_ip" doc:"The host at the other end." column:"DESTINATION,,host"`
	SourceQP      uint32     `json:"source_qp" minimum:"2" maximum:"16777214" doc:"QP at source_ip." column:"SOURCE_QP,,id"`
	DestinationQP uint32     `json:"destination_qp" minimum:"2" maximum:"16777214" doc:"QP at destination_ip." column:"DESTINATION_QP,,id"`
	Tags          string     `json:"tags,omitempty" doc:"VLAN tags of the connection: a VID, 0x88a8:10, two tags as 0x88a8:10/20, or none. Without tags and tunnel, the hint applies where only one VLAN or tunnel has such flows." column:"TAGS"`
	Tunnel        string     `json:"tunnel,omitempty" doc:"Tunnel of the connection, such as vxlan:5000; tags is then the VID that counts there." column:"TUNNEL"`
}

// HintsBody is the answer to GET /v1/hints.
type HintsBody struct {
	Hints     []Hint     `json:"hints" doc:"All hints about both directions of a connection."`
	Capacity  int        `json:"capacity" doc:"Maximum number of hints."`
	HostHints []HostHint `json:"host_hints" doc:"The hints of hosts about their own packets."`
}

// PutBody is the answer to PUT /v1/hints.
type PutBody struct {
	Hint     Hint   `json:"hint"`
	Replaced []Hint `json:"replaced" doc:"Hints that a new one has replaced."`
}

// DeletedBody is the answer to DELETE /v1/hints.
type DeletedBody struct {
	Deleted Hint `json:"deleted"`
}

func makeHints(pairs []config.QPPair) []Hint {
	all := make([]Hint, len(pairs))
	for i, p := range pairs {
		all[i] = Hint(p)
	}
	return all
}

func (h *hints) answerList(*request) (any, error) {
	return HintsBody{makeHints(h.list()), maxHints, h.listHosts(time.Now())}, nil
}

// answerPut is idempotent: 201 for a new hint, 200 for one that exists.
func (h *hints) answerPut(r *request) (any, error) {
	values, err := r.body(hintExpected, config.QPPairKeys...)
	if err != nil {
		return nil, err
	}
	p, err := config.ParseQPPair(values)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "%w", err)
	}
	replaced, created, err := h.put(p)
	body := PutBody{Hint(p), makeHints(replaced)}
	if created {
		return reply{http.StatusCreated, body}, err
	}
	return body, err
}

// answerDelete withdraws the hint of the connection in the query.
func (h *hints) answerDelete(r *request) (any, error) {
	values := map[string]string{}
	for key, value := range r.parameters {
		values[key] = value.(string)
	}
	p, err := config.ParseQPPair(values)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "the query: %w", err)
	}
	if !h.delete(p) {
		return nil, failed(http.StatusNotFound, "no hint that QP %d at %s is connected to QP %d at %s; GET %s lists them",
			p.SourceQP, p.Source, p.DestinationQP, p.Destination, HintsPath)
	}
	return DeletedBody{Hint(p)}, nil
}

const hintExpected = `one JSON object, such as {"source_ip":"10.1.0.1","destination_ip":"10.2.0.1","source_qp":17,"destination_qp":18}`
