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

// Book remembers which hints were published and when they must be repeated. It belongs to one goroutine. Its work depends on what changes and what is
// due, and only Set's on the number of hints.
type Book struct {
	start    time.Time     // slices of time count from it
	lifetime time.Duration // at least
	random   func() float64
	hints    map[fleet.Hint]entry
	round    uint32                 // of Set
	gone     []fleet.Hint           // to withdraw
	fresh    []fleet.Hint           // to publish at once
	again    map[int64][]fleet.Hint // to repeat, by the slice of time; those whose entry has another slice are no longer due then
	from     int64                  // the first slice that may have hints
}

// entry is what a Book knows of a hint.
type entry struct {
	round uint32 // the last Set that had it
	due   int64  // the slice of time in which to repeat it; 0: at once
}

// slice is the unit of time in which hints are due.
const slice = 250 * time.Millisecond

// NewBook returns an empty Book for hints with this lifetime or a longer one. random returns numbers in [0, 1).
func NewBook(now time.Time, lifetime time.Duration, random func() float64) *Book {
	return &Book{start: now, lifetime: lifetime, random: random, from: 1, hints: map[fleet.Hint]entry{}, again: map[int64][]fleet.Hint{}}
}

// Lifetime is that of the present hints.
func (b *Book) Lifetime() time.Duration {
	return min(max(b.lifetime, time.Duration(len(b.hints))*3*time.Second/Rate), fleet.MaxHintLifetime)
}

// Set replaces the hints. New ones are due at once; those that are no longer there are withdrawn.
func (b *Book) Set(hints []fleet.Hint) (added, withdrawn int) {
	b.round++
	for _, h := range hints {
		e, ok := b.hints[h]
		if !ok {
			added++
			b.fresh = append(b.fresh, h)
		}
		e.round = b.round
		b.hints[h] = e
	}
	if added > 0 {
		b.gone = slices.DeleteFunc(b.gone, func(h fleet.Hint) bool { _, back := b.hints[h]; return back })
	}
	if len(b.hints) == len(hints) { // none is missing
		return added, 0
	}
	for h, e := range b.hints {
		if e.round != b.round {
			delete(b.hints, h)
			b.gone = append(b.gone, h)
			withdrawn++
		}
	}
	return added, withdrawn
}

// Next returns the messages to publish at a time, at most MessagesAtOnce: withdrawals first, then new hints, then those to repeat. The caller
// notes by Sent or Failed what has become of each.
func (b *Book) Next(now time.Time) (all []fleet.HintMessage) {
	const space = MessagesAtOnce
	lifetime := int(b.Lifetime() / time.Millisecond)
	for len(b.gone) > 0 && len(all) < space {
		n := min(len(b.gone), fleet.MaxHintsAMessage)
		all = append(all, fleet.HintMessage{Lifetime: lifetime, Withdrawn: slices.Clone(b.gone[:n])})
		b.gone = slices.Delete(b.gone, 0, n)
	}
	hints := make([]fleet.Hint, 0, min(len(b.hints), (space-len(all))*fleet.MaxHintsAMessage))
	hints = b.take(hints, &b.fresh, 0)
	for last := b.sliceOf(now); len(b.again) > 0 && b.from <= last && len(hints) < cap(hints); b.from++ {
		list := b.again[b.from]
		hints = b.take(hints, &list, b.from)
		if len(list) > 0 {
			b.again[b.from] = list
			break
		}
		delete(b.again, b.from)
	}
	for part := range slices.Chunk(hints, fleet.MaxHintsAMessage) {
		slices.SortFunc(part, compare)
		all = append(all, fleet.HintMessage{Lifetime: lifetime, Hints: part})
	}
	return all
}

// take moves hints from a list, as many as hints has space for, without those that aren't due then any more.
func (b *Book) take(hints []fleet.Hint, list *[]fleet.Hint, due int64) []fleet.Hint {
	n := 0
	for ; n < len(*list) && len(hints) < cap(hints); n++ {
		h := (*list)[n]
		if e, ok := b.hints[h]; ok && e.due == due {
			e.due = -1 // in a message
			b.hints[h] = e
			hints = append(hints, h)
		}
	}
	*list = (*list)[n:]
	return hints
}

func (b *Book) sliceOf(t time.Time) int64 { return 1 + int64(t.Sub(b.start)/slice) }

// Sent notes that a message was published. Its hints are due again after a quarter to a third of their lifetime, at random, so that hosts that
// begin together don't stay together.
func (b *Book) Sent(m *fleet.HintMessage, now time.Time) {
	third := float64(b.Lifetime()) / 3
	for _, h := range m.Hints {
		b.repeat(h, b.sliceOf(now.Add(time.Duration(third*(0.75+b.random()/4)))))
	}
}

func (b *Book) repeat(h fleet.Hint, due int64) {
	e, ok := b.hints[h]
	if !ok {
		return
	}
	e.due = due
	b.hints[h] = e
	b.again[due] = append(b.again[due], h)
	b.from = min(b.from, due)
}

// Failed notes that a message could not be published.
func (b *Book) Failed(m *fleet.HintMessage) {
	b.gone = append(b.gone, m.Withdrawn...)
	for _, h := range m.Hints {
		if e, ok := b.hints[h]; ok {
			e.due = 0
			b.hints[h] = e
			b.fresh = append(b.fresh, h)
		}
	}
}

// Repeat makes all hints due: what was published may be lost, or the gateways are others.
func (b *Book) Repeat() {
	clear(b.again)
	for h, e := range b.hints {
		if e.due != 0 {
			b.repeat(h, b.from)
		}
	}
}

// Lost forgets withdrawals that could not be published for so long that the hints have died by their lifetime.
func (b *Book) Lost() { b.gone = nil }
