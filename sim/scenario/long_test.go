//go:build long

package scenario_test

const (
	drawnNetworks = 60
	thorough      = true
)
