package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// stoppedThread is a thread of a child that polls without end. It runs for as long as it is let, by ptrace, so that its CPU time and what it
// counts are exact in between; the other threads of its process always run.
type stoppedThread struct {
	task string // /proc/PID/task/TID
	tid  int
	do   chan func() error // on the one thread that may trace
	done chan error
}

// stopThread stops a thread, /proc/PID/task/TID.
func stopThread(task string) (*stoppedThread, error) {
	tid, err := strconv.Atoi(filepath.Base(task))
	if err != nil {
		return nil, err
	}
	t := &stoppedThread{task, tid, make(chan func() error), make(chan error)}
	go func() {
		runtime.LockOSThread()
		for f := range t.do {
			t.done <- f()
		}
	}()
	if err := t.call(func() error { return unix.PtraceSeize(tid) }); err != nil {
		close(t.do)
		return nil, fmt.Errorf("thread %d can't be stopped and continued (ptrace): %w", tid, err)
	}
	return t, t.stop()
}

func (t *stoppedThread) call(f func() error) error {
	t.do <- f
	return <-t.done
}

func (t *stoppedThread) stop() error {
	return t.call(func() error {
		if err := unix.PtraceInterrupt(t.tid); err != nil {
			return err
		}
		var status unix.WaitStatus
		for {
			if _, err := unix.Wait4(t.tid, &status, unix.WALL, nil); err == nil && !status.Stopped() {
				return fmt.Errorf("thread %d has ended", t.tid)
			} else if err != unix.EINTR {
				return err
			}
		}
	})
}

// run lets the thread run until it has used about so much CPU time.
func (t *stoppedThread) run(d time.Duration) error {
	before, err := t.cpu()
	if err != nil {
		return err
	}
	if err := t.call(func() error { return unix.PtraceCont(t.tid, 0) }); err != nil {
		return err
	}
	err = awaitCPU(d, func() (int64, error) {
		now, err := t.cpu()
		return now - before, err
	})
	return errors.Join(err, t.stop())
}

// cpu is the thread's CPU time, ns.
func (t *stoppedThread) cpu() (int64, error) { return taskCPU(t.task) }

// release lets the thread run on its own.
func (t *stoppedThread) release() {
	_ = t.call(func() error { return unix.PtraceDetach(t.tid) })
	close(t.do)
}
