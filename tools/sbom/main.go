// Command sbom prints a software bill of materials (CycloneDX 1.5, JSON) of a Go binary: the modules recorded in it, the Go release, and
// the system libraries that it is linked with. scripts/release runs it. The same binary gives the same bytes.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
	return e.Encode(billOf(info, args[1], libraries))
}
