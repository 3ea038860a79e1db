package agent

import (
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/fleet"
)

// Rate bounds the hints that are repeated in a second: with more hints than fit into a third of their lifetime, the lifetime is longer.
const Rate = 2000

// MessagesAtOnce bounds what Next returns.
const MessagesAtOnce = 16

// Book remembers which hints were published and when they must be repeated. It belongs to one goroutine.
type Book struct {
	lifetime time.Duration // at least
	random   func() float64
	hints    map[fleet.Hint]time.Time // when each must be published, or again
	gone     []fleet.Hint             // to withdraw
}

// NewBook returns an empty Book for hints with this lifetime or a longer one. random returns numbers in [0, 1).
func NewBook(lifetime time.Duration, random func() float64) *Book {
	return &Book{lifetime: lifetime, random: random, hints: map[fleet.Hint]time.Time{}}
}

// Lifetime is that of the present hints.
func (b *Book) Lifetime() time.Duration {
	return min(max(b.lifetime, time.Duration(len(b.hints))*3*time.Second/Rate), fleet.MaxHintLifetime)
}

// Len is the number of hints.
func (b *Book) Len() int { return len(b.hints) }

// Set replaces the hints. New ones are due at once; those that are no longer there are withdrawn.
func (b *Book) Set(hints []fleet.Hint) (added, withdrawn int) {
	now := make(map[fleet.Hint]time.Time, len(hints))
	for _, h := range hints {
		due, ok := b.hints[h]
		if !ok {
			added++
		}
		now[h] = due // the zero time: at once
	}
	before := len(b.gone)
	for h, due := range b.hints {
		if _, ok := now[h]; !ok && !due.IsZero() {
			b.gone = append(b.gone, h)
		}
	}
	b.gone = slices.DeleteFunc(b.gone, func(h fleet.Hint) bool { _, back := now[h]; return back })
	b.hints = now
	return added, max(len(b.gone)-before, 0)
}

// Next returns the messages to publish at a time, at most MessagesAtOnce: withdrawals first, then new hints, then those to repeat. The caller
// notes by Sent which it has published.
func (b *Book) Next(now time.Time) (all []fleet.HintMessage) {
	const space = MessagesAtOnce * fleet.MaxHintsAMessage
	gone := b.gone[:min(len(b.gone), space)]
	var added, again []fleet.Hint
	for h, due := range b.hints {
		switch {
		case due.IsZero():
			added = append(added, h)
		case !due.After(now):
			again = append(again, h)
		}
	}
	hints := append(added, again...)
	hints = hints[:min(len(hints), space-len(gone))]
	lifetime := int(b.Lifetime() / time.Millisecond)
	for part := range slices.Chunk(gone, fleet.MaxHintsAMessage) {
		all = append(all, fleet.HintMessage{Lifetime: lifetime, Withdrawn: slices.Clone(part)})
	}
	for part := range slices.Chunk(hints, fleet.MaxHintsAMessage) {
		slices.SortFunc(part, compare)
		all = append(all, fleet.HintMessage{Lifetime: lifetime, Hints: part})
	}
	return all[:min(len(all), MessagesAtOnce)]
}

// Sent notes that a message was published. Its hints are due again after a quarter to a third of their lifetime, at random, so that hosts that
// begin together don't stay together.
func (b *Book) Sent(m *fleet.HintMessage, now time.Time) {
	b.gone = slices.Delete(b.gone, 0, len(m.Withdrawn))
	for _, h := range m.Hints {
		third := float64(b.Lifetime()) / 3
		b.hints[h] = now.Add(time.Duration(third * (0.75 + b.random()/4)))
	}
}

// Repeat makes all hints due: what was published may be lost, or the gateways are others.
func (b *Book) Repeat(now time.Time) {
	for h, due := range b.hints {
		if due.After(now) {
			b.hints[h] = now
		}
	}
}

// Lost forgets withdrawals that could not be published for so long that the hints have died by their lifetime.
func (b *Book) Lost() { b.gone = nil }
