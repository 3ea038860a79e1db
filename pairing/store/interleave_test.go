//go:build interleave

package store

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/interleave"
)

// interleaved is a store with a slot on side 0 and two on side 1, each with a flow.
func interleaved() (s *Store, slots [3]Slot) {
	s = newStore(8)
	g := s.Make(&Key{}, 1)
	for i := range slots {
		slots[i], _ = s.Empty(g, min(i, 1), 0, func(Ref) bool { return false })
		slots[i].Occupy(flowRef(i), 0, 0, 0)
	}
	return s, slots
}

func flowRef(i int) Ref { return MakeRef(0, 1, uint32(i+1)) }

// TestInterleaveSlot: a worker gives a slot to another flow, under the lock, while the worker of the first flow publishes PSNs and ends the flow. The other flow has the
// slot then, and none of the first one's PSNs.
func TestInterleaveSlot(t *testing.T) {
	interleave.Check(t, false, func() ([]func(), func() string) {
		_, slots := interleaved()
		slot, old := slots[0], slots[0].Lease()
		next := MakeRef(1, 1, 9)
		return []func(){
				func() {
					mine := slot
					mine.PublishSent(old, MakeSent(5, 9, old))
					mine.PublishAck(old, MakeAck(7, old))
					mine.Vacate(flowRef(0))
				},
				func() {
					mine := slot
					mine.Vacate(flowRef(0))
					mine.Occupy(next, 0, 0, 0)
				},
			}, func() string {
				if slot.Ref() != next || slot.Group().Flows(0) != 1 || slot.Sent().Valid() || slot.Ack().Valid() {
					return fmt.Sprintf("flow %#x of %d has the slot with PSNs %#x and %#x, expected %#x of 1, without PSNs", slot.Ref(), slot.Group().Flows(0), slot.Sent(), slot.Ack(), next)
				}
				lease := slot.Lease()
				slot.PublishSent(lease, MakeSent(50, 90, lease))
				slot.PublishAck(lease, MakeAck(70, lease))
				if !slot.Sent().Valid() || !slot.Ack().Valid() {
					return "the other flow can't publish its PSNs"
				}
				return ""
			}
	})
}

// TestInterleaveLink: a worker pairs a flow with another peer flow, under the lock, while the flow's own worker removes the link to the peer flow that has gone. The new
// link stays.
func TestInterleaveLink(t *testing.T) {
	interleave.Check(t, false, func() ([]func(), func() string) {
		_, slots := interleaved()
		flow, gone, peer := slots[0], slots[1], slots[2]
		flow.Pair(&gone, false)
		gone.PublishSent(gone.Lease(), 0)
		return []func(){
				func() {
					mine := flow
					if l := mine.Link(); l != 0 {
						if _, ok := mine.LinkedPeer(l); !ok {
							mine.ChangeLink(l, 0)
						}
					}
				},
				func() {
					mine, other := flow, peer
					mine.Pair(&other, false)
				},
			}, func() string {
				if to, ok := flow.LinkedPeer(flow.Link()); !ok || to.Number() != peer.Number() {
					return fmt.Sprintf("the flow is linked to slot %d (%v), expected %d", to.Number(), ok, peer.Number())
				}
				return ""
			}
	})
}

// TestInterleaveLock: of workers that try a lock, one has it at a time, and one that finds it free gets it.
func TestInterleaveLock(t *testing.T) {
	interleave.Check(t, true, func() ([]func(), func() string) {
		var lock Lock
		inside, most, got := 0, 0, 0
		try := func() {
			if lock.Try() {
				inside++
				most, got = max(most, inside), got+1
				_ = lock.held.Load() // another may come here
				inside--
				lock.Release()
			}
		}
		return []func(){try, try, try}, func() string {
			if most != 1 || got == 0 || !lock.Try() {
				return fmt.Sprintf("%d had the lock at once, %d got it", most, got)
			}
			return ""
		}
	})
}

// TestInterleavePath: while workers replace a path, a reader gets the whole path of one of them, or none.
func TestInterleavePath(t *testing.T) {
	head := func(of byte) []byte {
		return bytes.Repeat([]byte{of}, PathLen)
	}
	for _, c := range []struct {
		writers []byte
		reads   bool
	}{{[]byte{2, 3}, false}, {[]byte{2}, true}, {[]byte{2, 3}, true}} {
		interleave.Check(t, false, func() ([]func(), func() string) {
			var p Path
			p.Set(1, head(1)[:18])
			var got [PathLen]byte
			n := 0
			var threads []func()
			if c.reads {
				threads = append(threads, func() { n = p.Get(1, &got) })
			}
			for _, w := range c.writers {
				threads = append(threads, func() { p.Set(packet.Scope(1), head(w)[:18*int(w)]) })
			}
			return threads, func() string {
				if !c.reads {
					n = p.Get(1, &got)
				}
				if n > 0 && (n != 18*int(got[0]) || !bytes.Equal(got[:n], head(got[0])[:n])) {
					return fmt.Sprintf("%d bytes of a mixture of paths: %x", n, got)
				}
				if p.Get(1, &got) == 0 {
					return "no path after the writers have ended"
				}
				return ""
			}
		})
	}
}

// TestInterleaveMove: a worker moves a slot to another group, and back, under the locks, while the worker of its flow ends the flow. Then either group counts the flows that it
// has.
func TestInterleaveMove(t *testing.T) {
	interleave.Check(t, false, func() ([]func(), func() string) {
		s, slots := interleaved()
		there := s.Make(&Key{Scope: 1 << 16}, 2)
		here := slots[1].g
		return []func(){
				func() {
					mine := slots[1]
					mine.Vacate(flowRef(1))
				},
				func() {
					mine := slots[1]
					if mine.Move(there) {
						mine.Move(here)
					}
					other := slots[2]
					other.Move(there)
				},
			}, func() string {
				for _, g := range []*Group{here, there} {
					n := 0
					for i := range g.Used(1) {
						if slot, ok := s.Occupied(g, 1, i); ok && slot.Has(slot.Ref()) {
							n++
						}
					}
					if g.Flows(1) != n {
						return fmt.Sprintf("group %d has %d flows, counts %d", g.index, n, g.Flows(1))
					}
				}
				if there.Flows(1) == 0 {
					return "the other flow has not moved"
				}
				return ""
			}
	})
}
