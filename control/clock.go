package control

import (
	"time"

	"golang.org/x/sys/unix"
)

// setWallClock gives the workers the offset of Unix time from their clock, CLOCK_MONOTONIC (burst.Backend). It is called regularly, because NTP
// changes the offset.
func (g *gateway) setWallClock() {
	var monotonic unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic); err == nil { // every Linux has it
		g.plane.SetWallClock(time.Now().UnixNano() - monotonic.Nano())
	}
}
