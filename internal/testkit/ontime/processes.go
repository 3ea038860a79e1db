//go:build linux

package ontime

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is what /proc/PID/stat says of a process.
type process struct {
	parent, group int
	used, ended   time.Duration // CPU time of its own, and of the children that it has waited for
}

// table is the processes that run, by their IDs.
type table map[int]process

func processes() table {
	running := table{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, _ := os.ReadFile(stat)
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest) // state, parent, group
		if len(fields) < 15 {
			continue // it has ended
		}
		number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
		ticks := func(i, j int) time.Duration { return time.Duration(number(i)+number(j)) * tick }
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		running[pid] = process{number(1), number(2), ticks(11, 12), ticks(13, 14)}
	}
	return running
}

// below reports whether a process is of a group, or descends from one that is, such as a service of a system that is booted in a container.
func (running table) below(pid, group int) bool {
	for range running { // IDs are used again while the table is read: no more steps than processes
		p, found := running[pid]
		if !found {
			return false
		}
		if p.group == group {
			return true
		}
		pid = p.parent
	}
	return false
}
