//go:build linux

package ontime

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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
	for _, pid := range numbersIn("/proc") {
		_, rest, _ := strings.Cut(readProc(fmt.Sprintf("/proc/%d/stat", pid)), ") ")
		fields := strings.Fields(rest) // state, parent, group
		if len(fields) < 15 {
			continue // it has ended
		}
		number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
		ticks := func(i, j int) time.Duration { return time.Duration(number(i)+number(j)) * tick }
		running[pid] = process{number(1), number(2), ticks(11, 12), ticks(13, 14)}
	}
	return running
}

// numbersIn are the numbers that name something in a folder: processes in /proc, and threads in /proc/PID/task.
func numbersIn(folder string) (numbers []int) {
	f, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// readProc reads a short file of /proc, "" if it can't. It makes half the system calls of os.ReadFile: a look reads hundreds of these, ten times a second.
func readProc(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }()
	var text [1 << 10]byte
	n, _ := unix.Read(fd, text[:])
	return string(text[:max(n, 0)])
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
