//go:build live && !nodpdk && !long

package main

import "time"

const (
	stopTime     = 5 * time.Second
	everyVariant = false
	takeovers    = 4
)
