package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests produce to testdata")

// madeUp is a result with rows of every kind.
func madeUp() *result {
	r := result{Machine: machine{
		CPU: "Example 9000", Cores: 4, L2: "1024K", L3: "32768K", MemoryGiB: 32, Virtual: true, Kernel: "6.1", DPDK: "22.11.11", Go: "go1.26", Hugepages: "2 MiB",
		Burst: 64, Runs: 64, RunMS: 30, Load: "0.00 0.01 0.05",
	}}
	add := func(name, unit, peer string, wanted float64, less bool, values, peers []float64) {
		x := row{Name: name, What: "what " + name + " is", Unit: unit, Peer: peer, Wanted: wanted, less: less}
		x.fill(values, peers, 0.05)
		r.Rows = append(r.Rows, x)
	}
	add("fwd64_1k_csum", "Mpps", "testpmd csum", 0.95, false, []float64{19, 19.2, 19.1}, []float64{20, 20, 20})
	add("nic64_1k_cold_csum", "Mpps", "testpmd csum", 0.95, false, []float64{19, 19.2, 19.1}, []float64{20, 20, 20})
	add("nic_mixed_cold_csum", "Mpps", "testpmd csum", 1, false, []float64{16, 16, 16}, []float64{15, 15, 15})
	add("nic_mixed_cold_5tswap", "Mpps", "testpmd 5tswap", 0.9, false, []float64{16, 16, 16}, []float64{24, 24, 24})
	add("fwd1k_csum", "Mpps", "testpmd csum", 0.9, false, []float64{6, 6, 6}, []float64{6.5, 6.5, 6.5})
	add("nic64_1m_cold_csum", "Mpps", "testpmd csum", 0.9, false, []float64{3, 4, 5}, []float64{4, 4, 4})
	add("cost_1k_csum", "ns", "testpmd csum", 0, true, []float64{52, 52, 52}, []float64{50, 50, 50})
	add("cost_16k_csum", "ns", "testpmd csum", 0, true, []float64{90, 90, 90}, []float64{80, 80, 80})
	add("cost_128k_csum", "ns", "testpmd csum", 0, true, []float64{100, 150, 200}, []float64{100, 100, 100})
	add("cost_1m_csum", "ns", "testpmd csum", 0, true, []float64{140, 140, 140}, []float64{110, 110, 110})
	add("cost_10m_csum", "ns", "testpmd csum", 0, true, []float64{170, 170, 170}, []float64{120, 120, 120})
	r.Rows = append(r.Rows, row{Name: "nic64_32k_ovs", What: "many flows", Unit: "Mpps", Peer: "OVS-DPDK", Error: "left out: it needs 15 GiB"})
	return &r
}

// TestGolden: what is printed and drawn of a result, byte for byte.
func TestGolden(t *testing.T) {
	r := madeUp()
	var picture bytes.Buffer
	if err := r.drawCosts(&picture); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		"golden.txt": r.text(), "golden-headline.md": r.headline(), "golden-tables.md": r.tables(), "golden-cost.svg": picture.String(),
	} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs (go test ./tools/bench -run TestGolden -update writes it):\n%s", path, got)
		}
	}
}

// TestHeadlineOfNothing: without its rows, the headline has no figures.
func TestHeadlineOfNothing(t *testing.T) {
	r := result{}
	got := r.headline()
	leading := 0
	for _, g := range groups() {
		if strings.HasPrefix(g.name, "nic") {
			leading++
		}
	}
	if n := strings.Count(got, "not measured"); leading == 0 || n != leading+len(sizes)*len(portRates) {
		t.Errorf("%d figures are missing in\n%s", n, got)
	}
}

// TestDocs: the page has its places for the figures. Writing them replaces only these, and draws the picture beside the page.
func TestDocs(t *testing.T) {
	document, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "performance.md")
	picture := filepath.Join(filepath.Dir(path), curveFile)
	if err := os.WriteFile(path, document, 0o600); err != nil {
		t.Fatal(err)
	}
	r := madeUp()
	var written []string
	for range 2 {
		if err := r.writeDocs(path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, string(text))
	}
	if written[0] != written[1] {
		t.Error("writing the same figures again changes the page")
	}
	for _, part := range []string{r.headline(), r.tables(), "](" + curveFile + ")"} {
		if !strings.Contains(written[0], part) {
			t.Errorf("the page has no\n%s", part)
		}
	}
	if prose(t, written[0]) != prose(t, string(document)) {
		t.Error("the page's prose changed")
	}
	if svg, err := os.ReadFile(picture); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("the picture: %v", err)
	}
}

// TestDocsWithoutCurve: too few points make no picture.
func TestDocsWithoutCurve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(headlineBegin+figuresEnd+tablesBegin+figuresEnd), 0o600); err != nil {
		t.Fatal(err)
	}
	r := madeUp()
	r.Rows = slices.DeleteFunc(r.Rows, func(x row) bool { return strings.HasPrefix(x.Name, "cost_") && x.Name != "cost_1k_csum" })
	if err := r.writeDocs(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), curveFile) {
		t.Errorf("%v; the page is\n%s", err, text)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), curveFile)); !os.IsNotExist(err) {
		t.Errorf("there is a picture: %v", err)
	}
}

// TestDocsWithoutPlaces: a page without the marks is an error, and isn't changed.
func TestDocsWithoutPlaces(t *testing.T) {
	for _, page := range []string{"", headlineBegin + figuresEnd, tablesBegin + figuresEnd, headlineBegin + tablesBegin} {
		path := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := madeUp().writeDocs(path); err == nil {
			t.Errorf("a page of %q was written", page)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != page {
			t.Errorf("%v; the page became %q", err, text)
		}
	}
}

// prose is a page without its figures.
func prose(t *testing.T, page string) string {
	t.Helper()
	for _, begin := range []string{headlineBegin, tablesBegin} {
		var err error
		if page, err = replaceFigures(page, begin, ""); err != nil {
			t.Fatal(err)
		}
	}
	return page
}
