//go:build long

package scenario_test

const (
	drawnNetworks = 60
	everyNS3      = true
)
