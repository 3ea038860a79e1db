package docs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	statuses = []string{"met", "partly", "not yet", "not ours"}
	levels   = []string{"MUST", "MUST NOT", "SHALL", "SHALL NOT", "REQUIRED", "SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED", "MAY", "OPTIONAL"}
	owners   = []string{"an endpoint's", "the operator's", "a registry's", "a router's"}
)

const plain = "plain"

// requirement is a row of a draft's table.
type requirement struct {
	id, section, level, text, status, remark string
	where, proof                             []string
}

// compliance is the page: its tables by draft, in order, and what it says to be their sums.
type compliance struct {
	drafts   []string
	rows     map[string][]requirement
	keywords map[string]map[string]int // by draft and level, plain among them
	total    map[string]int            // keywords by draft
	summary  map[string][]int          // a number a status, and of rows
	mistakes []string
}

func (c *compliance) complain(format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Sprintf(format, args...))
}

// TestCompliance: what docs/compliance.md names is there, each row is whole, and its sums are those of its rows.
func TestCompliance(t *testing.T) {
	page, err := os.ReadFile("compliance.md")
	if err != nil {
		t.Fatal(err)
	}
	c := parse(string(page))
	c.check(os.DirFS(".."))
	for _, m := range c.mistakes {
		t.Error("compliance.md: " + m)
	}
	if len(c.drafts) != 5 {
		t.Errorf("compliance.md: tables of %d drafts, expected 5", len(c.drafts))
	}
}

func parse(page string) *compliance {
	c := &compliance{rows: map[string][]requirement{}, keywords: map[string]map[string]int{}, total: map[string]int{}, summary: map[string][]int{}}
	heading := ""
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			heading = line[3:]
			if strings.HasPrefix(heading, "draft-") {
				c.drafts = append(c.drafts, heading)
			}
		case heading == "Summary":
			c.parseSummary(line)
		case !strings.HasPrefix(heading, "draft-"):
		case strings.HasPrefix(line, "Keywords: "):
			c.parseKeywords(heading, line)
		case strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| No |"):
			c.parseRow(heading, line)
		}
	}
	return c
}

// cells are a table row's. A bar inside of a cell is a mistake, which the number of cells shows.
func cells(line string) []string {
	all := strings.Split(strings.Trim(line, "|"), "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

var linked = regexp.MustCompile(`^\[(.*)\]\(#(.*)\)$`)

func (c *compliance) parseSummary(line string) {
	if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Draft |") {
		return
	}
	all := cells(line)
	name := all[0]
	if m := linked.FindStringSubmatch(name); m != nil && m[1] == m[2] {
		name = m[1]
	}
	var sums []int
	for _, s := range all[1:] {
		n, err := strconv.Atoi(s)
		if err != nil {
			c.complain("summary of %s: %q is no number", name, s)
		}
		sums = append(sums, n)
	}
	c.summary[name] = sums
}

var (
	keywordLine = regexp.MustCompile(`^Keywords: (.*; (\d+) in all, a row each|none)\. Plain: (\d+) rows\.$`)
	keyword     = regexp.MustCompile(`([A-Z][A-Z ]+) (\d+)`)
)

func (c *compliance) parseKeywords(draft, line string) {
	m := keywordLine.FindStringSubmatch(line)
	if m == nil {
		c.complain(`%s: %q isn't "Keywords: LEVEL N, ...; N in all, a row each. Plain: N rows."`, draft, line)
		return
	}
	said := map[string]int{}
	for _, k := range keyword.FindAllStringSubmatch(m[1], -1) {
		said[k[1]], _ = strconv.Atoi(k[2])
	}
	c.total[draft], _ = strconv.Atoi(m[2])
	if n, _ := strconv.Atoi(m[3]); n > 0 {
		said[plain] = n
	}
	c.keywords[draft] = said
}

func (c *compliance) parseRow(draft, line string) {
	all := cells(line)
	if len(all) != 8 {
		c.complain("%s: %d cells, expected 8: %s", draft, len(all), line)
		return
	}
	c.rows[draft] = append(c.rows[draft], requirement{id: all[0], section: all[1], level: all[2], text: all[3], status: all[4],
		where: c.names(all[0], all[5]), proof: c.names(all[0], all[6]), remark: all[7]})
}

// names are the parts of a cell that are between backticks, and nothing but commas may be around them.
func (c *compliance) names(id, cell string) (all []string) {
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			all = append(all, part)
		} else if p := strings.TrimSpace(part); p != "" && p != "," {
			c.complain("%s: %q is outside of backticks", id, p)
		}
	}
	return all
}

func (c *compliance) check(root fs.FS) {
	t := &tree{root: root, text: map[string]string{}}
	all := make([]int, len(statuses)+1)
	for _, draft := range c.drafts {
		sums, found := make([]int, len(statuses)+1), map[string]int{}
		for i, r := range c.rows[draft] {
			if want := strconv.Itoa(i + 1); len(r.id) < 2 || r.id[1:] != want || r.id[0] != c.rows[draft][0].id[0] {
				c.complain("%s: row %s has the number %s", draft, want, r.id)
			}
			c.checkRow(&r)
			c.checkNames(&r, t)
			if s := slices.Index(statuses, r.status); s >= 0 {
				sums[s]++
				all[s]++
			}
			sums[len(statuses)]++
			all[len(statuses)]++
			found[r.level]++
		}
		if said := c.summary[draft]; !slices.Equal(said, sums) {
			c.complain("%s: the summary says %v, the rows are %v", draft, said, sums)
		}
		c.checkKeywords(draft, found)
	}
	if said := c.summary["All"]; !slices.Equal(said, all) {
		c.complain("the summary says %v in all, the rows are %v", said, all)
	}
	if len(c.summary) != len(c.drafts)+1 {
		c.complain("the summary has %d lines for %d drafts", len(c.summary), len(c.drafts))
	}
}

func (c *compliance) checkKeywords(draft string, found map[string]int) {
	sum := 0
	for level, n := range found {
		if level != plain {
			sum += n
		}
	}
	if said := c.keywords[draft]; !maps.Equal(said, found) || c.total[draft] != sum {
		c.complain("%s: keywords are said to be %v, %d in all; the rows have %v, %d in all", draft, said, c.total[draft], found, sum)
	}
}

var section = regexp.MustCompile(`^\d+(\.\d+)*$`)

// checkRow: a row says what it has to.
func (c *compliance) checkRow(r *requirement) {
	owner := slices.ContainsFunc(owners, func(o string) bool { return r.remark == o || strings.HasPrefix(r.remark, o+": ") })
	switch {
	case !section.MatchString(r.section):
		c.complain("%s: %q is no section", r.id, r.section)
	case r.level != plain && !slices.Contains(levels, r.level):
		c.complain("%s: %q is no level", r.id, r.level)
	case r.text == "":
		c.complain("%s: requires nothing", r.id)
	case !slices.Contains(statuses, r.status):
		c.complain("%s: %q is no status", r.id, r.status)
	case r.status == "met" && (len(r.where) == 0 || len(r.proof) == 0):
		c.complain("%s: met, but names no file or no test", r.id)
	case r.status == "partly" && (len(r.where) == 0 || len(r.proof) == 0 || r.remark == ""):
		c.complain("%s: partly met, but names no file, no test, or not what is missing", r.id)
	case r.status == "not yet" && r.remark == "":
		c.complain("%s: not yet, but doesn't say why", r.id)
	case (r.status == "not ours") != owner:
		c.complain("%s: %s, but the remark begins with %q", r.id, r.status, r.remark)
	}
}

// checkNames: the files, tests and cases of a row exist.
func (c *compliance) checkNames(r *requirement, t *tree) {
	for _, file := range r.where {
		if info, err := fs.Stat(t.root, file); err != nil || info.IsDir() || strings.HasSuffix(file, "_test.go") {
			c.complain("%s: no file %s that isn't a test", r.id, file)
		}
	}
	for _, p := range r.proof {
		if err := t.has(p); err != nil {
			c.complain("%s: %v", r.id, err)
		}
	}
}
