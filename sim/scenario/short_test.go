//go:build !long

package scenario_test

const (
	drawnNetworks = 2
	drawnNICs     = 12
	thorough      = false
)
