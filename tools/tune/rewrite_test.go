package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRewrite: each use of a constant becomes a variable of the type that the place needs; constants and lengths of arrays stay.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.go")
	const before = `package a

const (
	lawTime = 20_000
	lawPart = 0.8
	lawBoth = 3 * lawTime
	other   = 7
)

var table [lawTime]byte

func f(x float64, n int64, small float32) (float64, bool) {
	lawLocal := 1.0
	return lawLocal + lawPart*x + lawTime + other, n > lawBoth/2 && small < lawPart
}
`
	if err := os.WriteFile(source, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	files, constants, err := rewrite(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("lawPart*x + lawTime", "float64(tuned_lawPart)*x + float64(tuned_lawTime)",
		"n > lawBoth/2", "n > int64(tuned_lawBoth)/2", "small < lawPart", "small < float32(tuned_lawPart)").Replace(before)
	if got := string(files[source]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(constants) != 3 || constants[0] != (tunable{"lawBoth", 60_000}) || constants[1] != (tunable{"lawPart", 0.8}) || constants[2] != (tunable{"lawTime", 20_000}) {
		t.Errorf("constants %v", constants)
	}
	if text := string(files[filepath.Join(dir, "tuned.go")]); !strings.Contains(text, `var tuned_lawPart = tuned("lawPart", lawPart)`) {
		t.Errorf("variables\n%s", text)
	}
	if low, high := constants[1].around(); low > 0.6401 || low < 0.6399 || high < 0.89 || high > 0.9 {
		t.Errorf("0.8 is compared with %v and %v", low, high)
	}
	if low, high := constants[2].around(); low != 10_000 || high != 40_000 {
		t.Errorf("20,000 is compared with %v and %v", low, high)
	}
	if _, _, err := rewrite(t.TempDir()); err == nil {
		t.Error("a folder without a package has no mistake")
	}
}
