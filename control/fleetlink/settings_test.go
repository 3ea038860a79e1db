package fleetlink

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/fleet"
)

// TestProblems: each gateway that is not heard, and each server that is not reached, is named with what is known.
func TestProblems(t *testing.T) {
	s := FleetStatus{
		Members:     []fleet.MemberView{{Name: "a", Self: true, State: "unheard"}, {Name: "b", State: "active"}, {Name: "c", State: "silent", SilentMS: 72_000}, {Name: "d", State: "unheard"}},
		Connections: []FleetConnection{{URL: "nats://1", Connected: true, Error: "old"}, {URL: "nats://2", Error: "connection refused"}},
	}
	want := []string{
		"the gateway c of the fleet is silent: it has ended, or can't be reached", "the gateway d of the fleet has not been heard since the start",
		"the fleet's server nats://2 can't be reached: connection refused",
	}
	if got := s.Problems(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for state, want := range map[string]string{"active": "it is active, but slow", "silent": "it has been silent for 1m12s", "unheard": "it has not been heard since the start of this gateway"} {
		if m := (fleet.MemberView{State: state, SilentMS: 72_000}); m.Absence() != want {
			t.Errorf("%s: %s", state, m.Absence())
		}
	}
}
