package pacing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

func requestsPacer(seed uint64) *Pacer {
	p := newSized(make([]byte, size(4)), 4, 1e6, seed)
	p.Begin(&congestion.Pacing{HostRate: 1e9, Floor: 1e6, Keep: 10, Recovery: 1e6})
	return p
}

// list is what waits in a list.
func (q *requests) list(link *uint32) (all []Request) {
	for at := *link; at != 0; at = q.waiting.next[at] {
		all = append(all, q.waiting.of[at])
	}
	return all
}

// TestPaceRequestsAboutOtherFlows: whatever one sender is asked for, in forged CNPs or by gateways, a packet meets few requests, and all those
// about its flow.
func TestPaceRequestsAboutOtherFlows(t *testing.T) {
	sender, receiver := packet.Addr{Hi: 1, Lo: 7}, packet.Addr{Hi: 1, Lo: 8}
	const alike = 8 // requests about a flow, of forged ones half as many
	for name, c := range map[string]struct {
		vary func(r *Request, n uint32)
		want int
	}{
		"QPs of the sender":   {func(r *Request, n uint32) { r.sendersQP, r.QP = true, 100+n }, waitingPaceRequests},
		"QPs of receivers":    {func(r *Request, n uint32) { r.QP = 100 + n }, waitingPaceRequests},
		"receivers":           {func(r *Request, n uint32) { r.sendersQP, r.Receiver.Lo = true, uint64(n) }, waitingPaceRequests},
		"no receiver":         {func(r *Request, n uint32) { r.sendersQP, r.Receiver, r.QP = true, packet.Addr{}, 100+n }, waitingPaceRequests},
		"the same flow":       {func(*Request, uint32) {}, alike},
		"the sender's own QP": {func(r *Request, _ uint32) { r.sendersQP = true }, alike},
	} {
		for _, unverified := range []bool{false, true} {
			p := requestsPacer(0x9e3779b97f4a7c15)
			kept := 0
			for n := range uint32(2 * waitingPaceRequests) {
				r := Request{Sender: sender, Receiver: receiver, QP: 50, At: int64(n), Unverified: unverified}
				c.vary(&r, n)
				if p.requests.expect(&r) {
					kept++
				}
			}
			want := c.want
			if unverified {
				want /= 2
			}
			if kept != want || kept != p.requests.n {
				t.Errorf("%s, unverified %v: %d requests were kept, %d wait, expected %d", name, unverified, kept, p.requests.n, want)
			}
			for i := range p.requests.byName {
				if n := len(p.requests.list(&p.requests.byName[i])); n > alike {
					t.Errorf("%s, unverified %v: a packet meets %d requests, expected at most %d", name, unverified, n, alike)
				}
			}
			if genuine := (Request{Sender: sender, Receiver: receiver, QP: 50}); unverified && !p.requests.expect(&genuine) {
				t.Errorf("%s: forged CNPs leave no slot for a gateway's request", name)
			}
		}
	}
}

// TestPaceRequestsModel: requests of a name wait in their order until they are canceled or end, and no others are removed.
func TestPaceRequestsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := requestsPacer(rapid.Uint64().Draw(t, "seed")), int64(1)
		var model []Request
		draw := func(t *rapid.T) Request {
			r := Request{Sender: packet.Addr{Lo: 1}, QP: rapid.Uint32Range(2, 5).Draw(t, "QP"), sendersQP: rapid.Bool().Draw(t, "sender's"), At: now}
			r.Scope = packet.ScopeInVLAN(0, packet.MakeTag(packet.EtherTypeCTag, rapid.Uint16Range(1, 2).Draw(t, "VID")), 0)
			if !r.sendersQP || rapid.Bool().Draw(t, "receiver") {
				r.Receiver.Lo = rapid.Uint64Range(2, 4).Draw(t, "receiver's address")
			}
			return r
		}
		t.Repeat(map[string]func(*rapid.T){
			"expect": func(t *rapid.T) {
				r := draw(t)
				r.Unverified = rapid.Bool().Draw(t, "unverified")
				if now++; p.requests.expect(&r) {
					model = append(model, r)
				}
			},
			"cancel": func(t *rapid.T) {
				r, was := draw(t), len(model)
				model = slices.DeleteFunc(model, func(o Request) bool { return o.sameFlow(&r) })
				if p.requests.cancel(&r) != (len(model) < was) {
					t.Fatalf("canceled: %v", len(model) == was)
				}
			},
			"sweep": func(t *rapid.T) {
				now += rapid.Int64Range(0, paceRequestLife).Draw(t, "ns")
				for range waitingPaceRequests {
					p.requests.sweep(now)
				}
				model = slices.DeleteFunc(model, func(o Request) bool { return o.ends() <= now })
			},
			"": func(t *rapid.T) {
				all := 0
				for i := range p.requests.byName {
					all += len(p.requests.list(&p.requests.byName[i]))
				}
				if all != len(model) || p.requests.n != len(model) {
					t.Fatalf("%d requests wait, and %d are counted, expected %d", all, p.requests.n, len(model))
				}
				for _, r := range model {
					alike := func(o Request) bool { return !o.sameFlow(&r) }
					got := slices.DeleteFunc(p.requests.list(p.requests.listOf(&r)), alike)
					if want := slices.DeleteFunc(slices.Clone(model), alike); !slices.Equal(got, want) {
						t.Fatalf("%+v wait, expected %+v", got, want)
					}
				}
			},
		})
	})
}

// TestSlowedFlowsOfSenders: whatever is slowed down and forgotten, a sender's list has exactly its flows. Forgetting a flow reads no other
// than its neighbors, however many the sender has.
func TestSlowedFlowsOfSenders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := requestsPacer(rapid.Uint64().Draw(t, "seed"))
		var slowed []uint32 // the last one first
		next := uint32(2)
		t.Repeat(map[string]func(*rapid.T){
			"slow": func(t *rapid.T) {
				next++
				at := p.hosts.add(&flowtable.Key{Src: packet.Addr{Lo: rapid.Uint64Range(1, 2).Draw(t, "sender")}, DestQP: next}, 0)
				p.senders.link(at)
				slowed = append([]uint32{at}, slowed...)
			},
			"forget": func(t *rapid.T) {
				if len(slowed) == 0 {
					return
				}
				i := rapid.IntRange(0, len(slowed)-1).Draw(t, "flow")
				at := slowed[i]
				e := p.hosts.of[at].enforced
				slowed = slices.Delete(slowed, i, i+1)
				was := make([]enforcedFlow, len(p.hosts.of))
				for j := range p.hosts.of { // whoever follows another flow's link leaves the slots
					was[j] = p.hosts.of[j].enforced
					if uint32(j) != at {
						p.hosts.of[j].enforced.next = 1 << 30
					}
				}
				p.forget(at)
				for j := range p.hosts.of {
					if j == 0 || uint32(j) != e.prev && uint32(j) != at {
						p.hosts.of[j].enforced.next = was[j].next
					}
				}
			},
			"": func(t *rapid.T) {
				for sender := range uint64(3) {
					at := p.senders.flows[p.senders.bucket(packet.Host{Addr: packet.Addr{Lo: sender}})]
					for prev := uint32(0); at != 0; prev, at = at, p.hosts.of[at].enforced.next {
						if p.hosts.of[at].enforced.prev != prev {
							t.Fatalf("flow %d has %d before it, expected %d", at, p.hosts.of[at].enforced.prev, prev)
						}
					}
				}
				for _, sender := range []uint64{1, 2} {
					bucket := p.senders.bucket(packet.Host{Addr: packet.Addr{Lo: sender}})
					want := slices.DeleteFunc(slices.Clone(slowed), func(at uint32) bool { return p.senders.bucket(SenderOf(&p.hosts.of[at].key)) != bucket })
					var got []uint32
					for at := p.senders.flows[bucket]; at != 0; at = p.hosts.of[at].enforced.next {
						got = append(got, at)
					}
					if !slices.Equal(got, want) {
						t.Fatalf("sender %d has the flows %v, expected %v", sender, got, want)
					}
				}
			},
		})
	})
}
