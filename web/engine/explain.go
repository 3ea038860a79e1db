package engine

import (
	"fmt"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/sim"
)

// Explained says why a sender is or isn't notified.
type Explained struct {
	Host  int             `json:"host"`
	Flows []ExplainedFlow `json:"flows"`
	More  int             `json:"more"` // flows that aren't explained
}

// ExplainedFlow is a flow at a gateway, with what cnpgate explain says about it.
type ExplainedFlow struct {
	Gateway  string        `json:"gateway"`
	Receiver int           `json:"receiver"` // host
	Notified bool          `json:"notified"`
	Gates    []report.Gate `json:"gates"`
}

const mostExplained = 8 // flows

// Explain explains the flows of a host in a pane, at each gateway on their path that knows them.
func (e *Engine) Explain(pane, host int) (*Explained, error) {
	p := e.panes[pane]
	out, seen := &Explained{Host: host}, map[int]bool{}
	for _, f := range p.run.Config.Flows {
		if f.From != host || seen[f.To] {
			continue
		}
		if seen[f.To] = true; len(seen) > mostExplained {
			out.More++
			continue
		}
		for i := range p.gateways {
			out.Flows = append(out.Flows, p.explain(i, host, f.To)...)
		}
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("host %d sends nothing", host)
	}
	return out, nil
}

// explain asks the workers of a gateway for the flows from one host to another.
func (p *pane) explain(gateway, from, to int) (all []ExplainedFlow) {
	g := &p.gateways[gateway]
	plane := p.run.Gateway(g.Node)
	for i := range plane.Workers() {
		const most = 64
		w := plane.Worker(i)
		between := &dataplane.Between{A: sim.HostAddr(from), B: sim.HostAddr(to), Standings: make([]respond.Standing, 0, most)}
		s := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, most), Between: between}
		s.FillFrom(w)
		returns := 0
		for j := range s.Flows {
			if s.Flows[j].Key.Src != between.A {
				returns++
			}
		}
		for j := range s.Flows {
			f := &s.Flows[j]
			if f.Key.Src != between.A {
				continue
			}
			x := report.Explained{Config: g.Config, Policy: plane.Policy(), Flow: f, Standing: &between.Standings[j], Returns: returns}
			x.Last, x.Held = last(w.Notifications(), f), last(w.SuppressedNotifications(), f)
			gates := x.Gates()
			all = append(all, ExplainedFlow{g.Name, to, x.Notified() && report.FirstStop(gates) < 0, gates})
		}
	}
	return all
}

// last is the last record about a flow, nil if there is none.
func last(h *notify.History, f *dataplane.FlowRecord) (found *notify.NotificationRecord) {
	records := make([]notify.NotificationRecord, 64)
	for from, end := uint64(0), h.Recorded(); from < end; {
		n, next := h.Read(from, records)
		for i := range n {
			if r := &records[i]; r.Key == f.Key && r.Flow == f.Flow {
				one := *r
				found = &one
			}
		}
		from = next
	}
	return found
}
