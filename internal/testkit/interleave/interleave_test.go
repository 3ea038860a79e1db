package interleave_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

const root = "../../.."

// modelled are the packages with models, in files of the build tag interleave.
var modelled = []string{"./flowtable", "./pairing/store", "./ratelimit", "./dataplane/mailbox", "./dataplane/egress", "./dataplane/notify"}

// mutant is a change to the line on which a protocol rests.
type mutant struct{ pkg, file, from, to string }

var mutants = []mutant{
	{"./flowtable", "reader.go", "return r.entryOf(x).state.CompareAndSwap(uint64(was), uint64(was.with(a)))", "r.entryOf(x).state.Store(uint64(was.with(a)))\n	return true"},
	{"./flowtable", "entry.go", "return after, (before^after)&flowMask == 0", "return after, true"},
	{"./flowtable", "entry.go", "	e.state.Store(old &^ liveBit)\n", "	e.state.Store(old&^(generationOne-1) + generationOne | liveBit)\n"},
	{"./flowtable", "reader.go", "return k, (s^State(e.state.Load()))&flowMask == 0", "return k, true"},
	{"./pairing/store", "slot.go", "word.CompareAndSwap(was, now)", "word.Store(now)"},
	{"./pairing/store", "slot.go", "s.p.owner.CompareAndSwap(owner, 0) {", "s.p.owner.Load() == owner {\n		s.p.owner.Store(0)"},
	{"./pairing/store", "slot.go", "s.p.owner.CompareAndSwap(owner, owner|moving) {", "s.p.owner.CompareAndSwap(owner, owner) {"},
	{"./pairing/store", "slot.go", "s.p.owner.Store(owner&^moves | (owner+moved)&moves)", "s.p.owner.Store(owner)"},
	{"./pairing/store", "slot.go", "s.p.peer.CompareAndSwap(uint64(was), uint64(now))", "s.p.peer.Store(uint64(now))"},
	{"./pairing/store", "store.go", "return l.held.CompareAndSwap(0, 1)", "if l.held.Load() == 0 {\n		l.held.Store(1)\n		return true\n	}\n	return false"},
	{"./pairing/store", "path.go", "if v&1 != 0 || p.version.Load() != v {", "if p.version.Load() != v {"},
	{"./pairing/store", "path.go", "if v&1 != 0 || p.version.Load() != v {", "if v&1 != 0 {"},
	{"./pairing/store", "path.go", "if v&1 != 0 || !p.version.CompareAndSwap(v, v+1) {", "p.version.Store(v + 1)\n	if v&1 != 0 {"},
	{"./ratelimit", "rate.go", "if tat.CompareAndSwap(was, now+ahead+r.gap) {", "if tat.Store(now + ahead + r.gap); true {"},
	{"./ratelimit", "destinations.go", "if way.CompareAndSwap(was, tag|uint64(now+ahead+r.gap)&tatMask) {", "if way.Swap(tag|uint64(now+ahead+r.gap)&tatMask) == was || true {"},
	{"./ratelimit", "destinations.go", "if set[i].CompareAndSwap(w, tag|(w-uint64(r.gap))&tatMask) {", "if set[i].Store(tag | (w-uint64(r.gap))&tatMask); true {"},
	{"./dataplane/mailbox", "mailbox.go", "== Size", "== Size+1"},
	{"./dataplane/mailbox", "mailbox.go", "	m.of[at%Size] = s\n	m.written.Store(at + 1)\n", "	m.written.Store(at + 1)\n	m.of[at%Size] = s\n"},
	{"./dataplane/mailbox", "mailbox.go", "	s = m.of[at%Size]\n	m.read.Store(at + 1)\n", "	m.read.Store(at + 1)\n	s = m.of[at%Size]\n"},
	{"./dataplane/mailbox", "request.go", "return r.asked.CompareAndSwap(nil, of)", "if r.asked.Load() != nil {\n		return false\n	}\n	r.asked.Store(of)\n	return true"},
	{"./dataplane/mailbox", "request.go", "r.asked.CompareAndSwap(of, nil)", "r.asked.Store(nil)"},
	{"./dataplane/notify", "history.go", "if from+size >= h.claimed.Load() && s.Number == from {", "if s.Number == from {"},
	{"./dataplane/notify", "history.go", "if from+size >= h.claimed.Load() && s.Number == from {", "if from+size >= h.claimed.Load() {"},
	{"./dataplane/notify", "history.go", "		h.claimed.Store(h.until)\n", ""},
	{"./dataplane/notify", "history.go", "if s.readers.Load() != 0 {", "if s.readers.Load() > 1 {"},
	{"./dataplane/egress", "line.go", "if l.free.CompareAndSwap(old, free) {", "if l.free.Store(free); true {"},
	{"./dataplane/egress", "line.go", "l.free.Add(-total)", "l.free.Store(l.free.Load() - total)"},
	{"./dataplane/egress", "published.go", "return c.published.peak.Swap(0)", "defer c.published.peak.Store(0)\n	return c.published.peak.Load()"},
}

// TestInterleavings runs the models of the real code (go test -v shows the numbers of orders). In the long mode, each model fails for a mutant of the line on which its
// protocol rests.
func TestInterleavings(t *testing.T) {
	if out, err := models(t, nil, modelled...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
	for _, m := range mutants {
		t.Run(m.file+": "+m.from, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(root, m.pkg, m.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(source, []byte(m.from)); n != 1 {
				t.Fatalf("it is in the file %d times, expected once", n)
			}
			if effort.Long == 0 {
				return
			}
			if out, err := models(t, &m, m.pkg); err == nil || !strings.Contains(out, "--- FAIL: TestInterleave") {
				t.Errorf("no model fails: %v\n%s", err, out)
			}
		})
	}
}

// models runs the models of packages, in a build in which each file of the project that imports sync/atomic imports this package instead, and with a mutant unless it is nil.
func models(t *testing.T, m *mutant, packages ...string) (out string, err error) {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, filepath.Join(top, "internal/testkit/interleave")) {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := strings.Replace(string(source), "\t\"sync/atomic\"\n", "\tatomic \"github.com/cnpgate/cnpgate/internal/testkit/interleave\"\n", 1)
		text = strings.Replace(text, "import \"sync/atomic\"\n", "import atomic \"github.com/cnpgate/cnpgate/internal/testkit/interleave\"\n", 1)
		if m != nil && path == filepath.Join(top, m.pkg, m.file) {
			text = strings.Replace(text, m.from, m.to, 1)
		}
		if text == string(source) {
			return nil
		}
		replaced[path] = filepath.Join(dir, strconv.Itoa(len(replaced))+".go")
		return os.WriteFile(replaced[path], []byte(text), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", append([]string{"test", "-overlay", overlay, "-tags", "nodpdk,purego,interleave", "-vet=off", "-v", "-run", "^TestInterleave"}, packages...)...)
	c.Dir = top
	b, err := c.CombinedOutput()
	return string(b), err
}
