//go:build !nodpdk

package dpdk

/*
#include "eal.h"
*/
import "C"

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// LogLevel is the level of a log line of the EAL or a driver: RTE_LOG_EMERG to RTE_LOG_DEBUG.
type LogLevel uint8

// The levels, the most important first.
const (
	LogEmergency LogLevel = iota + 1
	LogAlert
	LogCritical // the process may end with it (rte_panic)
	LogError
	LogWarning
	LogNotice
	LogInfo
	LogDebug
)

// String is the level's name.
func (l LogLevel) String() string {
	names := [...]string{"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"}
	if l < LogEmergency || int(l) > len(names) {
		return fmt.Sprintf("level %d", uint8(l))
	}
	return names[l-1]
}

// ealLog passes EAL's lines from C to Go. They go through a socket, since a worker in C must not call Go.
type ealLog struct {
	fd   int // C's end
	done chan struct{}
}

// startLog calls line with each line that EAL logs, without line end, on a separate goroutine.
func startLog(line func(LogLevel, string)) (*ealLog, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fds[0], true) // for Go's poller
	}
	if err != nil {
		return nil, fmt.Errorf("dpdk: a socket for EAL's log: %w", err)
	}
	l := &ealLog{fd: fds[1], done: make(chan struct{})}
	ours := os.NewFile(uintptr(fds[0]), "EAL's log")
	go func() {
		defer close(l.done)
		defer ours.Close()
		passLog(ours, line)
	}()
	C.cnp_log_to(C.int(l.fd))
	return l, nil
}

// passLog reads records, a byte of level and the text, until the other end is closed. It acknowledges those after which the process may
// end: their writer waits until they are logged.
func passLog(records io.ReadWriter, line func(LogLevel, string)) {
	b := make([]byte, 1<<16)
	for {
		n, err := records.Read(b)
		if err != nil || n == 0 {
			return
		}
		level := LogLevel(b[0])
		for text := range strings.Lines(string(b[1:n])) {
			if text = strings.TrimSpace(text); text != "" {
				line(level, text)
			}
		}
		if level <= LogCritical {
			_, _ = records.Write([]byte{0})
		}
	}
}

// stop returns once all of EAL's lines are passed on. Later lines go to standard error. stop of a nil log does nothing.
func (l *ealLog) stop() {
	if l == nil {
		return
	}
	C.cnp_log_to(-1)
	_ = unix.Close(l.fd)
	<-l.done
}
