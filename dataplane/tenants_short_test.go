//go:build !long && !race

package dataplane_test

// tenantRuns is how many runs TestTenants makes of each pair of places.
const tenantRuns = 6
