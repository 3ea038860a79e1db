// Package bus is a bus in virtual time, for the simulator and tests: it delivers messages after a delay, loses some, and can be cut.
package bus

import (
	"container/heap"

	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// Config describes a Bus.
type Config struct {
	Delay  int64   // ns that each message takes
	Jitter int64   // ns more at most, at random
	Loss   float64 // part of the messages that is lost
	Seed   uint64
}

// Bus delivers what is sent to all others.
type Bus struct {
	Config
	// Cut reports whether nothing passes from one member to another now; nil: everything passes.
	Cut     func(from, to int) bool
	members []func(subject string, message []byte, now int64)
	waiting messages
	number  uint64
	random  splitmix.Rand

	Messages, Bytes, Lost uint64 // delivered messages and their bytes, and lost ones
}

// New makes a bus without members.
func New(c Config) *Bus { return &Bus{Config: c, random: splitmix.New(c.Seed, 1)} }

// Attach adds a member, and returns its number.
func (b *Bus) Attach(receive func(subject string, message []byte, now int64)) int {
	b.members = append(b.members, receive)
	return len(b.members) - 1
}

// Send sends a message to all other members.
func (b *Bus) Send(from int, subject string, message []byte, now int64) {
	for to := range b.members {
		if to == from {
			continue
		}
		if b.Cut != nil && b.Cut(from, to) || b.random.Float() < b.Loss {
			b.Lost++
			continue
		}
		at := now + b.Delay
		if b.Jitter > 0 {
			at += int64(b.random.Below(uint64(b.Jitter)))
		}
		b.number++
		heap.Push(&b.waiting, delivery{at, b.number, to, subject, message})
	}
}

// Deliver delivers what arrives up to a time.
func (b *Bus) Deliver(now int64) {
	for len(b.waiting) > 0 && b.waiting[0].at <= now {
		d := heap.Pop(&b.waiting).(delivery)
		b.Messages++
		b.Bytes += uint64(len(d.message))
		b.members[d.to](d.subject, d.message, d.at)
	}
}

type delivery struct {
	at      int64
	number  uint64 // so that messages that arrive at the same time keep their order
	to      int
	subject string
	message []byte
}

type messages []delivery

func (m messages) Len() int { return len(m) }
func (m messages) Less(i, j int) bool {
	return m[i].at < m[j].at || m[i].at == m[j].at && m[i].number < m[j].number
}
func (m messages) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *messages) Push(x any)   { *m = append(*m, x.(delivery)) }
func (m *messages) Pop() any {
	last := len(*m) - 1
	d := (*m)[last]
	(*m)[last] = delivery{}
	*m = (*m)[:last]
	return d
}
