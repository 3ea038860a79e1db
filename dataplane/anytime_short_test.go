//go:build !long || race

package dataplane_test

const anyTimes = 1
