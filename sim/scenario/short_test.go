//go:build !long

package scenario_test

const (
	drawnNetworks = 2
	everyNS3      = false
)
