//go:build live && long && !nodpdk

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// The tests here build the gateway with faults: at each statement of some functions it does what faultVariable asks for. The overlay of the build has them, no source of
// the gateway.

const faultVariable = "CNPGATE_TEST_FAULT"

// faulty are the functions of one file with faults.
type faulty struct {
	file      string // in the project
	functions []string
	after     string // only behind this text; "": anywhere
}

// takeover is what a standby executes from the moment when its devices are free until it forwards.
var takeover = []faulty{
	{"cmd/cnpgate/standby.go", []string{"standBy"}, "s.next.Await("},
	{"cmd/cnpgate/standby.go", []string{"open"}, ""},
	{"cmd/cnpgate/run.go", []string{"run"}, "opening()"},
	{"internal/dpdk/standby.go", []string{"Open", "leave"}, ""},
	{"internal/dpdk/devices.go", []string{"open", "openAll", "attach"}, ""},
	{"internal/dpdk/interface.go", []string{"setup", "open", "offerSockets"}, ""},
	{"internal/dpdk/handover.go", []string{"take", "newOffer"}, ""},
}

// stages are what a worker calls for each batch, or each step.
var stages = []faulty{
	{"dataplane/frames/batch.go", []string{"Parse"}, ""},
	{"dataplane/classify.go", []string{"classify"}, ""},
	{"dataplane/learn.go", []string{"learn"}, ""},
	{"dataplane/health.go", []string{"inspect"}, ""},
	{"dataplane/path.go", []string{"measure"}, ""},
	{"dataplane/pace.go", []string{"pace"}, ""},
	{"dataplane/queue.go", []string{"queue"}, ""},
	{"dataplane/transmit.go", []string{"offer", "completeTransmits"}, ""},
	{"dataplane/stats.go", []string{"publish"}, ""},
}

// buildFaulty builds the gateway with faults, and returns their names. first: only at the first statement of each function.
func buildFaulty(t *testing.T, what []faulty, first bool, fault string) (program string, names []string) {
	t.Helper()
	dir, sources, replaced := t.TempDir(), map[string]string{}, map[string]string{}
	for _, f := range what {
		path, err := filepath.Abs(filepath.Join("../..", f.file))
		if err != nil {
			t.Fatal(err)
		}
		if sources[path] == "" {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sources[path] = string(b)
		}
		set, found := token.NewFileSet(), 0
		file, err := parser.ParseFile(set, path, sources[path], parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		begin := strings.Index(sources[path], f.after)
		var offsets []int
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && slices.Contains(f.functions, d.Name.Name) {
				found++
				offsets = append(offsets, statements(set, d.Body, begin, first)...)
			}
		}
		if found == 0 || len(offsets) == 0 || begin < 0 {
			t.Fatalf("%s: %d functions with %d statements, expected some of %q behind %q", f.file, found, len(offsets), f.functions, f.after)
		}
		slices.Sort(offsets)
		text := sources[path]
		for _, at := range slices.Backward(offsets) {
			name := fmt.Sprintf("%s:%d", f.file, 1+strings.Count(text[:at], "\n"))
			names = append(names, name)
			text = text[:at] + fmt.Sprintf("fault(%q); ", name) + text[at:]
		}
		sources[path] = text
		added := filepath.Join(filepath.Dir(path), "fault_added.go")
		sources[added] = fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\nvar faultAt = os.Getenv(%q)\n\nfunc fault(at string) {\n\tif at == faultAt {\n\t\t%s\n\t}\n}\n\nvar _ = syscall.Kill\n",
			file.Name, faultVariable, fault)
	}
	for path, text := range sources {
		replaced[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		put(t, dir, filepath.Base(replaced[path]), []byte(text))
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "overlay.json", list)
	program = filepath.Join(dir, "cnpgate")
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	slices.Sort(names)
	return program, slices.Compact(names)
}

// statements are the offsets of the statements in a function that are behind begin; first: of the first one only.
func statements(set *token.FileSet, body *ast.BlockStmt, begin int, first bool) (offsets []int) {
	ast.Inspect(body, func(n ast.Node) bool {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.FuncLit:
			return false
		}
		for _, s := range list {
			switch s.(type) {
			case *ast.CaseClause, *ast.CommClause:
				continue
			}
			if at := set.Position(s.Pos()).Offset; at > begin && (!first || len(offsets) == 0) {
				offsets = append(offsets, at)
			}
		}
		return true
	})
	return offsets
}

// TestLiveStandbyDies: wherever in its takeover a standby is killed, the next one takes over from it. It loses only frames that the two before it held, and doubles and
// reorders none.
func TestLiveStandbyDies(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	weak, lines := buildFaulty(t, takeover, false, "_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)\n\t\tselect {}")
	reached := 0
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			enterNamespace(t)
			first := startGateway(t, program)
			t.Setenv(faultVariable, line)
			second := standByFor(t, weak, first)
			third := standByFor(t, program, first)
			a, b := newHost(t, "a1"), newHost(t, "b1")
			time.Sleep(500 * time.Millisecond) // they prepare
			end := a.load(1000)
			flows(t, "at first", b, startTime)
			third.signal(syscall.SIGSTOP) // so that the second one takes over
			first.signal(syscall.SIGKILL)
			<-first.ended
			dead := false
			select {
			case <-second.ended:
				dead = true
				reached++
			case <-time.After(takeoverTime):
				t.Fatal("the standby neither dies nor forwards")
			case <-forwarding(second): // the line is for faults of its own
				second.signal(syscall.SIGKILL)
				<-second.ended
			}
			took := outage(t, b, third, func() { third.signal(syscall.SIGCONT) })
			third.says(`"message":"The gateway is forwarding."`, 1)
			flows(t, "taken over", b, recoveryTime)
			end()
			b.settle()
			b.close()
			third.stop()
			d := deliveryOf(b.order, a.sent.Load())
			const kept = 2 * time.Second // how long frames wait in the sockets
			if d.lost > 2*64 && b.silence < kept || d.doubled > 0 || d.reordered > 0 {
				t.Errorf("of %d frames: %+v, expected at most 128 lost", a.sent.Load(), d)
			}
			t.Logf("died: %v; %+v; the third one forwards after %v", dead, d, took.Round(time.Millisecond))
			faulted(t, "The standby, killed", a, b, 0)
		})
	}
	t.Logf("%d of %d lines were reached", reached, len(lines))
	if reached < len(lines)/2 {
		t.Error("expected at least half of the lines")
	}
}

// forwarding is closed once a gateway's log says that it forwards.
func forwarding(p *process) <-chan struct{} {
	is := make(chan struct{})
	go func() {
		for begin := time.Now(); time.Since(begin) < takeoverTime; time.Sleep(5 * time.Millisecond) {
			if b, err := os.ReadFile(p.log); err == nil && strings.Contains(string(b), `"message":"The gateway is forwarding."`) {
				close(is)
				return
			}
		}
	}()
	return is
}

// TestLiveStagePanics: whichever stage of a worker panics, the process ends with its own status and says in which function, and the standby takes over.
func TestLiveStagePanics(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	weak, lines := buildFaulty(t, stages, true, `if _, err := os.Stat(os.Getenv("CNPGATE_TEST_FAULT_FILE")); err == nil { panic("a fault at " + at) }`)
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			enterNamespace(t)
			dir := t.TempDir()
			t.Setenv(faultVariable, line)
			t.Setenv("CNPGATE_TEST_FAULT_FILE", filepath.Join(dir, "now"))
			first := startWith(t, weak, strings.Replace(liveConfig, "management: {", "management: {sandbox: off, ", 1))
			next := standByFor(t, program, first)
			a, b := newHost(t, "a1"), newHost(t, "b1")
			end := a.load(1000)
			flows(t, "at first", b, startTime)
			var status error
			took := outage(t, b, next, func() {
				put(t, dir, "now", nil)
				f := testkit.RoCE{Src: "10.1.0.1", Dst: "10.2.0.1", DestQP: 1, SourceQP: 1, Opcode: packet.RCWriteMiddle, Size: 500}.Frame()
				_ = syscall.Sendto(a.send, f, 0, nil)
				status = <-first.ended
			})
			var exit *exec.ExitError
			if !errors.As(status, &exit) || exit.ExitCode() != control.PanicStatus {
				t.Errorf("the gateway ends with %v, expected status %d", status, control.PanicStatus)
			}
			first.says(`"panic":"a fault at `+line, 1)
			next.says(`"message":"The gateway is forwarding."`, 1)
			t.Logf("the standby forwards after %v", took.Round(time.Millisecond))
			end()
			b.settle()
			b.close()
			faulted(t, "A worker panics", a, b, 0)
			next.stop()
		})
	}
}
