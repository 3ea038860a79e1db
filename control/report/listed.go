package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cnpgate/cnpgate/dataplane"
)

// DefaultListed is how many flows a report lists unless the user asks for another number. One takes about 400 bytes of the report.
const DefaultListed = 1 << 16

// Flows collects flows for a report, first those that end before it is made. It keeps those with most notifications, then with most bytes, and the sums
// of the others.
type Flows struct {
	Most int // flows that the report lists; 0: DefaultListed

	kept []listed // up to twice Most
	left FlowsLeft
}

// FlowsLeft sums up the flows that a report doesn't list.
type FlowsLeft struct {
	Flows         uint64            `json:"flows"`
	Packets       uint64            `json:"packets" doc:"Packets of the flow."`
	Bytes         uint64            `json:"bytes"`
	ECNMarked     uint64            `json:"ecn_marked"`
	Unresponsive  uint64            `json:"unresponsive"` // flows whose senders don't react to notifications
	Notifications map[string]uint64 `json:"notifications"`
	QPState       map[string]uint64 `json:"qp_state"`        // flows, by the state of their source QP
	Ended         map[string]uint64 `json:"ended,omitempty"` // flows, by the reason
}

// listed is a flow with the number of its notifications.
type listed struct {
	Flow
	notified uint64
}

// before orders flows: those that are listed first come first.
func (a *listed) before(b *listed) int {
	return cmp.Or(cmp.Compare(b.notified, a.notified), cmp.Compare(b.Bytes, a.Bytes), CompareFlows(a.Flow, b.Flow), cmp.Compare(a.Ended, b.Ended))
}

// Ended adds a flow that has ended; it is a dataplane.Config.Ended.
func (f *Flows) Ended(r *dataplane.FlowRecord) {
	l := listed{Flow: MakeFlow(r)}
	for _, n := range r.Notified {
		l.notified += uint64(n)
	}
	if f.kept = append(f.kept, l); len(f.kept) > 2*f.most() {
		f.trim()
	}
}

func (f *Flows) most() int { return cmp.Or(f.Most, DefaultListed) }

// trim keeps as many flows as are listed.
func (f *Flows) trim() {
	most := f.most()
	if len(f.kept) <= most {
		return
	}
	slices.SortFunc(f.kept, func(a, b listed) int { return a.before(&b) })
	for i := most; i < len(f.kept); i++ {
		f.left.add(&f.kept[i].Flow)
	}
	clear(f.kept[most:])
	f.kept = f.kept[:most]
}

func (l *FlowsLeft) add(f *Flow) {
	if l.Flows == 0 {
		l.Notifications, l.QPState, l.Ended = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	}
	l.Flows++
	l.Packets += f.Packets
	l.Bytes += f.Bytes
	l.ECNMarked += f.ECNMarked
	if f.Unresponsive {
		l.Unresponsive++
	}
	for kind, n := range f.Notifications {
		l.Notifications[kind] += n
	}
	l.QPState[f.QPState]++
	if f.Ended != "" {
		l.Ended[f.Ended]++
	}
}

// list returns the flows that the report lists, of those collected and those that the workers know, in an order that depends only on the flows, and the
// sums of the others, nil if there are none.
func (f *Flows) list(d *dataplane.Dataplane) ([]Flow, *FlowsLeft) {
	all := Flows{Most: f.Most, kept: slices.Clone(f.kept), left: f.left}
	l := &all.left
	l.Notifications, l.QPState, l.Ended = maps.Clone(l.Notifications), maps.Clone(l.QPState), maps.Clone(l.Ended)
	for i := range d.Workers() {
		for r := range d.Worker(i).Records() {
			all.Ended(r)
		}
	}
	all.trim()
	flows := make([]Flow, len(all.kept))
	for i := range all.kept {
		flows[i] = all.kept[i].Flow
	}
	slices.SortStableFunc(flows, CompareFlows)
	if l.Flows == 0 {
		return flows, nil
	}
	return flows, l
}
