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
	for text, c := range map[string]Change{
		"interface eth0 is gone":                   {Kind: Gone, Name: "eth0", Before: a},
		"interface eth0 is back":                   {Kind: Back, Name: "eth0", Now: a},
		"interface eth0 is back, but switched off": {Kind: Back, Name: "eth0", Now: State{Name: "eth0"}},
		"interface wan0 is switched on":            {Kind: On, Name: "eth0", Now: State{Name: "wan0", On: true}},
	} {
		if c.String() != text {
			t.Errorf("%q, expected %q", c.String(), text)
		}
	}
}

// kernel answers questions about interfaces.
type kernel []State

func (k kernel) find(is func(State) bool) (State, error) {
	if i := slices.IndexFunc(k, is); i >= 0 {
		return k[i], nil
	}
	return State{}, ErrNone
}

func (k *kernel) byIndex(index int) (State, error) {
	return k.find(func(s State) bool { return s.Index == index })
}
func (k *kernel) byName(name string) (State, error) {
	return k.find(func(s State) bool { return s.Name == name })
}

// TestLook: each change is reported once. An interface stays the same until it is unregistered, even if it is renamed and another one gets
// its name. After that it is another one, even with the same index.
func TestLook(t *testing.T) {
	first := State{Index: 3, Name: "eth0", MTU: 1500, On: true, Ethernet: true}
	with := func(s State, change func(*State)) State {
		change(&s)
		return s
	}
	off := with(first, func(s *State) { s.On = false })
	second := with(off, func(s *State) { s.Index = 4 })
	renamed := with(first, func(s *State) { s.Name = "wan0" })
	k := kernel{first}
	i := Follow(first)
	i.byIndex, i.byName = k.byIndex, k.byName
	for n, c := range []struct {
		is           kernel
		unregistered bool
		want         []Kind
	}{
		{kernel{first}, false, nil},
		{kernel{off}, false, []Kind{Off}},
		{kernel{second, first}, false, []Kind{On}},
		{kernel{renamed}, false, []Kind{Renamed}},
		{kernel{renamed, with(first, func(s *State) { s.Index = 9 })}, false, nil},
		{kernel{first}, false, []Kind{Renamed}},
		{kernel{}, false, []Kind{Gone}},
		{kernel{}, false, nil},
		{kernel{}, true, nil},
		{kernel{second}, false, []Kind{Back}},
		{kernel{second}, false, nil},
		{kernel{first}, false, []Kind{Gone, Back}},
		{kernel{first}, true, []Kind{Gone, Back}},
		{kernel{off}, true, []Kind{Gone, Back}},
		{kernel{with(first, func(s *State) { s.MTU = 9000 })}, false, []Kind{MTUChanged, On}},
		{kernel{renamed}, true, []Kind{Gone}},
	} {
		k = c.is
		var got []Kind
		for _, change := range i.Look(c.unregistered) {
			got = append(got, change.Kind)
		}
		s, there := i.State()
		if !slices.Equal(got, c.want) || there && s != c.is[0] && len(c.is) == 1 {
			t.Errorf("look %d: %v, expected %v; the state is %+v, %v", n, got, c.want, s, there)
		}
	}
	if _, there := i.State(); there || i.Name() != "eth0" {
		t.Errorf("an interface is there, %s", i.Name())
	}
}

// TestLookWithoutAnswer: a read that fails changes nothing.
func TestLookWithoutAnswer(t *testing.T) {
	first := State{Index: 3, Name: "eth0"}
	i := Follow(first)
	i.byIndex = func(int) (State, error) { return State{}, errors.New("busy") }
	if changes := i.Look(false); len(changes) != 0 || i.state != first {
		t.Errorf("%v, %+v", changes, i.state)
	}
}

// TestFollow asks the real kernel: by index it says the same as by name.
func TestFollow(t *testing.T) {
	lo, err := Read("lo")
	if err != nil {
		t.Fatal(err)
	}
	i := Follow(lo)
	if changes := i.Look(false); len(changes) != 0 || i.state != lo {
		t.Errorf("lo has not changed: %v, %+v", changes, i.state)
	}
	if changes := i.Look(true); len(changes) != 2 || i.state != lo {
		t.Errorf("lo is another one: %v, %+v", changes, i.state)
	}
	i = Follow(State{Index: 1 << 30, Name: "no-such-if"})
	if changes := i.Look(false); len(changes) != 1 || changes[0].Kind != Gone {
		t.Errorf("there is no such interface: %v", changes)
	}
}

// TestWatch looks at once, and again until the context ends.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	err := Watch(ctx, func() {
		if looks++; looks == 2 {
			cancel()
		}
	})
	if err != nil || looks != 2 {
		t.Errorf("%d looks, %v", looks, err)
	}
	if err := Watch(ctx, func() { t.Error("looked after the end") }); err != nil {
		t.Error(err)
	}
}
