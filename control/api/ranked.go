package api

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// MaxRanked bounds the rows that are kept in order to answer with the first ones: offset and limit together.
const (
	MaxRanked     = 4096
	defaultRanked = 100
	maxSenders    = 65536 // of one request in memory
)

// Sorts are the values by which flows and senders are sorted, the largest first.
var Sorts = []string{"rate", "queued", "bytes", "notifications"}

// page is a part of a sorted list.
type page struct {
	sort          string // one of Sorts; "": not sorted
	offset, limit uint64
}

// readPage reads the page of a list that is sorted by first unless the request says otherwise.
func readPage(r *request, first string) (page, error) {
	p := page{cmp.Or(get[string](r, "sort"), first), get[uint64](r, "offset"), get[uint64](r, "limit")}
	if p.sort == "" {
		return p, nil
	}
	p.limit = cmp.Or(p.limit, defaultRanked)
	if p.offset+p.limit > MaxRanked {
		return p, failed(http.StatusBadRequest, "offset and limit are %d together; expected at most %d of a sorted list", p.offset+p.limit, MaxRanked)
	}
	return p, nil
}

// ranking keeps the rows with the largest values. Those with the same value stay in the order in which they came.
type ranking[T any] struct {
	keep int
	rows []ranked[T]
	cut  bool // rows were left out
}

type ranked[T any] struct {
	value uint64
	row   T
}

// add takes a row, which it makes only if the row may stay.
func (k *ranking[T]) add(value uint64, make func() T) {
	if len(k.rows) >= 2*k.keep {
		k.trim()
	}
	if k.cut && len(k.rows) == k.keep && value <= k.rows[k.keep-1].value {
		return
	}
	k.rows = append(k.rows, ranked[T]{value, make()})
}

// trim sorts the rows, and drops those that are too many.
func (k *ranking[T]) trim() {
	slices.SortStableFunc(k.rows, func(a, b ranked[T]) int { return cmp.Compare(b.value, a.value) })
	if len(k.rows) > k.keep {
		clear(k.rows[k.keep:])
		k.rows, k.cut = k.rows[:k.keep], true
	}
}

// page returns a page, and whether there are rows behind it.
func (k *ranking[T]) page(p *page) (rows []T, more bool) {
	k.trim()
	all := k.rows[min(p.offset, uint64(len(k.rows))):]
	more = k.cut || uint64(len(all)) > p.limit
	rows = []T{}
	for i := range all[:min(p.limit, uint64(len(all)))] {
		rows = append(rows, all[i].row)
	}
	return rows, more
}

// newRanking keeps one row more than the page needs, to know whether there are others.
func newRanking[T any](p *page) *ranking[T] { return &ranking[T]{keep: int(p.offset + p.limit)} }

// chosen is the value by which flows or senders are sorted.
func chosen(sort string, rate *uint64, queued, bytes, notifications uint64) uint64 {
	switch {
	case sort == "rate" && rate != nil:
		return *rate
	case sort == "queued":
		return queued
	case sort == "bytes":
		return bytes
	case sort == "notifications":
		return notifications
	}
	return 0
}

func notifiedOf(r *dataplane.FlowRecord) (n uint64) {
	for _, of := range r.Notified {
		n += uint64(of)
	}
	return n
}

// rank answers with the flows of all workers that have the largest values.
func (s *flows) rank(r *request, f *filter) (any, error) {
	top, total := newRanking[Flow](&f.page), uint64(0)
	err := s.measured(r, f, func(_ int, c *dataplane.FlowRecord, rate *uint64) {
		total++
		top.add(chosen(f.sort, rate, c.Queued, c.Traffic.Bytes, notifiedOf(c)), func() Flow { return makeFlow(s.ports[c.Key.Port], c, rate) })
	})
	if err != nil {
		return nil, err
	}
	rows, more := top.page(&f.page)
	return FlowsBody{rows, more, total}, nil
}

// measured calls do for each flow that a filter selects, with its rate if the filter has an interval.
func (s *flows) measured(r *request, f *filter, do func(worker int, c *dataplane.FlowRecord, rate *uint64)) error {
	rates, leave, err := s.sample(r, f)
	if err != nil {
		return err
	}
	defer leave()
	return s.each(r, time.Time{}, &dataplane.Snapshot{}, func(worker int, flows []dataplane.FlowRecord) (bool, error) {
		for i := range flows {
			if c := &flows[i]; f.wants(c) {
				do(worker, c, rates.of(worker, c))
			}
		}
		return true, nil
	})
}

// Sender is a host whose flows pass the gateway, in a VLAN or tunnel. One that only acknowledges isn't a sender.
type Sender struct {
	SourceIP      netip.Addr `json:"source_ip" column:"SOURCE,Sender,host"`
	VLAN          []uint16   `json:"vlan,omitempty" column:"VLAN,VLAN or tunnel,place,3"`
	Tunnel        string     `json:"tunnel,omitempty"`
	TunnelID      uint32     `json:"tunnel_id,omitempty"`
	Flows         uint64     `json:"flows" doc:"Number of its flows." column:"FLOWS,Flows,count"`
	RateBPS       *uint64    `json:"rate_bps" doc:"Rate of its flows together, bit/s; null if it wasn't measured." column:"RATE,Rate,rate"`
	Bytes         uint64     `json:"bytes" doc:"Bytes of its flows' frames, without FCS." column:"BYTES,Bytes,bytes,1"`
	QueuedBytes   uint64     `json:"queued_bytes" doc:"Bytes of its flows that wait in a queue, as far as the workers track them." column:"QUEUED,Queued,bytes,4"`
	ECNMarked     uint64     `json:"ecn_marked" column:"MARKED,Marked packets,count,2"`
	Notifications uint64     `json:"notifications" doc:"Notifications about its flows, sent or, in observe mode, only counted." column:"NOTIFICATIONS,Notifications,count"`
	Unresponsive  bool       `json:"unresponsive,omitempty" column:"REACTS,Reacts,reacts"`
}

// SendersBody is the answer to GET /v1/senders.
type SendersBody struct {
	Senders []Sender `json:"senders" doc:"Senders that were notified."`
	Total   uint64   `json:"total" doc:"Number of senders."`
	More    bool     `json:"more" doc:"Whether there are senders behind those of this page."`
	LeftOut uint64   `json:"flows_left_out" doc:"Flows of the senders beyond the first 65536, which are not counted."`
}

// senderKey identifies a sender: tenants may have the same addresses.
type senderKey struct {
	address packet.Addr
	in      packet.Scope
}

// senders answers with the senders of all flows, those with the largest values first.
func (s *flows) senders(r *request) (any, error) {
	f, err := readFilter(r, Sorts[0])
	if err != nil {
		return nil, err
	}
	all, out := map[senderKey]*Sender{}, SendersBody{}
	err = s.measured(r, f, func(_ int, c *dataplane.FlowRecord, rate *uint64) {
		if c.Traffic.OnlyAnswers() {
			return
		}
		key := senderKey{c.Key.Src, c.Key.Scope().At(0)}
		one := all[key]
		if one == nil {
			if len(all) == maxSenders {
				out.LeftOut++
				return
			}
			one = &Sender{}
			all[key] = one
		}
		one.add(c, rate)
	})
	if err != nil {
		return nil, err
	}
	top := newRanking[senderKey](&f.page)
	for key, one := range all {
		top.add(one.value(f.sort), func() senderKey { return key })
	}
	keys, more := top.page(&f.page)
	out.Senders, out.Total, out.More = []Sender{}, uint64(len(all)), more
	for _, key := range keys {
		one := all[key]
		one.place(key)
		out.Senders = append(out.Senders, *one)
	}
	slices.SortStableFunc(out.Senders, func(a, b Sender) int {
		return cmp.Or(cmp.Compare(b.value(f.sort), a.value(f.sort)), a.SourceIP.Compare(b.SourceIP), slices.Compare(a.VLAN, b.VLAN), cmp.Compare(a.TunnelID, b.TunnelID))
	})
	return out, nil
}

// add counts a flow of the sender.
func (s *Sender) add(c *dataplane.FlowRecord, rate *uint64) {
	s.Flows++
	s.Bytes += c.Traffic.Bytes
	s.QueuedBytes += c.Queued
	s.ECNMarked += c.Marked
	s.Notifications += notifiedOf(c)
	s.Unresponsive = s.Unresponsive || c.Unresponsive
	if rate != nil {
		if s.RateBPS == nil {
			s.RateBPS = new(uint64)
		}
		*s.RateBPS += *rate
	}
}

// place sets who the sender is.
func (s *Sender) place(key senderKey) {
	var f report.Flow
	f.SetScope(key.in)
	s.SourceIP, s.VLAN, s.Tunnel, s.TunnelID = key.address.Netip(), f.VLAN, f.Tunnel, f.TunnelID
}

func (s *Sender) value(sort string) uint64 {
	return chosen(sort, s.RateBPS, s.QueuedBytes, s.Bytes, s.Notifications)
}
