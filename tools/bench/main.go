// Bench is the measuring program of scripts/bench: it measures cnpgate and DPDK's own C programs in turn, on the same devices, frames and
// core, and prints medians and ratios. It is not shipped. With the first argument "run" it starts all others as processes (a process has
// one EAL in its life); its other commands are those processes that run cnpgate's code.
//
// A rate is operations divided by the CPU time of the measured thread. On an idle machine that is the same as wall-clock time; on a busy
// one it excludes the time that other processes used the core.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// bench is one run of scripts/bench.
type bench struct {
	self      string // this program
	programs  string // folder of the C programs
	peers     string // folder of Debian's packages that scripts/setup --peers unpacks; "": their rows are not measured
	dir       string // for captures, removed at the end
	core      int    // that is measured
	mainCore  int    // for everything else
	hugepages bool
	burst     int
	runs      int                 // slices of each side, if no row is noisy
	aStart    int                 // slices of each side from one start of the programs
	taken     map[string]slicesOf // by the first row that they are for
	time      time.Duration       // of the core, a slice
	noise     float64             // greatest width of a ratio's interval, as a share of it
	short     bool
	verbose   bool
	profiles  string // folder for CPU profiles of cnpgate, "" for none
	filter    []string
	limit     time.Duration // of all rows
	until     time.Time     // when the present group should end: it has an equal share of the time that is left; zero: no limit
	resume    string        // file with the rows so far, "" for none
	result    result
}

func run(args []string) (err error) {
	b := bench{}
	f := flag.NewFlagSet("run", flag.ExitOnError)
	f.StringVar(&b.programs, "programs", ".", "folder of the compiled C programs")
	f.StringVar(&b.peers, "peers", "", "folder of unpacked packages: measure the rows beside l3fwd and OVS-DPDK, too")
	f.StringVar(&b.dir, "dir", "", "folder for captures")
	f.IntVar(&b.core, "core", 1, "core that is measured")
	f.IntVar(&b.mainCore, "main-core", 0, "core for everything else")
	f.BoolVar(&b.hugepages, "hugepages", false, "use hugepages")
	f.IntVar(&b.burst, "burst", 64, "frames a burst, of both sides")
	f.IntVar(&b.runs, "runs", 64, "slices of each side at first; noisy rows take more")
	f.DurationVar(&b.time, "time", 30*time.Millisecond, "of the core, a slice")
	f.Float64Var(&b.noise, "noise", 0.05, "width of a ratio's interval, as a share of it, above which a row is noisy")
	f.BoolVar(&b.short, "short", false, "only show that it works")
	f.BoolVar(&b.verbose, "verbose", false, "print every slice's rates")
	f.StringVar(&b.profiles, "profiles", "", "folder for CPU profiles of cnpgate's runs")
	rows := f.String("rows", "", "names or patterns, comma-separated")
	format := f.String("format", "text", "text, json or markdown")
	docs := f.String("docs", "", "document whose figures are replaced; the picture goes into its folder")
	check := f.Bool("check", false, "a ratio below what is wanted is a failure")
	f.DurationVar(&b.limit, "limit", time.Hour, "time for all rows; each has an equal share, and fewer slices if that is short")
	f.StringVar(&b.resume, "resume", "", "file with the rows so far: go on with those that have no figure, or with those of -rows")
	list := f.Bool("list", false, "print the rows' names")
	need := f.Bool("need", false, "print how many MiB of hugepages the rows would take")
	_ = f.Parse(args) // ExitOnError
	if *rows != "" {
		b.filter = strings.Split(*rows, ",")
	}
	print, ok := map[string]func(*result){"text": text, "json": inJSON, "markdown": markdown}[*format]
	if !ok {
		return fmt.Errorf("format %q: expected text, json or markdown", *format)
	}
	switch {
	case *list:
		for _, g := range b.groups() {
			for _, r := range g.rows {
				fmt.Printf("%-24s %s\n", r.Name, r.What)
			}
		}
		return nil
	case *need:
		fmt.Println(b.hugepagesNeeded())
		return nil
	}
	if b.short {
		b.runs, b.time, b.noise = 2, 20*time.Millisecond, math.Inf(1)
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.programs, err = filepath.Abs(b.programs); err != nil {
		return err
	}
	if err := os.Setenv("RUNTIME_DIRECTORY", b.dir); err != nil { // the directory of EALs' files, which killed EALs leave behind
		return err
	}
	children.killOnSignal(func() { _ = os.RemoveAll(b.dir) })
	b.result.Machine = thisMachine(&b)
	if b.resume != "" {
		if err := b.result.load(b.resume); err != nil {
			return err
		}
	}
	if err := b.measure(); err != nil {
		return err
	}
	print(&b.result)
	if *docs != "" {
		if err := b.result.writeDocs(*docs); err != nil {
			return err
		}
	}
	return b.verdict(*check)
}

// group is rows that are measured together: on one layout, in one alternation.
type group struct {
	name      string
	rows      []row
	memory    float64                          // needed GiB, if that is much
	hugepages float64                          // GiB of hugepages for its frames, if that is much
	cores     int                              // needed cores, if one is not enough
	once      bool                             // its programs start slowly, or always give the same result
	more      bool                             // similar to another group: skipped in a short run
	measure   func(b *bench, rows []row) error // fills its selected rows
}

// measure measures the selected rows: of a resumed run without a selection, those that have no figure yet.
func (b *bench) measure() error {
	type task struct {
		group
		selected []row
	}
	var todo []task
	for _, g := range b.groups() {
		t := task{group: g}
		for _, r := range g.rows {
			if b.wants(r.Name) && !(len(b.filter) == 0 && b.result.has(r.Name)) {
				t.selected = append(t.selected, r)
			}
		}
		if len(t.selected) > 0 {
			todo = append(todo, t)
		}
	}
	end := time.Now().Add(b.limit)
	for i, t := range todo {
		left := time.Until(end)
		b.until = time.Now().Add(left / time.Duration(len(todo)-i))
		progress("%s: %d of %d, %v left", t.name, i+1, len(todo), max(left, 0).Round(time.Second))
		err := b.canMeasure(&t.group)
		if err == nil {
			err = b.measureGroup(&t.group, t.selected)
		}
		for i := range t.selected {
			if r := &t.selected[i]; err != nil {
				r.clear()
				r.Error = err.Error()
			}
			progress("%s", t.selected[i].line())
		}
		b.result.put(t.selected)
		if b.resume != "" {
			if err := b.result.save(b.resume); err != nil {
				return err
			}
		}
	}
	if len(b.result.Rows) == 0 {
		return fmt.Errorf("no row is called %s; --list prints them", strings.Join(b.filter, ","))
	}
	return nil
}

// usualStarts is how often programs start for a row: where a program's memory lies changes its speed by some percent, for as long as it runs.
const usualStarts = 4

// measureGroup starts a group's programs until it has the usual number of slices and no row is noisy, or else the most; or until its time is over.
func (b *bench) measureGroup(g *group, rows []row) error {
	starts := usualStarts
	if g.once || b.short {
		starts = 1
	}
	b.aStart = max(b.runs/starts, 1)
	b.taken = map[string]slicesOf{}
	for n := 1; ; n++ {
		if err := g.measure(b, rows); err != nil {
			return err
		}
		if b.late() || n%starts == 0 && (n == moreSlices*starts || !slices.ContainsFunc(rows, func(r row) bool { return r.Noisy })) {
			return nil
		}
	}
}

// late returns whether the present group's share of the time is over.
func (b *bench) late() bool { return !b.until.IsZero() && time.Now().After(b.until) }

// errLeftOut is not a failure.
var errLeftOut = errors.New("left out")

// canMeasure returns the reason if a group can't be measured here.
func (b *bench) canMeasure(g *group) error {
	if b.short && (g.memory > 0 || g.more) {
		return fmt.Errorf("%w of a short run", errLeftOut)
	}
	if free := availableGiB(); g.memory > free {
		return fmt.Errorf("%w: it needs %g GiB of memory, %.3g GiB are available", errLeftOut, g.memory, free)
	}
	if have := runtime.NumCPU(); g.cores > have {
		return fmt.Errorf("%w: it needs %d cores, there are %d", errLeftOut, g.cores, have)
	}
	return nil
}

// groups are those that may be measured.
func (b *bench) groups() []group {
	if b.peers != "" {
		return append(groups(), peerGroups()...)
	}
	return groups()
}

// hugepagesNeeded returns MiB, for the selected rows that fit into the machine's memory.
func (b *bench) hugepagesNeeded() int {
	most := 512 // what a group of few flows takes on both sides, with room
	for _, g := range b.groups() {
		for _, r := range g.rows {
			if b.wants(r.Name) && b.canMeasure(&g) == nil {
				most = max(most, int(g.hugepages*1024))
			}
		}
	}
	return most
}

// otherCore is one that isn't measured.
func (b *bench) otherCore() int {
	if b.mainCore != b.core {
		return b.mainCore
	}
	return (b.core + 1) % runtime.NumCPU()
}

func (b *bench) wants(name string) bool {
	for _, pattern := range b.filter {
		if ok, err := path.Match(pattern, name); ok || err != nil {
			return true
		}
	}
	return len(b.filter) == 0
}

// verdict returns an error if a row has no figure, or misses its goal and that matters.
func (b *bench) verdict(check bool) error {
	var errs []error
	for i := range b.result.Rows {
		r := &b.result.Rows[i]
		switch v := r.verdict(); {
		case v == "no figure" && !strings.HasPrefix(r.Error, errLeftOut.Error()):
			errs = append(errs, fmt.Errorf("%s: %s", r.Name, r.Error))
		case v == "missed" && check && !b.short:
			errs = append(errs, fmt.Errorf("%s: ratio %.3g, wanted at least %.3g", r.Name, *r.Ratio, r.Wanted))
		}
	}
	return errors.Join(errs...)
}

func inJSON(r *result) {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	_ = e.Encode(r)
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

func main() {
	commands := map[string]func([]string) error{
		"run": run, "gateway": gateway, "running": running, "latency": latency, "table": table, "memory": memory, "count": count,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fail("usage: bench run|gateway|running|latency|table|memory|count [flags]; see scripts/bench --help")
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "bench:", why)
	os.Exit(1)
}
