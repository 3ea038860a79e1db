// Command figures is the source of the figures in the documents: it takes each from a run and compares it with what a page or picture has, or writes it there
// (scripts/figures). Simulations are run anew, as they always give the same. Figures of other runs are in the files that these have written: docs/performance.md
// (scripts/bench --docs), and testdata/figures (scripts/demo, scripts/try, scripts/soak).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	write := flag.Bool("write", false, "write the figures into the pages and pictures, in place of comparing them")
	root := flag.String("root", ".", "the checkout")
	flag.Parse()
	if err := run(*root, *write); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// run compares each file with its figures, or writes those that differ.
func run(root string, write bool) error {
	s, err := readSources(root)
	if err != nil {
		return err
	}
	pages, err := s.pages()
	if err != nil {
		return err
	}
	for _, p := range pages {
		name := filepath.Join(root, p.file)
		before, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		after, err := p.with(string(before))
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", p.file, err)
		case after == string(before):
		case !write:
			return fmt.Errorf("%s differs from its sources%s; scripts/figures writes it", p.file, firstDifference(string(before), after))
		default:
			fmt.Println("figures: writes", p.file)
			if err := os.WriteFile(name, []byte(after), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
