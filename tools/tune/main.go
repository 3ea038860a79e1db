// Command tune lets a build of cnpgate run with other constants of the control law, to measure what each is worth. It changes no source: it writes
// copies of the files in which constants are used, for go build -overlay. In that build, CNPGATE_TUNE="NAME=VALUE" replaces a constant.
//
//	go run ./tools/tune DIR ./congestion ./dataplane
//
// writes DIR/overlay.json and prints a line for each constant whose name begins with law: its name, its value, half of it and its double.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "tune: expected the folder to write to, and then folders of packages")
		os.Exit(2)
	}
	if err := tune(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "tune:", err)
		os.Exit(1)
	}
}

// tune writes the overlay of some packages to a folder, and prints their constants.
func tune(to string, packages []string) error {
	overlay := map[string]string{}
	for n, dir := range packages {
		files, constants, err := rewrite(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		for path, text := range files {
			copied := filepath.Join(to, strconv.Itoa(n)+"-"+filepath.Base(path))
			if err := os.WriteFile(copied, text, 0o600); err != nil {
				return err
			}
			overlay[path] = copied
		}
		for _, c := range constants {
			low, high := c.around()
			fmt.Println(c.name, show(c.value), show(low), show(high))
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "overlay.json"), text, 0o600)
}

func show(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
