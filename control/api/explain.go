package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// explainedTime is how long the rates of explained flows are measured.
const explainedTime = 100 * time.Millisecond

// mostExplained bounds the flows of one answer.
const mostExplained = 256

// Explanation is the answer to GET /v1/explain.
type Explanation struct {
	Notified bool            `json:"notified" doc:"Whether the sender of one of the flows is notified: a notification was sent in the last 10 s, and no gate stops it."`
	Flows    []ExplainedFlow `json:"flows" doc:"Flows that match."`
	Gates    []report.Gate   `json:"gates,omitempty" doc:"If no flow matches: why."`
	More     bool            `json:"more" doc:"Whether there are more flows than one answer has."`
}

// ExplainedFlow is a flow, and why its sender is or isn't notified.
type ExplainedFlow struct {
	Flow
	Worker   int           `json:"worker" doc:"The worker that knows the flow."`
	Notified bool          `json:"notified" doc:"Whether the sender is notified: a notification was sent in the last 10 s, and no gate stops it."`
	Gates    []report.Gate `json:"gates" doc:"Steps of the decision, in their order."`
}

// Stop is the first gate that stops notifications; nil if none does.
func (f *ExplainedFlow) Stop() *report.Gate {
	if i := report.FirstStop(f.Gates); i >= 0 {
		return &f.Gates[i]
	}
	return nil
}

// question is a request to explain.
type question struct {
	from, to netip.Addr
	qp       *uint32 // of either end; nil: any
}

// wants reports whether the question is about a flow.
func (q *question) wants(r *dataplane.FlowRecord) bool {
	return r.Key.Src.Netip() == q.from && (q.qp == nil || r.Key.DestQP == *q.qp || r.View.State() == pairing.Confirmed && r.View.SourceQP() == *q.qp)
}

// known is a flow between the two hosts, as its worker has described it.
type known struct {
	worker   int
	flow     dataplane.FlowRecord
	standing respond.Standing
}

// explanation answers why a sender is or isn't notified.
func (s *flows) explanation(r *request) (any, error) {
	q := &question{get[netip.Addr](r, "source_ip"), get[netip.Addr](r, "destination_ip"), get[*uint32](r, "qp")}
	if q.from.Is4() != q.to.Is4() {
		return nil, failed(http.StatusBadRequest, "source_ip and destination_ip are %v and %v; expected two addresses of one IP version", q.from, q.to)
	}
	before, err := s.between(r, q)
	if err != nil {
		return nil, err
	}
	var rates rates
	for i := range before {
		rates.note(before[i].worker, &before[i].flow)
	}
	if s.wait(r.Context(), explainedTime) != nil {
		return nil, failed(http.StatusServiceUnavailable, "the gateway is stopping")
	}
	all, err := s.between(r, q)
	if err != nil {
		return nil, err
	}
	return s.explain(q, all, rates), nil
}

// between asks the workers for the flows between two hosts, in both directions.
func (s *flows) between(r *request, q *question) (all []known, err error) {
	between := &dataplane.Between{A: packet.AddrFrom(q.from), B: packet.AddrFrom(q.to), Standings: make([]respond.Standing, 0, flowsAtOnce)}
	err = s.each(r, time.Time{}, &dataplane.Snapshot{Between: between}, func(worker int, flows []dataplane.FlowRecord) (bool, error) {
		for i := range flows {
			all = append(all, known{worker, flows[i], between.Standings[i]})
		}
		return true, nil
	})
	return all, err
}

// explain answers a question from what the workers say.
func (s *flows) explain(q *question, all []known, rates rates) *Explanation {
	c, out := s.gateway.Config(), &Explanation{Flows: []ExplainedFlow{}}
	var asked []*known
	for i := range all {
		if q.wants(&all[i].flow) {
			asked = append(asked, &all[i])
		}
	}
	if len(asked) == 0 {
		out.Gates = []report.Gate{s.unknown(c, q, all)}
		return out
	}
	out.More = len(asked) > mostExplained
	asked = asked[:min(len(asked), mostExplained)]
	last := s.lastOf(asked)
	for _, k := range asked {
		rate := rates.of(k.worker, &k.flow)
		about := last[k]
		e := &report.Explained{Config: c, Policy: s.plane.Policy(), Flow: &k.flow, Standing: &k.standing, Rate: rate,
			Last: about.sent, Held: about.held}
		e.Returns, e.Apart = returns(k, all)
		for i := range s.plane.Workers() {
			e.NoSlot += s.plane.Worker(i).PairingStats().NoSlot
		}
		f := ExplainedFlow{Flow: makeFlow(s.ports[k.flow.Key.Port], &k.flow, rate), Worker: k.worker, Gates: e.Gates()}
		f.Notified = e.Notified() && f.Stop() == nil
		out.Notified = out.Notified || f.Notified
		out.Flows = append(out.Flows, f)
	}
	slices.SortStableFunc(out.Flows, func(a, b ExplainedFlow) int { return report.CompareFlows(a.Flow.Flow, b.Flow.Flow) })
	return out
}

// returns counts the flows of the opposite direction in the same VLAN or tunnel, and returns the others between the two hosts that have only that
// direction.
func returns(of *known, all []known) (n int, apart []packet.Scope) {
	f := &of.flow.Key
	in := f.Scope().At(0).Tenant()
	for i := range all {
		k := &all[i].flow.Key
		scope := k.Scope().At(0).Tenant()
		switch {
		case k.Src != f.Dst || k.Port == f.Port:
		case scope == in:
			n++
		case k.Dst == f.Src && !slices.Contains(apart, scope):
			apart = append(apart, scope)
		}
	}
	return n, slices.DeleteFunc(apart, func(s packet.Scope) bool {
		return slices.ContainsFunc(all, func(o known) bool {
			k := &o.flow.Key
			return k.Src == f.Src && k.Dst == f.Dst && k.Port == f.Port && k.Scope().At(0).Tenant() == s
		})
	})
}

// unknown is the gate at which a sender without a flow fails.
func (s *flows) unknown(c *config.Config, q *question, all []known) report.Gate {
	g := report.Gate{Name: "flow", State: report.Stops, Text: fmt.Sprintf("no packet from %v to %v has come in the last %gs", q.from, q.to, time.Duration(c.Dataplane.Aging).Seconds())}
	var qps []string
	for i := range all {
		if k := &all[i].flow.Key; k.Src.Netip() == q.from {
			qps = append(qps, fmt.Sprint(k.DestQP))
		}
	}
	refused := uint64(0)
	for i := range s.plane.Workers() {
		refused += s.plane.Worker(i).FlowStats().Refused
	}
	switch {
	case len(qps) > 0:
		slices.Sort(qps)
		g.Text = fmt.Sprintf("no flow to or from QP %d; there are flows to QP %s", *q.qp, strings.Join(slices.Compact(qps), ", "))
	case refused > 0:
		g.Reason, g.Key = counters.FlowUnknown.String(), "flows.capacity"
		g.Text = fmt.Sprintf("the flow is not in the flow table, which was full %d times when a flow came", refused)
	case len(all) > 0:
		g.Text += fmt.Sprintf("; flows of the opposite direction: %d", len(all))
	default:
		g.Text += "; cnpgate show flows lists those that pass the gateway"
	}
	return g
}

// records of notifications about a flow.
type latest struct{ sent, held *notify.NotificationRecord }

// lastOf finds the last notification about each flow, and the last one that was suppressed, as far as the workers keep them.
func (s *flows) lastOf(flows []*known) map[*known]latest {
	found := map[*known]latest{}
	for worker := range s.plane.Workers() {
		by := map[flowtable.Key]*known{}
		for _, k := range flows {
			if k.worker == worker {
				by[k.flow.Key] = k
			}
		}
		if len(by) == 0 {
			continue
		}
		w := s.plane.Worker(worker)
		for _, list := range []*notify.History{w.Notifications(), w.SuppressedNotifications()} {
			_, _ = each(list, 0, func(r *notify.NotificationRecord, _ uint64) error {
				if r == nil || by[r.Key] == nil || r.Flow != by[r.Key].flow.Flow {
					return nil
				}
				about := found[by[r.Key]]
				if r.Outcome == counters.Suppressed {
					about.held = r
				} else {
					about.sent = r
				}
				found[by[r.Key]] = about
				return nil
			})
		}
	}
	return found
}
