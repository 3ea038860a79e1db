//go:build linux

package netif

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestRead(t *testing.T) {
	s, err := Read("lo")
	if err != nil || s.Name != "lo" || s.Index < 1 || s.MTU < 1500 || !s.Loopback {
		t.Errorf("lo is %+v, %v", s, err)
	}
	if _, err := Read("no-such-if"); !errors.Is(err, ErrNone) {
		t.Errorf("an interface that isn't there: %v", err)
	}
	if _, err := Read("a-name-of-16-chars"); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("a name that is too long: %v", err)
	}
}

func TestDifferences(t *testing.T) {
	a := State{Index: 3, Name: "eth0", MTU: 1500, On: true, Running: true}
	for _, c := range []struct {
		change func(*State)
		want   []Kind
		text   string
	}{
		{func(*State) {}, nil, ""},
		{func(s *State) { s.Running = false }, nil, ""}, // the link is read elsewhere
		{func(s *State) { s.Name = "wan0" }, []Kind{Renamed}, "interface eth0 is called wan0 now"},
		{func(s *State) { s.MTU = 9000 }, []Kind{MTUChanged}, "interface eth0 has MTU 9000 now, it was 1500"},
		{func(s *State) { s.On = false }, []Kind{Off}, "interface eth0 is switched off"},
		{func(s *State) { s.MTU, s.On = 9000, false }, []Kind{MTUChanged, Off}, "interface eth0 has MTU 9000 now, it was 1500"},
	} {
		b := a
		c.change(&b)
		got := differences(a, b)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, expected %v", b, got, c.want)
		}
		if len(got) > 0 {
			if text := (Change{Kind: got[0], Name: "eth0", Before: a, Now: b}).String(); text != c.text {
				t.Errorf("%q, expected %q", text, c.text)
			}
		}
	}
	if got := differences(State{Name: "a"}, State{Name: "a", On: true}); !slices.Equal(got, []Kind{On}) {
		t.Errorf("%v", got)
	}
}

// TestLook: an interface that goes is reported once, and so is the one that comes in its place.
func TestLook(t *testing.T) {
	lo, err := Read("lo")
	if err != nil {
		t.Fatal(err)
	}
	var got []Kind
	w := watch{watched: []watched{{name: "lo", state: State{Index: 1 << 30, Name: "lo"}}, {name: "no-such-if", state: State{Index: 1<<30 + 1}}},
		changed: func(_ int, c Change) { got = append(got, c.Kind) }}
	for range 3 {
		w.look()
	}
	if !slices.Equal(got, []Kind{Gone, Back, Gone}) || w.watched[0].state != lo {
		t.Errorf("%v, %+v", got, w.watched)
	}
}

func TestWatchEnds(t *testing.T) {
	lo, err := Read("lo")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Watch(ctx, []State{lo}, func(_ int, c Change) { t.Errorf("lo has not changed: %v", c) }); err != nil {
		t.Error(err)
	}
}

// TestWatchBegins: a change between reading the state of an interface and watching it is reported.
func TestWatchBegins(t *testing.T) {
	before, err := Read("lo")
	if err != nil {
		t.Fatal(err)
	}
	before.MTU++
	ctx, cancel := context.WithCancel(t.Context())
	var got []Kind
	err = Watch(ctx, []State{before, {Index: 1 << 30, Name: "no-such-if"}}, func(i int, c Change) {
		if got = append(got, c.Kind); i == 1 {
			cancel()
		}
	})
	if err != nil || !slices.Equal(got, []Kind{MTUChanged, Gone}) {
		t.Errorf("%v, %v", got, err)
	}
}
