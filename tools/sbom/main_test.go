package main

import (
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestBill(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.org/program"},
		Settings: []debug.BuildSetting{{Key: "-tags", Value: "nodpdk"}, {Key: "vcs.time", Value: "2026-01-01T00:00:00Z"}},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v2.0.0+incompatible"}},
		},
	}
	scripts, err := vendored("../../web/vendor")
	if err != nil || len(scripts) != 1 || scripts[0].Name != "uplot" || scripts[0].Licenses[0].License.ID != "MIT" {
		t.Fatalf("%v, %+v", err, scripts)
	}
	with := billOf(info, "v0.1.0", nil, scripts)
	if last := with.Components[len(with.Components)-1]; last.Name != "uplot" {
		t.Errorf("the last component is %+v, want uplot", last)
	}
	info.Settings[0].Value = "nodpdk,,noweb"
	b := billOf(info, "v0.1.0", map[string]string{"librte-eal23": "22.11.11-0+deb12u1", "libc6": "2.36"}, scripts)
	var names []string
	for _, c := range b.Components {
		names = append(names, c.Name+" "+c.Version)
	}
	if want := []string{"std 1.26.8", "example.org/a v1.0.0", "example.org/c v2.0.0+incompatible", "libc6 2.36", "librte-eal23 22.11.11-0+deb12u1"}; !slices.Equal(names, want) {
		t.Errorf("components %q, want %q", names, want)
	}
	if h := b.Components[1].Hashes; len(h) != 1 || h[0].Content != "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" {
		t.Errorf("hashes of example.org/a: %v", h)
	}
	if len(b.Dependencies) != 1 || len(b.Dependencies[0].DependsOn) != len(b.Components) {
		t.Errorf("dependencies: %v", b.Dependencies)
	}
	text, err := json.Marshal(b)
	if err != nil || strings.Contains(string(text), "2026") || !strings.Contains(string(text), `"go:build:-tags"`) {
		t.Errorf("%v: %s", err, text)
	}
}
