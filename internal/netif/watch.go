//go:build linux

package netif

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
)

// Kind is what happened to an interface.
type Kind uint8

// The kinds.
const (
	Gone       Kind = iota // deleted, or moved to another namespace
	Back                   // there is an interface of the name again; its index is new
	Renamed                // it has another name, and goes on
	MTUChanged             // its MTU is another
	Off                    // switched off
	On                     // switched on
)

// Change is something that happened to an interface.
type Change struct {
	Kind   Kind
	Name   string // as Watch was given it
	Before State
	Now    State // the zero State of one that is gone
}

// String says what happened, for a log.
func (c Change) String() string {
	switch c.Kind {
	case Gone:
		return fmt.Sprintf("interface %s is gone", c.Name)
	case Back:
		return fmt.Sprintf("interface %s is back", c.Name)
	case Renamed:
		return fmt.Sprintf("interface %s is called %s now", c.Before.Name, c.Now.Name)
	case MTUChanged:
		return fmt.Sprintf("interface %s has MTU %d now, it was %d", c.Name, c.Now.MTU, c.Before.MTU)
	case Off:
		return fmt.Sprintf("interface %s is switched off", c.Name)
	}
	return fmt.Sprintf("interface %s is switched on", c.Name)
}

// lookEvery bounds how late a change is seen whose message from the kernel was lost.
const lookEvery = 500 * time.Millisecond

// Watch reports what happens to interfaces until the context ends, beginning with what has changed since their states were read. changed
// gets the number of the interface in the list; it is called from Watch's own goroutine, one call at a time.
func Watch(ctx context.Context, interfaces []State, changed func(int, Change)) error {
	w := watch{changed: changed}
	for _, s := range interfaces {
		w.watched = append(w.watched, watched{name: s.Name, state: s})
	}
	done := make(chan struct{})
	defer close(done)
	news := make(chan netlink.LinkUpdate, 64)
	// What the messages say is not read: they may be late, or lost, while the kernel's answer to a question is neither.
	if err := netlink.LinkSubscribeWithOptions(news, done, netlink.LinkSubscribeOptions{ErrorCallback: func(error) {}}); err != nil {
		return fmt.Errorf("subscribing to the kernel's messages on interfaces: %w", err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		w.look()
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-news:
			if !open { // the subscription has failed: the ticker goes on
				news = nil
			}
		case <-tick.C:
		}
	}
}

// watch is what is known of the interfaces.
type watch struct {
	watched []watched
	changed func(int, Change)
}

type watched struct {
	name  string // of which an interface is looked for once the one with the index is gone
	state State
	gone  bool
}

func (w *watch) look() {
	for i := range w.watched {
		w.lookAt(i)
	}
}

func (w *watch) lookAt(i int) {
	v := &w.watched[i]
	before := v.state
	report := func(k Kind) { w.changed(i, Change{Kind: k, Name: v.name, Before: before, Now: v.state}) }
	if !v.gone {
		s, err := byIndex(v.state.Index)
		if err == nil {
			v.state = s
			for _, k := range differences(before, s) {
				report(k)
			}
			return
		}
		if !errors.Is(err, ErrNone) {
			return // no answer is no news
		}
		v.state, v.gone = State{}, true
		report(Gone)
	}
	if s, err := Read(v.name); err == nil {
		v.state, v.gone = s, false
		report(Back)
	}
}

// differences are the changes between two states of one interface.
func differences(a, b State) (kinds []Kind) {
	if a.Name != b.Name {
		kinds = append(kinds, Renamed)
	}
	if a.MTU != b.MTU {
		kinds = append(kinds, MTUChanged)
	}
	switch {
	case a.On && !b.On:
		kinds = append(kinds, Off)
	case !a.On && b.On:
		kinds = append(kinds, On)
	}
	return kinds
}

// byIndex asks for an interface by its number, whatever it is called. The error wraps ErrNone when there is none.
func byIndex(index int) (State, error) {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
			return State{}, ErrNone
		}
		return State{}, err
	}
	a := l.Attrs()
	s := State{Index: a.Index, Name: a.Name, MTU: a.MTU}
	s.setFlags(a.RawFlags)
	return s, nil
}
