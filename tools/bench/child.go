package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// sample is the result of one run of one side.
type sample struct {
	Ops   uint64             `json:"ops"`
	CPU   int64              `json:"cpu_ns"`  // of the measured thread
	Wall  int64              `json:"wall_ns"` // from its first operation to its last
	Rate  float64            `json:"rate"`    // operations a second of the core, of all workers; 0: Ops/CPU
	Extra map[string]float64 `json:"extra,omitempty"`
	Wrong string             `json:"wrong,omitempty"` // why the run doesn't count
}

// rate is in operations a second of the core.
func (s *sample) rate() float64 {
	if s.Rate != 0 {
		return s.Rate
	}
	return float64(s.Ops) / float64(s.CPU) * 1e9
}

// side can be measured repeatedly: it pauses between runs.
type side interface {
	run(d time.Duration) (*sample, error)
}

// process is a side that is a program: it says "ready", then answers each line "run MILLISECONDS" with a sample in JSON.
type process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  *tail
}

// startup is the time limit for a program to load its frames, and patience that for an answer after the run's time.
const (
	startup  = 3 * time.Minute
	patience = time.Minute
)

func start(name string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(args[0], args[1:]...), log: &tail{}}
	p.cmd.Stderr = p.log
	p.cmd.Env = append(os.Environ(), "LC_ALL=C")
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	children.add(p.cmd.Process)
	return p, nil
}

// startChild starts a program of the protocol above and waits until it is ready.
func startChild(name string, args ...string) (*process, error) {
	p, err := start(name, args...)
	if err != nil {
		return nil, err
	}
	line, err := p.line(startup)
	if err == nil && line != "ready" {
		err = fmt.Errorf("%s: said %q, expected \"ready\"", name, line)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *process) run(d time.Duration) (*sample, error) {
	return p.ask(fmt.Sprintf("run %d", d.Milliseconds()), d+patience)
}

// asking is a process with another request than to run.
type asking struct {
	*process
	what string
}

func (a asking) run(d time.Duration) (*sample, error) {
	return a.ask(fmt.Sprintf("%s %d", a.what, d.Milliseconds()), d+patience)
}

func (p *process) ask(question string, limit time.Duration) (*sample, error) {
	if _, err := fmt.Fprintln(p.in, question); err != nil {
		return nil, p.failed(err)
	}
	return p.sample(limit)
}

// sample reads one.
func (p *process) sample(limit time.Duration) (*sample, error) {
	line, err := p.line(limit)
	if err != nil {
		return nil, err
	}
	var s sample
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		return nil, fmt.Errorf("%s: answered %q: %w", p.name, line, err)
	}
	if s.Wrong != "" {
		return nil, fmt.Errorf("%s: %s", p.name, s.Wrong)
	}
	return &s, nil
}

// line reads one line, or gives up on the program.
func (p *process) line(limit time.Duration) (string, error) {
	timer := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	line, err := p.out.ReadString('\n')
	if !timer.Stop() && err != nil {
		err = fmt.Errorf("no answer in %v", limit)
	}
	if err != nil {
		return "", p.failed(err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// failed returns an error with the program's own output.
func (p *process) failed(err error) error {
	p.close()
	if said := p.log.last(); said != "" {
		return fmt.Errorf("%s: %w; it said: %s", p.name, err, said)
	}
	return fmt.Errorf("%s: %w", p.name, err)
}

// end asks a program to end that doesn't read its input.
func (p *process) end() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	p.close()
}

func (p *process) close() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.in.Close() // the end of its input ends it
	timer := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
	timer.Stop()
	children.remove(p.cmd.Process)
}

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

// killed is the longest that killed programs take to end.
const killed = 5 * time.Second

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
		gone := make(chan struct{})
		go func() {
			for _, p := range alive {
				_, _ = p.Wait() // or whoever started it has
			}
			close(gone)
		}()
		select {
		case <-gone:
		case <-time.After(killed): // a program with a traced thread is gone when the tracer is, which is this process
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
