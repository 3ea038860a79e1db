// Command sbom prints a software bill of materials (CycloneDX 1.5, JSON) of a Go binary: the modules recorded in it, the Go release, and
// the system libraries that it is linked with. scripts/release runs it. The same binary gives the same bytes. (cyclonedx-gomod lists only the
// modules, and a second tool would have to add the libraries.)
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: sbom BINARY VERSION [LIBRARY=VERSION...], with the Debian packages of libraries")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	scripts, err := vendored("web/vendor")
	if err != nil {
		return err
	}
	libraries := map[string]string{}
	for _, l := range args[2:] {
		name, version, found := strings.Cut(l, "=")
		if !found {
			return fmt.Errorf("%q: expected a library's Debian package and its version, such as librte-eal23=22.11", l)
		}
		libraries[name] = version
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(billOf(info, args[1], libraries, scripts))
}

// bill is a CycloneDX document, with the fields that this program writes.
type bill struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	URL        string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOf describes a binary from the information recorded by its build, and the Debian packages, with versions, of the libraries it is
// linked with. scripts are the libraries of the page, which the binary has unless it was built without it.
func billOf(info *debug.BuildInfo, version string, libraries map[string]string, scripts []component) bill {
	program := component{Type: "application", Name: info.Main.Path, Version: version, URL: "pkg:golang/" + info.Main.Path + "@" + url.PathEscape(version)}
	program.Ref = program.URL
	program.Licenses = make([]license, 1)
	program.Licenses[0].License.ID = "Apache-2.0"
	for _, s := range info.Settings {
		if s.Key == "-tags" || s.Key == "CGO_ENABLED" || s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "GOAMD64" {
			program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	components := []component{module("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, module(m.Path, m.Version, m.Sum))
	}
	if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "noweb")
	}) {
		components = append(components, scripts...)
	}
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		u := "pkg:deb/debian/" + name + "@" + url.PathEscape(libraries[name])
		components = append(components, component{Type: "library", Ref: u, Name: name, Version: libraries[name], URL: u})
	}
	uses := dependency{Ref: program.Ref}
	for _, c := range components {
		uses.DependsOn = append(uses.DependsOn, c.Ref)
	}
	return bill{
		Schema: "http://cyclonedx.org/schema/bom-1.5.schema.json", Format: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata: metadata{program}, Components: components, Dependencies: []dependency{uses},
	}
}

// module is a Go module; sum is as in go.sum, "" without one.
func module(path, version, sum string) component {
	u := "pkg:golang/" + path + "@" + url.PathEscape(version)
	c := component{Type: "library", Ref: u, Name: path, Version: version, URL: u}
	if text, ok := strings.CutPrefix(sum, "h1:"); ok {
		if b, err := base64.StdEncoding.DecodeString(text); err == nil {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(b)}}
		}
	}
	return c
}

// vendored are the JavaScript libraries in a folder, each with its package.json.
func vendored(folder string) (all []component, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*", "package.json"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s has no library with a package.json; expected to run in the project's folder", folder)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var p struct{ Name, Version, License string }
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		u := "pkg:npm/" + p.Name + "@" + url.PathEscape(p.Version)
		c := component{Type: "library", Ref: u, Name: p.Name, Version: p.Version, URL: u, Licenses: make([]license, 1)}
		c.Licenses[0].License.ID = p.License
		all = append(all, c)
	}
	return all, nil
}
