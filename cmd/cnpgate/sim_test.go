package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// short is an incast that takes no time to simulate.
const short = `name: short
length: 20ms
topology: {dumbbell: {senders: 4, spans: [{rate: 10Gbps, delay: 100us, gateway: west}]}}
gateways: {west: {config: {profiles: {default: {mode: thresholds}}, notifications: {limits: {per_flow: 50us}}}}}
responses: [ecn, fast-cnp, long-haul-cnp]
traffic: [{incast: {from: 0-3, to: 4, bytes: 1MB}}]
`

func simulated(t *testing.T, dir string, args ...string) ran {
	t.Helper()
	got := cnpgate(t, dir, append([]string{"sim"}, args...)...)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("exit status %d\n%s", got.status, got.stderr)
	}
	return got
}

// TestSim: a row for each response; the same bytes every time, on one core and on several; another seed, others.
func TestSim(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "short.yaml", []byte(strings.Replace(short, "bytes: 1MB", "bytes: 1MB, spread: 50us", 1)))
	first := simulated(t, dir, "short.yaml", "--wide").stdout
	lines := strings.Split(strings.TrimSpace(first), "\n")
	if len(lines) != 5 || lines[0] != "short: 5 hosts, 4 flows, 20ms at most, seed 1" || !strings.HasPrefix(lines[1], "response ") {
		t.Fatalf("the table is\n%s", first)
	}
	for i, response := range []string{"ecn ", "fast-cnp ", "long-haul-cnp "} {
		if !strings.HasPrefix(lines[2+i], response) {
			t.Errorf("row %d is not of %s:\n%s", i+1, response, first)
		}
	}
	if again := simulated(t, dir, "short.yaml", "--wide", "--cores", "1").stdout; again != first {
		t.Errorf("the second time:\n%s\nthe first time:\n%s", again, first)
	}
	if other := simulated(t, dir, "short.yaml", "--set", "seed=2").stdout; other == first {
		t.Error("another seed gave the same table")
	}
}

// TestSimFiles: a time series and a plot for each run, the same each time, whose marks are there.
func TestSimFiles(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "short.yaml", []byte(short))
	simulated(t, dir, "short.yaml", "--csv", "a", "--svg", "a")
	simulated(t, dir, "short.yaml", "--csv", "b", "--svg", "b")
	for _, response := range []string{"ecn", "fast-cnp", "long-haul-cnp"} {
		for _, suffix := range []string{".csv", ".svg"} {
			if name := "-" + response + suffix; get(t, dir, "a"+name) != get(t, dir, "b"+name) {
				t.Errorf("%s differs the second time", name)
			}
		}
		plot := get(t, dir, "a-"+response+".svg")
		decoder := xml.NewDecoder(strings.NewReader(plot))
		for {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: the plot isn't XML: %v", response, err)
			}
		}
		if marked := strings.Contains(plot, "all of gateways"); marked != (response != "ecn") || !strings.Contains(plot, "K_max") {
			t.Errorf("%s: notifications are marked in the plot: %t", response, marked)
		}
	}
}

// TestSimExplain: the explanation and the plot have the queue, F and its reference, all notifications, and the senders that are asked for.
func TestSimExplain(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "law.yaml", []byte(strings.Replace(short, "{west: {config: {profiles: {default: {mode: thresholds}}, notifications: {limits: {per_flow: 50us}}}}}", "{west: {}}", 1)))
	law := []string{"law.yaml", "--set", "traffic[0].incast.bytes=5MB", "--set", "length=40ms"}
	first := simulated(t, dir, append(law, "--explain", "--senders", "2,1", "--svg", "a")...).stdout
	if again := simulated(t, dir, append(law, "--explain", "--senders", "2,1", "--cores", "1")...).stdout; again != first {
		t.Errorf("the second time:\n%s\nthe first time:\n%s", again, first)
	}
	var runs []struct {
		Response      string
		Notifications int
	}
	if err := json.Unmarshal([]byte(simulated(t, dir, append(law, "-o", "json")...).stdout), &runs); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(first, "\n\n")
	if len(parts) != 1+len(runs) {
		t.Fatalf("%d parts:\n%s", len(parts), first)
	}
	between := regexp.MustCompile(` {2,}`)
	for i, part := range parts[1:] {
		lines := strings.Split(strings.TrimSpace(part), "\n")
		if lines[0] != "short, "+runs[i].Response || len(lines) < 10 {
			t.Fatalf("%s is explained as\n%s", runs[i].Response, part)
		}
		titles := between.Split(lines[1], -1)
		want := []string{"until", "west: queue", "of q_ref", "F", "notified", "CNPs", "host 2: rate", "notified", "host 1: rate", "notified"}
		if !slices.Equal(titles, want) {
			t.Fatalf("the columns are %q", titles)
		}
		notified := 0
		for _, line := range lines[2:] {
			cells := between.Split(line, -1)
			n, err := strconv.Atoi(cells[4])
			if err != nil || len(cells) != len(titles) {
				t.Fatalf("%q: %v", line, err)
			}
			notified += n
		}
		if notified > runs[i].Notifications || notified < runs[i].Notifications*9/10 || notified == 0 && runs[i].Response != "ecn" {
			t.Errorf("%s: the rows have %d notifications, the run %d", runs[i].Response, notified, runs[i].Notifications)
		}
	}
	plot := get(t, dir, "a-long-haul-cnp.svg")
	for _, text := range []string{">F of west<", ">q_ref of west<", ">host 2<", ">host 1<", ">all of gateways<"} {
		if !strings.Contains(plot, text) {
			t.Errorf("the plot has no %s", text)
		}
	}
	byDefault := simulated(t, dir, append(law, "--explain", "--response", "fast-cnp")...).stdout
	if strings.Count(byDefault, "slowest") != 1 || strings.Count(byDefault, "most notified") != 1 {
		t.Errorf("without --senders:\n%s", byDefault)
	}
}

// TestSimSweep: a run for each combination and response that is asked for, which says what was set.
func TestSimSweep(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "short.yaml", []byte(short))
	got := simulated(t, dir, "short.yaml", "--sweep", "hosts.mtu=1024,4096", "--sweep", "seed=1,2", "--response", "ecn", "-o", "json")
	var runs []struct {
		Response, Sweep string
		Seed            uint64
		Hops            uint64 `json:"packet_hops"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &runs); err != nil {
		t.Fatal(err)
	}
	listed := simulated(t, dir, "short.yaml", "--wide", "--sweep", "switches.ecn=[],[{rate: 0bps, k_min: 1KB, k_max: 2KB}]", "--response", "ecn").stdout
	if lines := strings.Split(listed, "\n"); len(lines) != 5 || !strings.HasPrefix(lines[3], "switches.ecn=[{rate: 0bps, k_min: 1KB, k_max: 2KB}]  ecn ") {
		t.Errorf("values with commas in brackets:\n%s", listed)
	}
	if len(runs) != 4 || runs[3].Sweep != "hosts.mtu=4096 seed=2" || runs[3].Seed != 2 || runs[3].Response != "ecn" || runs[0].Hops < 2*runs[2].Hops {
		t.Errorf("%+v", runs)
	}
}

// TestSimList: what is listed can be run.
func TestSimList(t *testing.T) {
	dir := workspace(t)
	names := strings.Fields(simulated(t, dir, "--list").stdout)
	if len(names) < 10 {
		t.Fatalf("%q", names)
	}
	if err := os.Mkdir(filepath.Join(dir, "burst"), 0o700); err != nil { // a folder of a scenario's name is not in the way
		t.Fatal(err)
	}
	simulated(t, dir, "burst", "--response", "ecn")
}

// TestSimMistakes: what is wrong on the command line or in the file ends with exit status 1, and says what was expected.
func TestSimMistakes(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "short.yaml", []byte(short))
	put(t, dir, "x-ecn.csv", []byte(short))
	put(t, dir, "wrong.yaml", []byte(strings.Replace(short, "senders: 4", "senders: four", 1)))
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "0 scenarios are given, expected one"},
		{[]string{"short.yaml", "short.yaml"}, "2 scenarios are given, expected one"},
		{[]string{"nothing"}, "nothing: there is no such file or built-in scenario; expected a file, or a name that cnpgate sim --list shows"},
		{[]string{"wrong.yaml"}, `wrong.yaml:3:32: topology.dumbbell.senders: "four" is not a whole number`},
		{[]string{"short.yaml", "-o", "xml"}, `--output: "xml" is not known; expected text, json or table`},
		{[]string{"short.yaml", "--set", "x"}, `--set "x" sets nothing; expected KEY=VALUE`},
		{[]string{"short.yaml", "--sweep", "hosts.mtu"}, `--sweep "hosts.mtu" sets nothing`},
		{[]string{"short.yaml", "--response", "ppfc"}, `--response, of this scenario: "ppfc" is not known; expected ecn, fast-cnp or long-haul-cnp`},
		{[]string{"short.yaml", "--response", "x,y,ecn"}, `--response, of this scenario: "x" is not known; expected ecn, fast-cnp or long-haul-cnp`},
		{[]string{"short.yaml", "--csv", "no/such/folder"}, "no/such/folder-ecn.csv"},
		{[]string{"short.yaml", "--sweep", "seed=1,2,1", "--csv", "x"}, "--csv and --csv are the same file, x-ecn-seed=1.csv; expected different ones"},
		{[]string{"short.yaml", "--senders", "4"}, "--senders: host 4 sends nothing in short; expected the number of a host that does"},
		{[]string{"short.yaml", "--senders", "0,1,2,3,0,1,2,3,0"}, "--senders: 9 senders; expected at most 8"},
		{[]string{"short.yaml", "--explain", "-o", "json"}, "expected one of --explain and -o json"},
		{[]string{"x-ecn.csv", "--csv", "x"}, "SCENARIO.yaml and --csv are the same file, x-ecn.csv; expected different ones"},
		{[]string{"short.yaml", "--cores", "-1"}, "--cores -1: expected 0 or more"},
	} {
		got := within(t, dir, append([]string{"sim"}, c.args...)...)
		if got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%q: exit status %d, %q; want %q", c.args, got.status, got.stderr, c.says)
		}
	}
}

// TestSimInterrupted: a signal ends a simulation, and no file is left behind.
func TestSimInterrupted(t *testing.T) {
	dir := t.TempDir()
	c := command(dir, "sim", "incast-40ms", "--csv", "a")
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	opened := func() bool {
		files, err := os.ReadDir(dir)
		return err == nil && len(files) == 6
	}
	for deadline := time.Now().Add(time.Minute); !opened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no files are opened")
		}
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := c.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != interrupted || stderr.String() != "" {
		t.Errorf("%v, %q", err, stderr.String())
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("%v: left behind are %v", err, files)
	}
}

// TestSimDraw: a row for each drawn network and the sum, the same each time; a row's name is a scenario.
func TestSimDraw(t *testing.T) {
	dir := workspace(t)
	first := simulated(t, dir, "--draw", "1", "--seed", "2", "--response", "long-haul-cnp").stdout
	lines := strings.Split(strings.TrimSpace(first), "\n")
	if len(lines) < 6 || !strings.HasPrefix(lines[1], "draw-2-1 ") || !strings.HasPrefix(lines[3], "response ") || !strings.HasPrefix(lines[5], "long-haul-cnp ") {
		t.Fatalf("the table is\n%s", first)
	}
	if again := simulated(t, dir, "--draw", "1", "--seed", "2", "--response", "long-haul-cnp", "--cores", "1").stdout; again != first {
		t.Errorf("the second time:\n%s\nthe first time:\n%s", again, first)
	}
	if settable := simulated(t, dir, "--draw", "1", "--seed", "2", "--settable-nics").stdout; !strings.Contains(settable, "\nsettable-2-1 ") {
		t.Errorf("with settable NICs:\n%s", settable)
	}
	if one := simulated(t, dir, "draw-2-1", "--response", "ecn", "--set", "length=100us").stdout; !strings.HasPrefix(one, "draw-2-1: ") {
		t.Errorf("the scenario draw-2-1:\n%s", one)
	}
}

// TestInterruptedStartsNothing: once a signal has come, no other of many simulations begins.
func TestInterruptedStartsNothing(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := simulate(ctx, io.Discard, make([]*simRun, 1000), 1); !errors.Is(err, errInterrupted) {
		t.Fatalf("it ended with %v", err)
	}
}
