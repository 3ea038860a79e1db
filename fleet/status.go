package fleet

import (
	"encoding/json"
	"slices"

	"github.com/cnpgate/cnpgate/fleet/wire"
)

// status is the body of a message of the kind wire.Status.
type status struct {
	Version string              `json:"version"`
	UpMS    int64               `json:"up_ms"`
	Time    int64               `json:"time_ns"` // of the sender's monotonic clock
	Flows   int                 `json:"remote_flows"`
	Pairs   int                 `json:"pairs"`
	Wants   int                 `json:"wants"`
	Heard   map[string][2]int64 `json:"heard"` // of each member the Time of its last status, and how long ago that came, ns
}

// other is another gateway of the fleet, as this one knows it.
type other struct {
	status
	heardAt  int64
	roundNS  int64 // time of a message there and back, 0 if not known yet
	messages uint64
}

// hear notes that a member was heard.
func (m *Member) hear(h *wire.Header) *other {
	o := m.others[h.Sender]
	if o == nil { // Trust bounds their number
		o = &other{}
		m.others[h.Sender] = o
	}
	o.heardAt = m.now
	o.messages++
	return o
}

// tell sends the status.
func (m *Member) tell() {
	s := status{
		Version: m.Version, UpMS: (m.now - m.began) / 1e6, Time: m.now, Pairs: len(m.heirs.of), Wants: len(m.asking.own), Heard: map[string][2]int64{},
	}
	if m.Peers != nil {
		s.Flows = m.Peers.Flows()
	}
	for name, o := range m.others {
		if o.Time != 0 && m.now-o.heardAt < silentAfter {
			s.Heard[name] = [2]int64{o.Time, m.now - o.heardAt}
		}
	}
	m.send(wire.Status, "", encode(s))
}

func (o *other) takeStatus(m *Member, h *wire.Header, body []byte) error {
	var s status
	if err := json.Unmarshal(body, &s); err != nil || len(s.Version) > 64 || len(s.Heard) > 1024 {
		return wire.ErrRecord
	}
	if s.UpMS < o.UpMS && m.request.from == h.Sender && !m.request.done {
		m.request = request{}
	}
	if o.Time == 0 || s.UpMS < o.UpMS { // it has begun, perhaps anew: it needs to hear of this one at once
		o.roundNS, m.nextTell = 0, m.now
	}
	if echo, ok := s.Heard[m.Name]; ok {
		if round := m.now - echo[0] - echo[1]; round >= 0 && round < silentAfter {
			o.roundNS = round
		}
	}
	s.Heard = nil
	o.status = s
	return nil
}

// MemberView is a member as `cnpgate fleet` shows it.
type MemberView struct {
	Name     string `json:"name" doc:"Name of the gateway."`
	Self     bool   `json:"self,omitempty" doc:"This gateway."`
	State    string `json:"member_state" doc:"active, silent (no message for 5 s) or unheard (none since the start)."`
	Version  string `json:"version,omitempty" doc:"Version of the program."`
	UpMS     int64  `json:"up_ms" doc:"How long the gateway has been up, ms."`
	SilentMS int64  `json:"silent_ms" doc:"Since the last message, ms."`
	RoundUS  int64  `json:"round_us" doc:"Time of a message there and back, us; 0: not known."`
	Messages uint64 `json:"messages" doc:"Messages received from it."`
	Flows    int    `json:"remote_flows" doc:"Flows that it knows of others."`
	Pairs    int    `json:"pairs" doc:"Pairs that it keeps for successors."`
	Wants    int    `json:"wants" doc:"Pairs of hosts whose flows it asks others for."`
}

// Views are all gateways that may take part, by name.
func (m *Member) Views() []MemberView {
	var all []MemberView
	for name, p := range m.Trust.parties {
		if p.Host() {
			continue
		}
		v := MemberView{Name: name, State: "unheard"}
		o := m.others[name]
		switch {
		case name == m.Name:
			v.Self, v.State, v.Version, v.UpMS, v.Pairs, v.Wants = true, "active", m.Version, (m.now-m.began)/1e6, len(m.heirs.of), len(m.asking.own)
			if m.Peers != nil {
				v.Flows = m.Peers.Flows()
			}
		case o != nil:
			v.State, v.Version, v.UpMS, v.Messages, v.Flows, v.Pairs, v.Wants = "active", o.Version, o.UpMS, o.messages, o.Flows, o.Pairs, o.Wants
			v.SilentMS, v.RoundUS = (m.now-o.heardAt)/1e6, o.roundNS/1e3
			if m.now-o.heardAt > silentAfter {
				v.State = "silent"
			}
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b MemberView) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	return all
}

// active reports whether a member was heard lately.
func (m *Member) active(name string) bool {
	o := m.others[name]
	return o != nil && m.now-o.heardAt < silentAfter
}
