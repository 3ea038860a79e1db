package main

import (
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// family is the running programs, so that an interrupt also ends them.
type family struct {
	mutex sync.Mutex
	alive map[*os.Process]bool
	over  bool
}

var children = family{alive: map[*os.Process]bool{}}

func (f *family) add(p *os.Process) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.alive[p] = true
	if f.over {
		_ = p.Kill()
	}
}

func (f *family) remove(p *os.Process) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.alive, p)
}

// killOnSignal ends the programs, waits until they are gone, calls then and exits, when a signal asks the process to stop.
func (f *family) killOnSignal(then func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		s := <-signals
		f.mutex.Lock()
		f.over = true
		for p := range f.alive {
			_ = p.Kill()
		}
		alive := slices.Collect(maps.Keys(f.alive))
		f.mutex.Unlock()
		for _, p := range alive {
			_, _ = p.Wait() // or whoever started it has
		}
		then()
		os.Exit(128 + int(s.(syscall.Signal)))
	}()
}

// tail keeps the end of a program's output.
type tail struct {
	mutex sync.Mutex
	text  []byte
}

const tailSize = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text = append(t.text, b...)
	if len(t.text) > tailSize {
		t.text = t.text[len(t.text)-tailSize:]
	}
	return len(b), nil
}

func (t *tail) last() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return strings.TrimSpace(string(t.text))
}
