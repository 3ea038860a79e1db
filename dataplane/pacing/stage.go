package pacing

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Outcome is what becomes of a frame that may have to wait.
type Outcome uint8

const (
	Goes     Outcome = iota // it doesn't wait
	Waits                   // it is to be held
	Held                    // it is held
	Dropped                 // its sender doesn't react to notifications, and as many of its frames as may wait do
	HostFull                // no space: frames of its host must leave sooner
	NoSpace                 // no space, and none of its host's frames is held
)

// Begin begins a step with a policy, nil: no more frames are held.
func (p *Pacer) Begin(policy *congestion.Pacing) {
	if p.policy = policy; policy == nil {
		p.policy = &unpaced
	}
}

// Slows reports whether any frame may have to wait; false of a nil pacer.
func (p *Pacer) Slows() bool { return p != nil && p.hosts.known+p.requests.n > 0 }

// Active reports whether the policy has frames held; false of a nil pacer.
func (p *Pacer) Active() bool { return p != nil && p.policy != &unpaced }

// Held are the frames held, and their bytes; 0 of a nil pacer.
func (p *Pacer) Held() (frames int, bytes uint64) {
	if p == nil {
		return 0, 0
	}
	return p.held, p.bytes
}

// Publish publishes what is held; it does nothing for a nil pacer.
func (p *Pacer) Publish() {
	if p != nil && (p.publishedFrames.Load() != uint64(p.held) || p.publishedBytes.Load() != p.bytes) {
		p.publishedFrames.Store(uint64(p.held))
		p.publishedBytes.Store(p.bytes)
	}
}

// Published is what Publish has published; any goroutine may call it.
func (p *Pacer) Published() (frames, bytes uint64) {
	if p == nil {
		return 0, 0
	}
	return p.publishedFrames.Load(), p.publishedBytes.Load()
}

// Arrives says whether a packet of a flow has to wait, for the pace of the host that it is for, or at a WAN port of its flow. at is the place
// of what it is slowed down as.
func (p *Pacer) Arrives(r *packet.Record, bytes uint32, flow flowtable.Ref, now int64) (at uint32, o Outcome) {
	if flow.Index == flowtable.None || r.Opcode == packet.RCAcknowledge && !p.behindResponses(flow.Index) {
		return 0, Goes
	}
	if at = p.slowedAs(r, flow, now); at == 0 || !p.waits(at, bytes, now) {
		return 0, Goes
	}
	if h := &p.hosts.of[at]; h.enforced.braked && (p.full(at, bytes) || p.late(h, now)) {
		return at, Dropped
	}
	return at, Waits
}

// Hold holds a frame that arrives has found to wait, of a class, if there is space.
func (p *Pacer) Hold(at uint32, r *packet.Record, f burst.Frame, class int, flow flowtable.Ref) Outcome {
	if p.full(at, f.Len) {
		if p.hosts.of[at].flows != 0 {
			return HostFull
		}
		return NoSpace // of other hosts: none of this flow is held
	}
	a, served := p.Accounts.Get(flow.Index), min(p.Learner.Bytes(flow.Index), longFlow)
	place := uint32(a.Paced)
	if h := &p.hosts.of[at]; h.enforced.linked {
		place = h.flows // of the one flow, even if its frames are held from before it got this Ref
	}
	place = p.hold(at, f, class, flow, place, served)
	a.Paced = uint16(place)
	if place == 0 { // for too many flows frames are held
		return NoSpace
	}
	if r.Opcode.Role() == packet.Response {
		p.flows.of[place].responses = true
	}
	return Held
}

// longFlow is the maximum of a flow's past bytes that count: flows that have sent more share the pace equally. Otherwise one of them would
// wait until another one has sent as much, which may take hours. It is above the longest flows of common workloads, so that these finish
// sooner on average.
const longFlow = 32 << 20

// behindResponses reports whether READ responses of a flow may be held. An ACK must not overtake them: the requester would consider them
// lost, and request the data again. It may overtake requests, whose PSNs are the other side's.
func (p *Pacer) behindResponses(x flowtable.Index) bool {
	a := p.Accounts.Find(x)
	return a != nil && a.Paced != 0 && p.flows.of[a.Paced].responses
}

// slowedAs returns the place of what a packet is slowed down as, 0 if that is not slowed down.
func (p *Pacer) slowedAs(r *packet.Record, flow flowtable.Ref, now int64) uint32 {
	if !p.ByFlow {
		k := hostKey(packet.Host{Addr: r.Flow.Dst, Scope: r.Flow.Scope.At(p.Port)})
		return p.hosts.find(&k)
	}
	if p.requests.n > 0 && p.Active() {
		p.takeRequests(flow, now)
	}
	return p.hosts.find(p.Accounts.Flows.Key(flow.Index))
}

// late reports whether a sender has as many frames here as may be held for brakedTime.
func (p *Pacer) late(h *pacedHost, now int64) bool {
	return float64(*p.senders.heldOf(h)) > float64(h.pace.Rate(p.policy, now))/8e9*brakedTime
}

// brakedTime is the time of a sender's braked frames that may be held, at their pace, ns.
const brakedTime = 5_000_000

// First is the place of the host whose frame is due first, and when, ns; false if no frame is held.
func (p *Pacer) First() (at uint32, due int64, any bool) {
	if p == nil || len(p.due.of) == 1 {
		return 0, 0, false
	}
	at = p.due.of[1]
	return at, p.hosts.of[at].dueAt(), true
}

// Release removes the next frame of a host, which leaves at the time now. Of a flow that has ended, the Ref is empty. braked: the frame's
// sender doesn't react to notifications.
func (p *Pacer) Release(at uint32, now int64) (f HeldFrame, flow flowtable.Ref, braked bool) {
	held, ref := p.Next(at)
	f, braked = *held, p.hosts.of[at].enforced.braked
	if last := p.leave(at, now); last {
		if a, ok := p.Accounts.Named(ref); ok {
			a.Paced = 0
		}
	}
	if !p.Accounts.Flows.Live(ref) {
		ref = flowtable.Ref{}
	}
	return f, ref, braked
}

// Brake paces a flow at a rate, bytes on the line per ns, as its sender doesn't react to notifications.
func (p *Pacer) Brake(x flowtable.Index, rate float64, now int64) {
	at := p.hosts.add(p.Accounts.Flows.Key(x), now)
	if at == 0 {
		p.count(NoSpaceForRequest)
		return
	}
	h := &p.hosts.of[at]
	if !h.enforced.linked {
		p.senders.link(at)
	}
	h.enforced.ref, h.enforced.braked = p.Accounts.Flows.Ref(x), true
	h.pace.Limit(p.policy, uint64(rate*8e9), whole, now)
}

// Unbrake ends what Brake began.
func (p *Pacer) Unbrake(k *flowtable.Key, now int64) {
	if p.hosts.known == 0 {
		return
	}
	if at := p.hosts.find(k); at != 0 && p.hosts.of[at].enforced.braked {
		p.hosts.of[at].enforced.braked = false
		p.hosts.of[at].restore(p.policy, 0, now)
		p.due.move(at)
	}
}

// Renewed gives held frames to the flow that replaces theirs in the same place of the table, with the same key: its packets must not overtake them.
// It may be the same connection, of which more packets were lost than pairing follows. a is the account of the new flow, place Paced of the
// old one's.
func (p *Pacer) Renewed(x flowtable.Index, a *account.Flow, place uint16) {
	is := a.Generation.Load()
	held := &p.flows.of[place]
	if held.ref == (flowtable.Ref{Index: x, Generation: is - 1}) { // otherwise the place has become another flow's
		a.Paced, held.ref.Generation = place, is
	}
}
