//go:build long

package scenario_test

const (
	drawnNetworks = 60
	drawnNICs     = 400
	thorough      = true
)
