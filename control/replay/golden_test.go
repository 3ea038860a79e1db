package replay_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/control/report"
)

var update = flag.Bool("update", false, "write what the golden cases give now as what they are to give; review it before it is committed")

const goldenDir = "../../testdata/golden"

// goldenFabric is the data centre of a golden case that has no file of its own for it; testdata/golden/README.md says so too.
var goldenFabric = prefixes("10.1.0.0/16", "fd00:1::/32", "198.18.0.2/32", "fd00:18::2/128")

// fabricOf is the data centre of a golden case.
func fabricOf(t *testing.T, dir string) []netip.Prefix {
	t.Helper()
	own, err := os.ReadFile(filepath.Join(dir, "fabric"))
	if errors.Is(err, fs.ErrNotExist) {
		return goldenFabric
	}
	if err != nil {
		t.Fatal(err)
	}
	return prefixes(strings.Fields(string(own))...)
}

// TestGolden replays every case of testdata/golden and compares what left, in order and to the octet, and every counter.
func TestGolden(t *testing.T) {
	for _, name := range goldenCases(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(goldenDir, name)
			out, counters := goldenRun(t, dir)
			golden(t, filepath.Join(dir, "out.pcap"), out, diffCaptures)
			golden(t, filepath.Join(dir, "counters.yaml"), counters, diffLines)
			if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
				t.Errorf("nobody says what this case is about: %v", err)
			}
		})
	}
}

func goldenCases(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*/in.pcap"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden cases in %s: %v", goldenDir, err)
	}
	for _, p := range paths {
		names = append(names, filepath.Base(filepath.Dir(p)))
	}
	return names
}

// goldenRun replays a case. Forwarded frames and notifications come in one capture, in the order in which they left.
func goldenRun(t *testing.T, dir string) (out, counters []byte) {
	t.Helper()
	var left bytes.Buffer
	r := run(t, loadConfig(t, filepath.Join(dir, "config.yaml")), filepath.Join(dir, "in.pcap"), replay.Options{
		Fabric: fabricOf(t, dir), Forwarded: &left, Emitted: &headless{to: &left},
	})
	return left.Bytes(), nonZero(t, r)
}

// headless leaves a second capture's file header out, so that its frames go among those of the first.
type headless struct {
	to      *bytes.Buffer
	started bool
}

func (h *headless) Write(b []byte) (int, error) {
	if !h.started {
		h.started = true
		return len(b), nil
	}
	return h.to.Write(b)
}

// nonZero lists the counters that are not 0: those that aren't listed are 0.
func nonZero(t *testing.T, r *report.Report) []byte {
	t.Helper()
	counters := map[string]any{}
	for name, v := range r.Counters {
		by := maps.Clone(v.By)
		maps.DeleteFunc(by, func(_ string, n uint64) bool { return n == 0 })
		if len(by) > 0 {
			counters[name] = by
		} else if v.Value != 0 {
			counters[name] = v.Value
		}
	}
	b, err := yaml.Marshal(counters)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func golden(t *testing.T, path string, got []byte, diff func(t *testing.T, got, want []byte) string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s\nif that is how it should be, run the test with -update, and review the change", path, diff(t, got, want))
	}
}

// diffCaptures reports where two captures first differ.
func diffCaptures(t *testing.T, got, want []byte) string {
	g, w := frames(t, got), frames(t, want)
	for i := range min(len(g), len(w)) {
		if g[i].at != w[i].at || g[i].length != w[i].length || !bytes.Equal(g[i].octets, w[i].octets) {
			return fmt.Sprintf("frame %d of %d (want %d)\ngot:  %v\nwant: %v\n%s", i+1, len(g), len(w), g[i], w[i], diffOctets(g[i].octets, w[i].octets))
		}
	}
	if len(g) == len(w) {
		return "the file headers"
	}
	longer, which := g, "got, but not wanted"
	if len(w) > len(g) {
		longer, which = w, "wanted, but not got"
	}
	at := min(len(g), len(w))
	return fmt.Sprintf("%d frames, want %d; the first one %s:\n%v\n%s", len(g), len(w), which, longer[at], hex.Dump(longer[at].octets))
}

// diffOctets shows the lines of a hex dump that differ.
func diffOctets(got, want []byte) string {
	return diffLines(nil, []byte(hex.Dump(got)), []byte(hex.Dump(want)))
}

func diffLines(_ *testing.T, got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	var b strings.Builder
	for i := range max(len(g), len(w)) {
		line := func(of []string) string {
			if i < len(of) {
				return of[i]
			}
			return ""
		}
		if line(g) != line(w) {
			fmt.Fprintf(&b, "  got:  %s\n  want: %s\n", line(g), line(w))
		}
	}
	return b.String()
}
