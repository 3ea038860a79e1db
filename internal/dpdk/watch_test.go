//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/netif"
)

// TestUnusable: what no port can be on is refused at start and at any time later.
func TestUnusable(t *testing.T) {
	good := netif.State{Index: 3, Name: "eth0", MTU: 1500, On: true, Ethernet: true}
	for _, c := range []struct {
		change func(*netif.State)
		fault  string
	}{
		{func(*netif.State) {}, ""},
		{func(s *netif.State) { s.Running = true }, ""},
		{func(s *netif.State) { s.Loopback = true }, "interface eth0 is the loopback interface"},
		{func(s *netif.State) { s.Ethernet = false }, "interface eth0 carries no Ethernet frames"},
		{func(s *netif.State) { s.On = false }, "interface eth0 is down: switch it on with `ip link set eth0 up`"},
	} {
		s := good
		c.change(&s)
		says(t, unusable(s), c.fault)
	}
	for mtu, fault := range map[int]string{0: "", 1500: "", 1501: "interface eth0 has MTU 1500, but the port is configured for 1501"} {
		says(t, tooSmall(good, mtu), fault)
	}
}

// TestFollow: what is reported is the state, whichever change came last, and what fails is tried again until it succeeds.
func TestFollow(t *testing.T) {
	connected, disconnected := 0, 0
	var refusal error
	f := &follower{
		mtu: 1500, room: 2048, connected: true,
		connect: func(netif.State) error {
			connected++
			return refusal
		},
		disconnect: func() { disconnected++ },
	}
	good := netif.State{Index: 3, Name: "eth0", MTU: 1500, On: true, Ethernet: true}
	const gone = "interface eth0 is gone"
	for n, c := range []struct {
		state   netif.State
		changes []string
		refusal error
		news    bool
		text    string
		problem string
		connect int // calls
	}{
		{good, nil, nil, false, "", "", 0},
		{with(good, 1400, true), []string{"interface eth0 has MTU 1400 now"}, nil,
			true, "interface eth0 has MTU 1400 now", "interface eth0 has MTU 1400, but the port is configured for 1500", 0},
		{with(good, 1400, false), []string{"interface eth0 is switched off"}, nil, true, "interface eth0 is switched off", "interface eth0 is down", 0},
		{with(good, 1400, true), []string{"interface eth0 is switched on"}, nil, true, "interface eth0 is switched on", "interface eth0 has MTU 1400", 0},
		{with(good, 1400, true), nil, nil, false, "", "interface eth0 has MTU 1400", 0},
		{good, []string{"interface eth0 has MTU 1500 now"}, nil, true, "interface eth0 has MTU 1500 now", "", 0},
		{with(good, 2026, true), []string{"interface eth0 has MTU 1500 now"}, nil, true, "interface eth0 has MTU", "", 0},
		{with(good, 2027, true), []string{"interface eth0 has MTU 1500 now"}, nil, true, "interface eth0 has MTU", "interface eth0 has MTU 2027, and buffers have 2048 bytes: `ip link set eth0 mtu 2026`", 0},
		// Made again, switched on later, and then refused for a while.
		{with(good, 1500, false), []string{gone, "interface eth0 is back, but switched off"}, nil,
			true, "interface eth0 is gone, interface eth0 is back, but switched off", "interface eth0 is down", 0},
		{with(good, 1500, false), nil, nil, false, "", "interface eth0 is down", 0},
		{good, []string{"interface eth0 is switched on"}, errors.New("busy"), true, "interface eth0 is switched on", "the port can't use interface eth0, and tries again: busy", 1},
		{good, nil, errors.New("busy"), false, "", "busy", 1},
		{good, nil, errors.New("too busy"), true, "interface eth0 still can't be used", "too busy", 1},
		{good, []string{"interface eth0 is called eth0 now"}, errors.New("too busy"), true, "interface eth0 is called eth0 now", "too busy", 1},
		{with(good, 9000, true), nil, nil, true, "interface eth0 still can't be used", "buffers have 2048 bytes", 1},
		{good, nil, nil, true, "interface eth0 is in use again", "", 0},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f.iface, refusal = netif.Follow(c.state), c.refusal
			before, disconnections, wantDisconnections := connected, disconnected, 0
			got, news := f.follow(c.changes, slices.Contains(c.changes, gone))
			if slices.Contains(c.changes, gone) {
				wantDisconnections = 1
			}
			if news != c.news || !strings.Contains(got.Problem, c.problem) || (got.Problem == "") != (c.problem == "") || news && !strings.HasPrefix(got.Text, c.text) {
				t.Errorf("%+v, %v", got, news)
			}
			if connected-before != c.connect || disconnected-disconnections != wantDisconnections {
				t.Errorf("connected %d times, disconnected %d times", connected-before, disconnected-disconnections)
			}
		})
	}
}

func with(s netif.State, mtu int, on bool) netif.State {
	s.MTU, s.On = mtu, on
	return s
}
