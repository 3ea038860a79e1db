//go:build live && !nodpdk && long

package main

import "time"

const (
	stopTime     = 10 * time.Second
	everyVariant = true
	takeovers    = 20
)
