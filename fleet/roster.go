package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

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

// roster is the other gateways.
type roster struct {
	*core
	others map[string]*other
}

// hear notes that a member was heard.
func (r *roster) hear(h *wire.Header) *other {
	o := r.others[h.Sender]
	if o == nil { // Trust bounds their number
		o = &other{}
		r.others[h.Sender] = o
	}
	o.heardAt = r.now
	o.messages++
	return o
}

// active reports whether a member was heard lately.
func (r *roster) active(name string) bool {
	o := r.others[name]
	return o != nil && r.now-o.heardAt < silentAfter
}

// longest is the active member that has been up longest; "" if there is none.
func (r *roster) longest() (best string) {
	for name, o := range r.others {
		if o.Time != 0 && r.active(name) && (best == "" || o.UpMS > r.others[best].UpMS || o.UpMS == r.others[best].UpMS && name < best) {
			best = name
		}
	}
	return best
}

// tell sends the status of this member.
func (r *roster) tell(s status) {
	s.Heard = map[string][2]int64{}
	for name, o := range r.others {
		if o.Time != 0 && r.now-o.heardAt < silentAfter {
			s.Heard[name] = [2]int64{o.Time, r.now - o.heardAt}
		}
	}
	r.send(wire.Status, "", encode(s))
}

// takeStatus takes what a member says of itself, and reports whether the member has begun.
func (r *roster) takeStatus(o *other, body []byte) (began bool, err error) {
	var s status
	if err := json.Unmarshal(body, &s); err != nil || len(s.Version) > 64 || len(s.Heard) > 1024 {
		return false, wire.ErrRecord
	}
	if began = o.Time == 0 || s.UpMS < o.UpMS; began {
		o.roundNS = 0
	}
	if echo, ok := s.Heard[r.Name]; ok {
		if round := r.now - echo[0] - echo[1]; round >= 0 && round < silentAfter {
			o.roundNS = round
		}
	}
	s.Heard = nil
	o.status = s
	return began, nil
}

// MemberView is a member as `cnpgate show fleet` shows it.
type MemberView struct {
	Name     string `json:"name" doc:"Name of the gateway." column:"GATEWAY,Gateway"`
	Self     bool   `json:"self,omitempty" doc:"This gateway."`
	State    string `json:"member_state" doc:"active, silent (no message for 5 s) or unheard (none since the start)." column:"STATE,State,state"`
	Version  string `json:"version,omitempty" doc:"Version of the program." column:"VERSION,Version,,5"`
	UpMS     int64  `json:"up_ms" doc:"How long the gateway has been up, ms." column:"UPTIME,Up for,ms,4"`
	SilentMS int64  `json:"silent_ms" doc:"Since the last message, ms." column:"HEARD,Last heard,ms"`
	RoundUS  int64  `json:"round_us" doc:"Time of a message there and back, us; 0: not known." column:"ROUND TRIP,There and back,us"`
	Messages uint64 `json:"messages" doc:"Messages received from it."`
	Flows    int    `json:"remote_flows" doc:"Flows that it knows of others." column:"REMOTE FLOWS,Flows of others,count,3"`
	Pairs    int    `json:"pairs" doc:"Pairs that it keeps for successors." column:"PAIRS,Pairs for successors,count,2"`
	Wants    int    `json:"wants" doc:"Pairs of hosts whose flows it asks others for." column:"WANTS,Pairs of hosts asked for,count,1"`
}

// Absence says why nothing comes from a member.
func (v *MemberView) Absence() string {
	switch v.State {
	case "active":
		return "it is active, but slow"
	case "silent":
		return fmt.Sprintf("it has been silent for %v", (time.Duration(v.SilentMS) * time.Millisecond).Round(time.Second))
	}
	return "it has not been heard since the start of this gateway"
}

func (v *MemberView) set(s *status) {
	v.State, v.Version, v.UpMS, v.Flows, v.Pairs, v.Wants = "active", s.Version, s.UpMS, s.Flows, s.Pairs, s.Wants
}

// views are all gateways that may take part, by name.
func (r *roster) views(own status) (all []MemberView) {
	for name, p := range r.Trust.parties {
		if p.Host() {
			continue
		}
		v := MemberView{Name: name, State: "unheard"}
		if name == r.Name {
			v.Self = true
			v.set(&own)
		} else if o := r.others[name]; o != nil {
			v.set(&o.status)
			v.Messages, v.SilentMS, v.RoundUS = o.messages, (r.now-o.heardAt)/1e6, o.roundNS/1e3
			if r.now-o.heardAt > silentAfter {
				v.State = "silent"
			}
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b MemberView) int { return strings.Compare(a.Name, b.Name) })
	return all
}
