package docs

import (
	"encoding/csv"
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

// compliance is the page with the rows of compliance.csv: which drafts it has, in order, the letter of each one's rows, and what it says to be their
// sums.
type compliance struct {
	drafts   []string
	letters  map[string]byte // by draft
	rows     map[byte][]requirement
	partly   map[string][]string       // cells of the table of what is missing, by number
	keywords map[string]map[string]int // by draft and level, plain among them
	total    map[string]int            // keywords by draft
	summary  map[string][]int          // a number a status, and of rows
	mistakes []string
}

func (c *compliance) complain(format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Sprintf(format, args...))
}

// TestCompliance: what docs/compliance.csv names is there, each row is whole, and the page's sums are those of the rows.
func TestCompliance(t *testing.T) {
	c := parse(readPage(t, "compliance.md"), readPage(t, "compliance.csv"))
	c.check(os.DirFS(".."))
	for _, m := range c.mistakes {
		t.Error("compliance: " + m)
	}
	if len(c.drafts) != 5 {
		t.Errorf("compliance.md: %d drafts, expected 5", len(c.drafts))
	}
}

var rowsLine = regexp.MustCompile(`^Rows ([A-Z])\.`)

func parse(page, table string) *compliance {
	c := &compliance{letters: map[string]byte{}, rows: map[byte][]requirement{}, partly: map[string][]string{}, keywords: map[string]map[string]int{},
		total: map[string]int{}, summary: map[string][]int{}}
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
		case heading == "Not met, or partly":
			if row := cells(line); strings.HasPrefix(line, "| ") && row[0] != "No" {
				c.partly[row[0]] = row
			}
		case !strings.HasPrefix(heading, "draft-"):
		case strings.HasPrefix(line, "Keywords: "):
			c.parseKeywords(heading, line)
		default:
			if m := rowsLine.FindStringSubmatch(line); m != nil {
				c.letters[heading] = m[1][0]
			}
		}
	}
	c.parseRows(table)
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

func (c *compliance) parseRows(table string) {
	all, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(all) == 0 || strings.Join(all[0], " ") != "No Section Level Requirement Status Where Proof Remark" {
		c.complain("the table can't be read: %v, %q", err, all)
		return
	}
	for _, row := range all[1:] {
		r := requirement{id: row[0], section: row[1], level: row[2], text: row[3], status: row[4], where: strings.Fields(row[5]), remark: row[7]}
		if row[6] != "" {
			r.proof = strings.Split(row[6], "; ")
		}
		if r.id == "" {
			c.complain("a row has no number")
			continue
		}
		c.rows[r.id[0]] = append(c.rows[r.id[0]], r)
	}
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
	c.checkRows(&tree{root: root, text: map[string]string{}})
	all := make([]int, len(statuses)+1)
	for _, draft := range c.drafts {
		rows := c.rows[c.letters[draft]]
		sums, found := make([]int, len(statuses)+1), map[string]int{}
		for _, r := range rows {
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

// checkRows: the rows of each letter have numbers from 1 on, belong to a draft and are whole, and the page says what is missing of those not met.
func (c *compliance) checkRows(t *tree) {
	letters := slices.Collect(maps.Values(c.letters))
	for letter, rows := range c.rows {
		if !slices.Contains(letters, letter) {
			c.complain("no draft has the rows %c", letter)
		}
		for i, r := range rows {
			if want := strconv.Itoa(i + 1); r.id[1:] != want {
				c.complain("row %c%s has the number %s", letter, want, r.id)
			}
			c.checkRow(&r)
			c.checkNames(&r, t)
			missing := r.status == "partly" || r.status == "not yet"
			if row, listed := c.partly[r.id]; missing != listed {
				c.complain("%s: %s, in the table of what is missing: %t", r.id, r.status, listed)
			} else if listed && (len(row) != 5 || row[1] != r.section || row[2] != r.level || row[4] == "") {
				c.complain("%s: the table of what is missing says %q, expected number, section %s, level %s, requirement, what is missing", r.id, row, r.section, r.level)
			}
			delete(c.partly, r.id)
		}
	}
	for id := range c.partly {
		c.complain("%s: in the table of what is missing, but there is no such row", id)
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
