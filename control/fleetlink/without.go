//go:build nofleet

package fleetlink

import (
	"context"
	"encoding/json"
	"errors"
)

var errWithout = errors.New("fleet: this program was built without fleet (build tag nofleet); remove the section, or use a build with it")

// Participant doesn't exist in this build: Open returns an error.
type Participant struct{}

// Open returns an error.
func Open(Options) (*Participant, error) { return nil, errWithout }

// Run does nothing.
func (*Participant) Run(context.Context) {}

// Status is that of no fleet.
func (*Participant) Status() FleetStatus { return FleetStatus{} }

// Question has no answers.
func (*Participant) Question(string) map[string]json.RawMessage { return nil }

// Publish does nothing.
func (*Participant) Publish([]byte) {}

// Episodes returns an error.
func (*Participant) Episodes() ([]Episode, error) { return nil, errWithout }
