package engine

// Frame is what has changed since the last frame of the page.
type Frame struct {
	Now   int64             `json:"now"` // ns
	Ended bool              `json:"ended"`
	Panes [Panes]*PaneFrame `json:"panes"`
}

// PaneFrame is the part of one response.
type PaneFrame struct {
	Ended      bool       `json:"ended"`
	Unfinished int        `json:"unfinished"` // flows
	Samples    Samples    `json:"samples"`
	Queues     []int64    `json:"queues"` // bytes in the gateways' WAN queues, as Setup.Gateways
	Paced      []int64    `json:"paced"`  // bytes that each of these gateways holds back
	Fabric     []int64    `json:"fabric"` // bytes in the longest queue of a switch, by site
	Flying     [][2]int64 `json:"flying"` // bytes on the spans, from A to B and back
	Notices    []Notice   `json:"notices"`
	More       int        `json:"more"` // notifications that aren't listed
}

// Samples are the new samples, by series.
type Samples struct {
	First    int       `json:"first"` // number of the first one, from 0; its time is (First + 1) times the sample time
	Depth    [][]int64 `json:"depth"` // by port
	Fair     [][]int64 `json:"fair"`  // by port
	Switch   []int64   `json:"switch"`
	Rates    [][]int64 `json:"rates"` // by sender
	Notified []int64   `json:"notified"`
	CNPs     []int64   `json:"cnps"`
	Lost     []int64   `json:"lost"`
}

// Frame returns what has changed since the last call.
func (e *Engine) Frame(u *Setup) *Frame {
	f := &Frame{Now: e.now, Ended: e.Ended()}
	for i, p := range e.panes {
		f.Panes[i] = p.frame(u, u.Gateways[i])
	}
	return f
}

func (p *pane) frame(u *Setup, queues []Queue) *PaneFrame {
	p.lines = p.run.Lines(p.lines)
	f := &PaneFrame{
		Ended: p.ended, Unfinished: p.run.Progress().Unfinished, Samples: p.samples(), Fabric: make([]int64, u.Sites), Queues: []int64{}, Paced: []int64{},
		Flying: [][2]int64{}, Notices: append([]Notice{}, p.notices.next...), More: p.notices.more,
	}
	p.notices.next, p.notices.more = p.notices.next[:0], 0
	for _, q := range queues {
		f.Queues, f.Paced = append(f.Queues, p.lines[q.port].Waiting), append(f.Paced, p.lines[q.port].Paced)
	}
	for i := range p.lines {
		if from := &u.Nodes[p.lines[i].From]; from.Kind == "switch" {
			f.Fabric[from.Site] = max(f.Fabric[from.Site], p.lines[i].Waiting)
		}
	}
	for _, s := range u.Spans {
		forth, back := &p.lines[2*s.link], &p.lines[2*s.link+1]
		if forth.From != s.A {
			forth, back = back, forth
		}
		f.Flying = append(f.Flying, [2]int64{forth.Flying, back.Flying})
	}
	return f
}

// samples are those that the page doesn't have yet.
func (p *pane) samples() Samples {
	s := p.run.Series()
	from := p.sampled
	p.sampled = len(s.Gateway)
	news := func(all [][]int64) [][]int64 {
		out := make([][]int64, len(all))
		for i := range all {
			out[i] = tail(all[i], from)
		}
		return out
	}
	out := Samples{First: from, Switch: tail(s.Switch, from), Rates: news(s.Rates), Notified: tail(s.Notified, from), CNPs: tail(s.CNPs, from), Lost: tail(s.Lost, from)}
	for i := range s.Ports {
		out.Depth, out.Fair = append(out.Depth, tail(s.Ports[i].Depth, from)), append(out.Fair, tail(s.Ports[i].Fair, from))
	}
	return out
}

// tail are the values from a place on; none is an empty list, not null.
func tail(values []int64, from int) []int64 { return append([]int64{}, values[from:]...) }
