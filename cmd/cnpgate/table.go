package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/columns"
)

// paper is an output with a width, which tables and texts keep to.
type paper struct {
	io.Writer
	columns int // 0: any
}

// paperOf is an output with the width of its terminal, or the usual one; any width if wide.
func paperOf(to io.Writer, wide bool) paper {
	switch n := columnsOfTerminal(to); {
	case wide:
		return paper{to, 0}
	case n >= leastColumns:
		return paper{to, n}
	}
	return paper{to, usualColumns}
}

func wideFlag(c *cobra.Command, wide *bool) {
	c.Flags().BoolVar(wide, "wide", false, "print all columns, however wide the output")
}

// table prints rows in columns. On paper it leaves out columns in which no row has anything, then, as long as it is too wide, those that matter least, and names
// these.
type table struct {
	to     io.Writer
	header []string // nil: none
	rows   [][]string
	least  []string // names of columns, the first one to be left out first
	gap    int      // columns between two cells
	before string   // each line
	labels []string // before the cells of a column that have a line of their own; nil: none
	silent bool     // about columns that are left out
	below  int      // the column from which on each one has a line of its own below the row; 0: none
}

// newTable begins a table with a header, whose cells are divided by tabs; "" for none.
func newTable(to io.Writer, header string, least ...string) *table {
	t := &table{to: to, least: least, gap: cellGap}
	if header != "" {
		t.header = strings.Split(header, "\t")
	}
	return t
}

// row adds a row of cells; those of a text with tabs are several.
func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	t.line(texts)
}

// line adds a row of texts.
func (t *table) line(cells []string) {
	t.rows = append(t.rows, strings.Split(strings.Join(cells, "\t"), "\t"))
}

// Flush writes the table.
func (t *table) Flush() error {
	rows := t.rows
	if t.header != nil {
		rows = append([][]string{t.header}, rows...)
	}
	count := 0
	for _, row := range rows {
		count = max(count, len(row))
	}
	widths := widthsOf(rows, count)
	p, narrow := t.to.(paper)
	narrow = narrow && p.columns > 0
	shown, below := make([]bool, count), count
	for i := range shown {
		shown[i] = !narrow || t.header == nil || len(t.rows) == 0 || slices.ContainsFunc(t.rows, func(row []string) bool { return i < len(row) && hasText(row[i]) })
	}
	if narrow && t.below > 0 && t.width(widths, shown) > p.columns {
		below = t.below
		clear(shown[below:])
	}
	var left []string
	for _, name := range t.least {
		if !narrow || t.width(widths, shown) <= p.columns {
			break
		}
		if i := slices.Index(t.header, name); i >= 0 && shown[i] {
			shown[i], left = false, append(left, name)
		}
	}
	for k := len(left) - 1; k >= 0; k-- { // those that fit after all, as others needed more
		i := slices.Index(t.header, left[k])
		if shown[i] = true; t.width(widths, shown) > p.columns {
			shown[i] = false
			continue
		}
		left = slices.Delete(left, k, k+1)
	}
	var text strings.Builder
	for i, row := range rows {
		text.WriteString(t.aligned(widths, row, shown) + "\n")
		for k := below; k < len(row) && (i > 0 || t.header == nil); k++ {
			if hasText(row[k]) {
				label := ""
				if k < len(t.labels) {
					label = t.labels[k]
				}
				text.WriteString(broken("    ", "    ", label+row[k], p.columns-4))
			}
		}
	}
	if len(left) > 0 && !t.silent {
		text.WriteString(broken("", "", "Not shown: "+strings.Join(left, ", ")+" (--wide).", p.columns))
	}
	_, err := io.WriteString(t.to, text.String())
	return err
}

// printTable prints rows with the columns of their kind.
func printTable[T any](to io.Writer, of *columns.Table[T], rows []T) error {
	return tableOf(to, of.Text(), rows).Flush()
}

// tableOf is a table of rows in some columns.
func tableOf[T any](to io.Writer, all []columns.Column, rows []T) *table {
	w := newTable(to, strings.Join(headers(all), "\t"), leastOf(all)...)
	if i := slices.IndexFunc(all, func(c columns.Column) bool { return c.As == columns.Long || c.As == columns.Counts }); i > 0 {
		w.below, w.labels = i, make([]string, len(all))
		for k := range all {
			if all[k].As == columns.Counts { // which doesn't say what is counted
				w.labels[k] = strings.ToLower(all[k].Name) + ": "
			}
		}
	}
	for i := range rows {
		w.line(columns.Cells(all, &rows[i]))
	}
	return w
}

// headers are the names of columns; that of a QP directly behind its host is QP.
func headers(all []columns.Column) (names []string) {
	for i := range all {
		if i > 0 && all[i].Name == all[i-1].Name+"_QP" {
			names = append(names, "QP")
			continue
		}
		names = append(names, all[i].Name)
	}
	return names
}

// leastOf are the headers of the columns that a narrow output leaves out, in that order.
func leastOf(all []columns.Column) []string {
	some := slices.DeleteFunc(slices.Clone(all), func(c columns.Column) bool { return c.Least == 0 })
	slices.SortFunc(some, func(a, b columns.Column) int { return cmp.Compare(a.Least, b.Least) })
	return headers(some)
}

// hasText reports whether a cell says anything.
func hasText(cell string) bool { return cell != "" && cell != "-" }

const cellGap = 2 // columns

// widthsOf are the widths of so many columns, without the gaps behind them.
func widthsOf(rows [][]string, count int) []int {
	widths := make([]int, count)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// width is the width of the columns that are shown.
func (t *table) width(widths []int, shown []bool) (n int) {
	for i, is := range shown {
		if is {
			n += widths[i] + t.gap
		}
	}
	return n + len(t.before) - t.gap
}

// aligned is a row in its columns.
func (t *table) aligned(widths []int, row []string, shown []bool) string {
	var line strings.Builder
	for i, cell := range row {
		if shown[i] {
			fmt.Fprintf(&line, "%-*s", widths[i]+t.gap, cell)
		}
	}
	return strings.TrimRight(t.before+line.String(), " ")
}
