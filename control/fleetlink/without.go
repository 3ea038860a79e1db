//go:build nofleet

package fleetlink

import (
	"context"
	"encoding/json"
	"errors"
)

var errWithout = errors.New("fleet: this program was built without fleet (build tag nofleet); remove the section, or use a build with it")

// Link doesn't exist in this build: Open returns an error.
type Link struct{}

// Open returns an error.
func Open(Options) (*Link, error) { return nil, errWithout }

// Run does nothing.
func (*Link) Run(context.Context) {}

// Status is that of no fleet.
func (*Link) Status() FleetStatus { return FleetStatus{} }

// Question has no answers.
func (*Link) Question(string) map[string]json.RawMessage { return nil }

// Publish does nothing.
func (*Link) Publish([]byte) {}

// Episodes returns an error.
func (*Link) Episodes() ([]Episode, error) { return nil, errWithout }
