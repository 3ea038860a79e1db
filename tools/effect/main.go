// Command effect prints the tables of docs/effect.md, or writes them there, from runs of the simulator. scripts/effect has its usage.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tables are the makers of tables, by the names of the comments in front of them.
var tables = map[string]func(*simulator) (rows []string, err error){
	"draws": draws, "scenarios": scenarios, "networks": networks, "sensitivity": sensitivity, "themis": themis,
}

// request is what the command line asks for.
type request struct {
	root   string // the checkout
	docs   bool
	tables []string
	lists  string // the folder with Themis' lists
}

func main() {
	asked, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "effect: %v; see scripts/effect --help\n", err)
		os.Exit(2)
	}
	if err := run(asked); err != nil {
		fmt.Fprintln(os.Stderr, "effect:", err)
		os.Exit(1)
	}
}

// parse reads the checkout's path, and the arguments of scripts/effect.
func parse(arguments []string) (asked request, err error) {
	if len(arguments) == 0 {
		return asked, errors.New("expected the checkout")
	}
	asked.root = arguments[0]
	for i := 1; i < len(arguments); i++ {
		switch name := arguments[i]; {
		case name == "--docs":
			asked.docs = true
		case name == "themis":
			i++
			if i == len(arguments) {
				return asked, errors.New("themis needs a folder, with topology.txt in it")
			}
			if asked.lists, err = filepath.Abs(arguments[i]); err != nil {
				return asked, err
			}
			if _, err := os.Stat(filepath.Join(asked.lists, "topology.txt")); err != nil {
				return asked, fmt.Errorf("themis needs a folder, with topology.txt in it: %w", err)
			}
			asked.tables = append(asked.tables, name)
		case tables[name] != nil:
			asked.tables = append(asked.tables, name)
		default:
			return asked, fmt.Errorf("%s is no table; expected draws, scenarios, networks, sensitivity or themis", name)
		}
	}
	if len(asked.tables) == 0 {
		asked.tables = []string{"draws", "scenarios", "networks"}
	}
	return asked, nil
}

// run makes the tables, one after the other.
func run(asked request) error {
	work, err := os.MkdirTemp("", "cnpgate-effect.")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	s := &simulator{root: asked.root, work: work, lists: asked.lists, program: filepath.Join(work, "cnpgate")}
	if _, err := s.output("go", "build", "-tags", "nodpdk", "-o", s.program, "./cmd/cnpgate"); err != nil {
		return err
	}
	for _, name := range asked.tables {
		rows, err := tables[name](s)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !asked.docs {
			fmt.Printf("\n%s:\n\n%s\n", name, strings.Join(rows, "\n"))
			continue
		}
		if err := put(filepath.Join(asked.root, "docs/effect.md"), name, rows); err != nil {
			return err
		}
	}
	return nil
}

// put replaces the table of a page behind the comment with its name.
func put(page, name string, rows []string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	at := slices.Index(lines, "<!-- scripts/effect "+name+" -->") + 1
	if at == 0 {
		return fmt.Errorf("%s has no comment for the table %s", page, name)
	}
	end := at
	for end < len(lines) && (lines[end] == "" || strings.HasPrefix(lines[end], "|")) {
		end++
	}
	lines = slices.Concat(lines[:at], []string{""}, rows, []string{""}, lines[end:])
	return os.WriteFile(page, []byte(strings.Join(lines, "\n")), 0o644)
}

// output runs a command in the checkout and returns what it prints.
func (s *simulator) output(name string, arguments ...string) (string, error) {
	c := exec.Command(name, arguments...)
	c.Dir = s.root
	return printed(c)
}

// printed runs a command and returns what it prints.
func printed(c *exec.Cmd) (string, error) {
	text, err := c.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%v: %w\n%s", c.Args, err, failed.Stderr)
	}
	return string(text), err
}
