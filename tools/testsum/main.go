// Testsum adds up the reports of several runs of 'go test -json': a line for each run, the output of failures in full, and a last line of
// the form "12 passed, 0 failed". It runs no test itself. A run without tests is a failure, as is one that ended early. With -watch it follows
// the runs whose reports are written to a folder, and prints how far they are.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testsum RUN.json...\n       testsum -watch FOLDER TIMES")
		os.Exit(2)
	}
	if os.Args[1] == "-watch" && len(os.Args) == 4 {
		watch(os.Stderr, os.Args[2], os.Args[3])
		return
	}
	var runs []run
	for _, name := range os.Args[1:] {
		f, err := os.Open(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "testsum:", err)
			os.Exit(2)
		}
		runs = append(runs, read(strings.TrimSuffix(filepath.Base(name), ".json"), f))
		f.Close()
	}
	if !report(os.Stdout, runs) {
		os.Exit(1)
	}
}

// report prints the sum and returns whether everything passed.
func report(w io.Writer, runs []run) bool {
	var passed, failed, skipped int
	for _, r := range runs {
		for _, f := range r.failed {
			fmt.Fprintf(w, "\n--- failed in %s: %s\n%s", r.name, f.name, f.output)
		}
	}
	for _, r := range runs {
		for _, f := range r.skipped {
			fmt.Fprintf(w, "\n--- skipped in %s: %s\n%s", r.name, f.name, f.output)
		}
	}
	fmt.Fprintln(w)
	for _, r := range runs {
		fmt.Fprintf(w, "%-28s %5d passed %5d failed %5d skipped\n", r.name, r.passed, len(r.failed), len(r.skipped))
		passed, failed, skipped = passed+r.passed, failed+len(r.failed), skipped+len(r.skipped)
	}
	line := fmt.Sprintf("%d passed, %d failed", passed, failed)
	if skipped > 0 {
		line += fmt.Sprintf(", %d skipped", skipped)
	}
	fmt.Fprintln(w, line)
	return failed == 0 && passed > 0
}
