//go:build live && !nodpdk && !long

package main

import "time"

const (
	stopTime     = 3 * time.Second
	everyVariant = false
	takeovers    = 4
)
