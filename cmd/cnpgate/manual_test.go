package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
)

// manualPages are the manual pages by name.
func manualPages(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	c := manualCommand()
	top := root()
	top.AddCommand(c)
	if err := c.Flags().Set("keys", "../../docs/configuration.md"); err != nil {
		t.Fatal(err)
	}
	if err := c.RunE(c, []string{dir}); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(f)] = string(text)
	}
	if err != nil || len(pages) < 20 {
		t.Fatalf("%v: %d pages", err, len(pages))
	}
	return pages
}

var reference = regexp.MustCompile(`\\fB([a-z\\.-]+)\\fP\(([15])\)`)

// TestManualPages: every page has an example, refers to pages that exist, and leaves tables as they are; every example is a command line that parses.
func TestManualPages(t *testing.T) {
	pages := manualPages(t)
	for name, text := range pages {
		_, examples, _ := strings.Cut(text, ".SH EXAMPLES\n")
		if examples, _, _ = strings.Cut(examples, ".SH"); len(examples) < 20 {
			t.Errorf("%s has no example", name)
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			if to := strings.ReplaceAll(m[1], `\`, "") + "." + m[2]; pages[to] == "" {
				t.Errorf("%s refers to %s, which doesn't exist", name, to)
			}
		}
	}
	if !regexp.MustCompile(`(?m)^\.nf\n(.*\n)*?  SOURCE_QP          QP of the sender`).MatchString(pages["cnpgate-show-flows.1"]) {
		t.Errorf("the columns of show flows are not a table:\n%s", pages["cnpgate-show-flows.1"])
	}
	for path, lines := range manualExamples {
		for _, line := range lines {
			c, flags, err := root().Find(strings.Fields(parseable.ReplaceAllString(line, ""))[1:])
			if err == nil {
				err = c.ParseFlags(flags)
			}
			if err == nil && c.Args != nil {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if err == nil {
				err = c.ValidateRequiredFlags()
			}
			if err != nil || path != "cnpgate" && c.CommandPath() != path {
				t.Errorf("%s: %s: %v, %s", path, line, err, c.CommandPath())
			}
		}
	}
	if _, err := config.Parse("example", []byte(exampleConfiguration)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(pages["cnpgate.yaml.5"], "\\fBports[].rtt\\fP\n") {
		t.Error("cnpgate.yaml(5) has no ports[].rtt")
	}
}

// parseable is what of an example's line is not the command's.
var parseable = regexp.MustCompile(`^tcpdump .*\| | ([|>]|&&).*$`)

// TestFilled: words move to the next line of a narrow terminal; tables and paragraphs stay apart.
func TestFilled(t *testing.T) {
	const text = "One two three four five\nsix.\n\n  A  a table that is long\n  B  b\n  no column at all\n\nSeven eight nine ten."
	const want = "One two three\nfour five six.\n\n  A  a table\n     that is\n     long\n  B  b\n  no column at\n  all\n\nSeven eight\nnine ten."
	if got := filled(text, 14); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestHelpOnTerminal: at 80 columns no line of any help is broken by the terminal, and an example is still one command of a shell.
func TestHelpOnTerminal(t *testing.T) {
	const columns = usualColumns
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		text := &strings.Builder{}
		c.SetOut(text)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		examples := continued(c.Example, columns)
		if strings.Join(strings.Fields(strings.ReplaceAll(examples, "\\\n", "")), " ") != strings.Join(strings.Fields(c.Example), " ") {
			t.Errorf("%s: %s", c.CommandPath(), examples)
		}
		for line := range strings.SplitSeq(filled(strings.Replace(text.String(), c.Example, examples, 1), columns), "\n") {
			if len([]rune(line)) > columns && !strings.Contains(line, " --") { // flags are fitted by their package
				t.Errorf("%s: %d columns: %s", c.CommandPath(), len([]rune(line)), line)
			}
		}
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(root())
}
