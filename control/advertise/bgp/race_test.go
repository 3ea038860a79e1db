//go:build !nobgp && race

package bgp

import "testing"

// parallel does nothing: GoBGP writes variables of its packages whenever a speaker starts. That is a race only between speakers of one process, of which
// the gateway has one.
func parallel(*testing.T) {}
