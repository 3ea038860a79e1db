//go:build !long || race

package dataplane_test

const anyTimes, monthHours = 1, 2
