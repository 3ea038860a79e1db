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
		want   []string
	}{
		{func(*State) {}, nil},
		{func(s *State) { s.Running = false }, nil}, // the link is read elsewhere
		{func(s *State) { s.Name = "wan0" }, []string{"interface eth0 is called wan0 now"}},
		{func(s *State) { s.MTU = 9000 }, []string{"interface eth0 has MTU 9000 now, it was 1500"}},
		{func(s *State) { s.On = false }, []string{"interface eth0 is switched off"}},
		{func(s *State) { s.MTU, s.On = 9000, false }, []string{"interface eth0 has MTU 9000 now, it was 1500", "interface eth0 is switched off"}},
	} {
		b := a
		c.change(&b)
		if got := differences(a, b); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, expected %q", b, got, c.want)
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
	const (
		gone   = "interface eth0 is gone"
		back   = "interface eth0 is back"
		isOff  = "interface eth0 is switched off"
		isOn   = "interface eth0 is switched on"
		other  = "interface eth0 is called wan0 now"
		again  = "interface wan0 is called eth0 now"
		larger = "interface eth0 has MTU 9000 now, it was 1500"
	)
	for n, c := range []struct {
		is           kernel
		unregistered bool
		want         []string
	}{
		{kernel{first}, false, nil},
		{kernel{off}, false, []string{isOff}},
		{kernel{second, first}, false, []string{isOn}},
		{kernel{renamed}, false, []string{other}},
		{kernel{renamed, with(first, func(s *State) { s.Index = 9 })}, false, nil},
		{kernel{first}, false, []string{again}},
		{kernel{}, false, []string{gone}},
		{kernel{}, false, nil},
		{kernel{}, true, nil},
		{kernel{second}, false, []string{back + ", but switched off"}},
		{kernel{second}, false, nil},
		{kernel{first}, false, []string{gone, back}},
		{kernel{first}, true, []string{gone, back}},
		{kernel{off}, true, []string{gone, back + ", but switched off"}},
		{kernel{with(first, func(s *State) { s.MTU = 9000 })}, false, []string{larger, isOn}},
		{kernel{renamed}, true, []string{gone}},
	} {
		k = c.is
		got, left := i.Look(c.unregistered)
		s, there := i.State()
		if !slices.Equal(got, c.want) || left != slices.Contains(c.want, gone) || there && s != c.is[0] && len(c.is) == 1 {
			t.Errorf("look %d: %q, expected %q; the state is %+v, %v", n, got, c.want, s, there)
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
	if changes, gone := i.Look(false); len(changes) != 0 || gone || i.state != first {
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
	if changes, gone := i.Look(false); len(changes) != 0 || gone || i.state != lo {
		t.Errorf("lo has not changed: %v, %+v", changes, i.state)
	}
	if changes, gone := i.Look(true); len(changes) != 2 || !gone || i.state != lo {
		t.Errorf("lo is another one: %v, %+v", changes, i.state)
	}
	i = Follow(State{Index: 1 << 30, Name: "no-such-if"})
	if changes, gone := i.Look(false); len(changes) != 1 || !gone {
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
