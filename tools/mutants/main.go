// Command mutants breaks the code in many places, one at a time, and says which of these mutants no test finds. It changes no source: a mutant is an overlay for
// go test. The list of mutants is kept beside it, so that tests can be compared before and after a change of them.
//
//	go run ./tools/mutants [-draw N] [-of TEXT]
//
// runs the mutants of the list, or only those whose line contains TEXT. With -draw it writes a new list of N first. A mutant is found if a test of its package
// fails, or else one of a package that imports it; the list says which, and the next run begins with that test. Status 1 if one is not found.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

const listed = "tools/mutants/list.tsv"

func main() {
	drawn := flag.Int("draw", 0, "write a new list of so many mutants")
	of := flag.String("of", "", "only mutants whose line contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	missed, err := run(ctx, *drawn, *of)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if missed > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, drawn int, of string) (missed int, err error) {
	if drawn > 0 {
		all, err := draw(drawn)
		if err != nil {
			return 0, err
		}
		var b strings.Builder
		for _, m := range all {
			fmt.Fprintln(&b, m)
		}
		if err := os.WriteFile(listed, []byte(b.String()), 0o644); err != nil {
			return 0, err
		}
	}
	list, err := os.ReadFile(listed)
	if err != nil {
		return 0, fmt.Errorf("%w; run this in the checkout", err)
	}
	packages, err := readPackages()
	if err != nil {
		return 0, err
	}
	count := map[outcome]int{}
	lines := strings.Split(strings.TrimSuffix(string(list), "\n"), "\n")
	for i, line := range lines {
		if !strings.Contains(line, of) {
			continue
		}
		m, err := parseMutant(line)
		if err != nil {
			return 0, err
		}
		result, by, err := packages.try(ctx, m)
		if err != nil {
			return 0, err
		}
		count[result]++
		m.finder = by
		fmt.Printf("%-14s %s\n", result, m)
		lines[i] = m.String()
		if err := os.WriteFile(listed, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return 0, err
		}
	}
	fmt.Printf("%d found, %d not found, %d don't compile, %d not in the code any more\n", count[found], count[notFound], count[invalid], count[gone])
	return count[notFound], ctx.Err()
}
