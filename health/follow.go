package health

import (
	"fmt"
	"unsafe"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// Follower passes a worker's packets to their connections: it knows by the flow's index which one that is, and by the learner which flows are a pair.
type Follower struct {
	*Table
	flows   *flowtable.Table
	learner *pairing.Learner
	egress  []int // by port: where the other direction comes in
	slots   []end // by the flow's index
	// recording gets what happens to its connection; nil: none is made.
	recording *Recording
	// Patience is how many packets of a flow pass before it is followed although its pair isn't known.
	Patience uint32
}

// FollowerSize is the number of bytes that NewFollower needs for so many connections of a flow table of a capacity.
func FollowerSize(connections, capacity int) int {
	return Size(connections) + (capacity+1)*int(unsafe.Sizeof(end(0)))
}

// NewFollower makes a follower of so many connections in mem, as New does. egress gives for each port the one that the other direction of its flows
// comes in by.
func NewFollower(mem []byte, connections int, flows *flowtable.Table, learner *pairing.Learner, egress []int) (*Follower, error) {
	if need := FollowerSize(connections, flows.Capacity()); len(mem) < need {
		return nil, fmt.Errorf("health: %d bytes of memory to follow connections: expected at least %d", len(mem), need)
	}
	t, err := New(mem, connections)
	if err != nil {
		return nil, err
	}
	behind := unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), Size(connections))
	return &Follower{Table: t, flows: flows, learner: learner, egress: egress, slots: unsafe.Slice((*end)(behind), flows.Capacity()+1)}, nil
}

// waiting marks a slot of a flow that isn't followed yet; the rest counts its packets.
const waiting = 1 << 31

// Packet follows a packet of a flow. b is the frame of which p was parsed.
func (f *Follower) Packet(flow flowtable.Ref, k *flowtable.Key, b []byte, p *packet.Parsed, now int64) {
	if flow.Index == flowtable.None || p.DestQP <= packet.GSIQP {
		return
	}
	s := f.slots[flow.Index]
	if s == 0 || s&waiting != 0 || f.at(s.id()).flows[s.side()] != flow || !f.at(s.id()).Paired {
		if s = f.begin(flow, k, s); s&waiting != 0 {
			return
		}
	}
	c := f.at(s.id())
	missed := c.epoch != f.epoch
	if missed {
		c.epoch = f.epoch
		c.missed()
	}
	o := Read(b, p, now)
	switch c.begins(s.side(), &o) {
	case anew:
		after := o.Time - c.Half[s.side()].Begun
		s = f.again(flow, s)
		c = f.at(s.id())
		c.Half[s.side()].after = after
	case perhaps:
		c.Half[s.side()].flags |= mayBegin
	}
	if r := f.recording; r != nil {
		r.add(s, passes, missed, o)
	}
	c.Observe(s.side(), &o)
}

// CNP follows a CNP to a host's QP, from whomever it comes. port is where it came in.
func (f *Follower) CNP(k *flowtable.Key, now int64) {
	if e := f.find(k.Dst, k.DestQP, k.Scope().Named()); e != 0 {
		f.at(e.id()).notify(e.side(), now)
		if r := f.recording; r != nil {
			r.add(e, notified, false, Packet{Time: now})
		}
	}
}

// begin finds the connection of a flow, or begins one, and returns the flow's slot.
func (f *Follower) begin(flow flowtable.Ref, k *flowtable.Key, s end) end {
	source, paired := f.learner.SourceQP(flow.Index)
	followed := s != 0 && s&waiting == 0 && f.at(s.id()).flows[s.side()] == flow
	switch {
	case k.SourceQP != 0:
		source, paired = k.SourceQP, true
	case !paired && followed:
		return s
	case !paired && uint32(s&^waiting) < f.Patience:
		if s&waiting == 0 {
			s = waiting
		}
		s++
		f.slots[flow.Index] = s
		return s
	}
	if paired && followed { // it was followed alone until now
		f.at(s.id()).used = false
	}
	s = f.join(flow, k, source, paired)
	f.slots[flow.Index] = s
	return s
}

// join is the end of the peer flow's connection that a flow comes from, or of a new one.
func (f *Follower) join(flow flowtable.Ref, k *flowtable.Key, source uint32, paired bool) end {
	scope := k.Scope().Named()
	from, to := Endpoint{k.Src, source, k.Port}, Endpoint{k.Dst, k.DestQP, k.Port}
	if int(k.Port) < len(f.egress) {
		to.Port = uint16(f.egress[k.Port])
	}
	if paired && k.SourceQP == 0 {
		if e := f.find(k.Src, source, scope); e != 0 {
			c, side := f.at(e.id()), e.side()
			if peer := &c.End[side^1]; c.Paired && peer.Addr == k.Dst && peer.QP == k.DestQP && !f.flows.Live(c.flows[side]) {
				c.flows[side] = flow
				return e
			}
		}
	}
	i := f.follow(Ends{End: [2]Endpoint{from, to}, Scope: scope}, paired)
	f.at(i).flows[0] = flow
	return end(i << 1)
}
