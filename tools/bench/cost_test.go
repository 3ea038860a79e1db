//go:build secondopinion

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

const (
	costFile = "testdata/cost.json"
	// tolerance is how far a packet's cost may be from the committed one.
	tolerance = 0.02
)

// cost is a packet's, in instructions, with the backend's share taken off; and what a step makes of allocations and exchanges.
type cost struct {
	Go           string             `json:"go"`
	Instructions map[string]float64 `json:"instructions_per_packet"`
	Allocations  float64            `json:"allocations_per_step"`
	Exchanges    float64            `json:"exchanges_per_step"`
}

// TestCost holds what a packet costs in instructions to the committed figures, as valgrind counts them in (*work).step: the same on
// every machine and at any load. Where a change is meant to cost something, or to save it,
//
//	go test -tags secondopinion -run TestCost ./tools/bench -update
//
// writes the new figures, to be committed with it.
func TestCost(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "nodpdk", "-ldflags=-w", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := cost{Go: runtime.Version()}
	counted := map[string]float64{} // instructions a packet, with the backend's
	count := func(settings string, some ...*work) {
		// So many that what the runtime does now and then is nothing beside them, and pairing has come to rest.
		const few, many = 24 * warmBursts, 36 * warmBursts
		instructions, all := callgrind(t, binary, settings, some, few, many)
		for i, w := range some {
			did := &all[i]
			w.check(t, did, many)
			each := instructions[i] / float64((many-few)*w.burst())
			if before, again := counted[w.name]; again {
				each = min(each, before)
			}
			counted[w.name] = each
			got.Allocations = max(got.Allocations, float64(did.Allocations)/float64(did.Steps))
			got.Exchanges = max(got.Exchanges, float64(did.Exchanges)/float64(did.Steps))
		}
	}
	together := map[string][]*work{} // by their settings: valgrind needs most of its time until a program begins
	for i := range works {
		w := &works[i]
		together[w.settings()] = append(together[w.settings()], w)
	}
	for settings, some := range together {
		count(settings, some...)
	}
	got.Instructions = withoutBackend(counted)
	if *update {
		writeCost(t, &got)
		return
	}
	want := committedCost(t)
	for i := range works { // on a busy machine, valgrind may count some of another thread's
		if w := &works[i]; w.change != nil && got.Instructions[w.name] > want.Instructions[w.name]*(1+tolerance) {
			count(w.settings(), w)
		}
	}
	got.Instructions = withoutBackend(counted)
	compareCost(t, &got, want)
}

// withoutBackend takes off the backend's share, which is that of the work named backend before each.
func withoutBackend(counted map[string]float64) map[string]float64 {
	own, backend := map[string]float64{}, ""
	for _, w := range works {
		if w.change == nil {
			backend = w.name
			continue
		}
		own[w.name] = math.Round(counted[w.name] - counted[backend])
	}
	return own
}

var dumped = regexp.MustCompile(`(?s)\npart: (\d+)\n.*\ntotals: (\d+)\n`)

// callgrind runs works one after another and counts the instructions of the steps of each after the first few. Only of those: how many the runtime needs to grow the
// heap differs from run to run.
func callgrind(t *testing.T, binary, settings string, some []*work, few, many int) (instructions []float64, did []counted) {
	t.Helper()
	var names []string
	for _, w := range some {
		names = append(names, w.name)
	}
	dumps := filepath.Join(t.TempDir(), "dump") // before each work, and at the end
	c := exec.CommandContext(t.Context(), "valgrind", "--tool=callgrind", "--callgrind-out-file="+dumps,
		"--collect-atstart=no", "--toggle-collect=main.*work*.step", "--dump-before=main.begin", binary, "count", "-work", strings.Join(names, ","), "-uncounted", strconv.Itoa(few), "-bursts", strconv.Itoa(many))
	// Valgrind 3.19 has no RDTSCP, which the runtime uses where two threads want one lock, so mostly on a busy machine.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off"+settings, "GOGC=off")
	said := &tail{}
	c.Stderr = said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("valgrind (scripts/setup --test installs it): %v\n%s", err, said.last())
	}
	files, _ := filepath.Glob(dumps + "*")
	if len(files) != len(some)+1 {
		t.Fatalf("callgrind wrote %d dumps, expected one before each of %d works, and one more:\n%s", len(files), len(some), said.last())
	}
	instructions, did = make([]float64, len(files)), make([]counted, len(some))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := dumped.FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no total:\n%s", file, text)
		}
		part, _ := strconv.Atoi(string(m[1]))
		instructions[part-1], _ = strconv.ParseFloat(string(m[2]), 64)
	}
	lines := json.NewDecoder(bytes.NewReader(out))
	for i := range did {
		if err := lines.Decode(&did[i]); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
	}
	return instructions[1:], did
}

// check fails the test unless the work was done to every packet but those of the last two bursts, which are still on their way.
func (w *work) check(t *testing.T, did *counted, bursts int) {
	t.Helper()
	want := uint64((bursts - 2) * w.burst())
	marked, notified := w.name[0] == 'm' || w.name == "notify-long-haul-cnp", w.name[0] == 'n'
	least := want
	if w.name == "notify-by-law" {
		least = want * 9 / 10 // until a flow's rate is known, nothing is asked of it
	}
	if w.change != nil && did.Forwarded < want || marked != (did.Marked >= want) || notified != (did.Notified >= least) {
		t.Errorf("%s: %+v of %d packets", w.name, *did, want)
	}
}

func writeCost(t *testing.T, got *cost) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(costFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func committedCost(t *testing.T) *cost {
	t.Helper()
	text, err := os.ReadFile(costFile)
	if err != nil {
		t.Fatal(err)
	}
	var want cost
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	return &want
}

func compareCost(t *testing.T, got, want *cost) {
	t.Helper()
	if got.Allocations > want.Allocations || got.Exchanges > want.Exchanges {
		t.Errorf("a step has %v allocations and %v exchanges, committed are %v and %v", got.Allocations, got.Exchanges, want.Allocations, want.Exchanges)
	}
	for name, committed := range want.Instructions {
		now, ok := got.Instructions[name]
		if change := now/committed - 1; !ok || math.Abs(change) > tolerance {
			t.Errorf("%s: %.0f instructions a packet with %s, committed are %.0f with %s (%+.1f %%, %.0f %% are allowed); if that is meant: "+
				"go test -tags secondopinion -run TestCost ./tools/bench -update", name, now, got.Go, committed, want.Go, 100*change, 100*tolerance)
		}
	}
	if len(got.Instructions) != len(want.Instructions) {
		t.Errorf("%d works are counted, %d committed", len(got.Instructions), len(want.Instructions))
	}
}
