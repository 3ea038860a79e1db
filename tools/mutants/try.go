package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// outcome is what became of a mutant.
type outcome string

const (
	found    outcome = "found"
	notFound outcome = "NOT FOUND"
	invalid  outcome = "doesn't compile"
	gone     outcome = "gone"
)

// tags: without devices, so that it runs anywhere.
const tags = "nodpdk"

// packages are those that import each package of the module, also in their tests, by its folder. The nearest, which test it most directly, come first.
type packages map[string][]string

func readPackages() (packages, error) {
	c := exec.Command("go", "list", "-deps", "-tags", tags, "-f", `{{.Dir}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}`, "./...")
	text, err := c.Output()
	if err != nil {
		return nil, err
	}
	module, err := exec.Command("go", "list", "-m").Output()
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	all := packages{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		importer, err := filepath.Rel(here, fields[0])
		if err != nil {
			return nil, err
		}
		for _, name := range fields[1:] {
			if dir, own := strings.CutPrefix(name, strings.TrimSpace(string(module))+"/"); own && dir != importer && !slices.Contains(all[dir], importer) && !strings.HasPrefix(importer, "tools") {
				all[dir] = append(all[dir], importer)
			}
		}
	}
	return all, nil
}

// try runs the test that found a mutant before, then the tests of its package and, if they pass, of those that import it. It also returns which test failed.
func (p packages) try(ctx context.Context, m mutant) (result outcome, by string, err error) {
	text, ok, err := m.apply()
	if errors.Is(err, os.ErrNotExist) || err == nil && !ok {
		return gone, "", nil
	} else if err != nil {
		return "", "", err
	}
	work, err := os.MkdirTemp("", "cnpgate-mutant.")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	file, err := filepath.Abs(m.file)
	if err != nil {
		return "", "", err
	}
	changed, overlay := filepath.Join(work, "mutant.go"), filepath.Join(work, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err == nil {
		err = errors.Join(os.WriteFile(changed, text, 0o600), os.WriteFile(overlay, replace, 0o600))
	}
	if err != nil {
		return "", "", err
	}
	dir := filepath.Dir(m.file)
	if tested, name, ok := strings.Cut(m.finder, " "); ok && failure(ctx, overlay, tested, "^"+name+"$") == name {
		return found, m.finder, cmp.Or(ctx.Err(), passes(ctx, tested, name))
	}
	if exec.CommandContext(ctx, "go", "build", "-tags", tags, "-overlay", overlay, "./"+dir).Run() != nil {
		return invalid, "", ctx.Err()
	}
	for _, tested := range append([]string{dir}, p[dir]...) {
		if failed := failure(ctx, overlay, tested, "."); failed != "" {
			return found, tested + " " + failed, cmp.Or(ctx.Err(), passes(ctx, tested, failed))
		}
	}
	return notFound, "", nil
}

// failure is the first of some tests of a package that fails, with what an overlay replaces, or nothing without one.
func failure(ctx context.Context, overlay, tested, names string) (failed string) {
	c := exec.CommandContext(ctx, "go", "test", "-tags", tags, "-overlay", overlay, "-vet=off", "-failfast", "-timeout", "10m", "-run", names, "./"+tested)
	c.Env = append(os.Environ(), "RAPID_NOFAILFILE=1") // later runs would try what a mutant fails with
	out, err := c.CombinedOutput()
	if err == nil {
		return ""
	}
	return firstFailure(string(out))
}

// passes returns an error if a test also fails without a mutant, so that it finds none.
func passes(ctx context.Context, tested, name string) error {
	if failure(ctx, "", tested, "^"+name+"$") != name {
		return nil
	}
	return fmt.Errorf("%s of %s also fails without a mutant; expected tests that pass, as after scripts/build", name, tested)
}

// firstFailure is the name of the first test that failed, or what else go test says of its end.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			return strings.Fields(name)[0]
		}
		if strings.HasPrefix(line, "panic: ") {
			return line
		}
	}
	return "no test's name"
}
