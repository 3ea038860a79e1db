//go:build linux

package netif

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
)

// lookEvery bounds how late a change is noticed if the kernel's message was lost, and is the interval between retries.
const lookEvery = 500 * time.Millisecond

// Watch calls look at once, after each of the kernel's messages about interfaces, and twice a second, until the context ends. Calls never
// overlap; they come from Watch's own goroutine. If Watch can't subscribe to the messages, it returns an error and doesn't call look.
func Watch(ctx context.Context, look func()) error {
	done := make(chan struct{})
	defer close(done)
	news := make(chan netlink.LinkUpdate, 64)
	// The content of the messages is not read: they may be late or lost. The state read from the kernel is always current.
	if err := netlink.LinkSubscribeWithOptions(news, done, netlink.LinkSubscribeOptions{ErrorCallback: func(error) {}}); err != nil {
		return fmt.Errorf("subscribing to the kernel's messages on interfaces: %w", err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		look()
		select {
		case <-ctx.Done():
		case _, open := <-news:
			if !open { // the subscription has failed: only the ticker continues
				news = nil
			}
		case <-tick.C:
		}
	}
	return nil
}

// Interface watches an interface, and stores its last state. It is for one goroutine at a time.
type Interface struct {
	name  string // the name under which to look for a successor if the interface is gone
	state State
	there bool
	// Reads from the kernel; tests replace them.
	byIndex func(int) (State, error)
	byName  func(string) (State, error)
}

// Follow follows an interface, starting with a state, even if it is renamed. Once it is unregistered, another interface of the name takes
// its place.
func Follow(s State) *Interface {
	return &Interface{name: s.Name, state: s, there: true, byName: Read, byIndex: func(index int) (State, error) { return stateOf(netlink.LinkByIndex(index)) }}
}

// State is the interface's state at the last Look; there is false if it doesn't exist.
func (i *Interface) State() (s State, there bool) { return i.state, i.there }

// Name is the interface's present name, or its last one if it was deleted.
func (i *Interface) Name() string {
	if i.there {
		return i.state.Name
	}
	return i.name
}

// Look reads the state, and returns the changes since the last call, in order, as texts for a log. gone says that the interface was deleted, or moved to
// another namespace; sockets of it don't work with its successor. unregistered says that it was unregistered since the last call, even if an interface has
// its index: one that was moved to another namespace and back keeps its index, and a new one may get the same.
func (i *Interface) Look(unregistered bool) (changes []string, gone bool) {
	if before := i.state; i.there {
		s, err := i.byIndex(before.Index)
		switch {
		case err == nil && !unregistered:
			i.state = s
			return differences(before, s), false
		case err != nil && !errors.Is(err, ErrNone) && !unregistered:
			return nil, false // the state is unknown: report no change
		}
		i.state, i.there = State{}, false
		changes, gone = []string{fmt.Sprintf("interface %s is gone", i.name)}, true
	}
	if s, err := i.byName(i.name); err == nil {
		i.state, i.there = s, true
		back := fmt.Sprintf("interface %s is back", i.name)
		if !s.On {
			back += ", but switched off"
		}
		changes = append(changes, back)
	}
	return changes, gone
}

// differences describes the changes between two states of one interface.
func differences(before, now State) (changes []string) {
	if before.Name != now.Name {
		changes = append(changes, fmt.Sprintf("interface %s is called %s now", before.Name, now.Name))
	}
	if before.MTU != now.MTU {
		changes = append(changes, fmt.Sprintf("interface %s has MTU %d now, it was %d", now.Name, now.MTU, before.MTU))
	}
	switch {
	case before.On && !now.On:
		changes = append(changes, fmt.Sprintf("interface %s is switched off", now.Name))
	case !before.On && now.On:
		changes = append(changes, fmt.Sprintf("interface %s is switched on", now.Name))
	}
	return changes
}
