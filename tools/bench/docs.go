package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Where the figures of docs/performance.md begin and end.
const (
	headlineBegin = "<!-- scripts/bench --docs writes the headline from here -->\n"
	tablesBegin   = "<!-- scripts/bench --docs writes the tables from here -->\n"
	figuresEnd    = "<!-- to here -->\n"
)

// curveFile is the picture of the cost curve, beside the page.
const curveFile = "performance-cost.svg"

// writeDocs replaces the figures of a document, and draws the cost curve beside it if at least two of its points were measured.
func (r *result) writeDocs(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	tables, picture := r.tables(), bytes.Buffer{}
	if ours, _ := r.costs(); len(ours) > 1 {
		if err := r.drawCosts(&picture); err != nil {
			return err
		}
		tables = "![CPU time of a packet by number of flows](" + curveFile + ")\n\n" + tables
	}
	text, err := replaceFigures(string(old), headlineBegin, r.headline())
	if err == nil {
		text, err = replaceFigures(text, tablesBegin, tables)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if picture.Len() > 0 {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), curveFile), picture.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// replaceFigures replaces what is between a begin and the end after it.
func replaceFigures(document, begin, figures string) (string, error) {
	head, rest, ok := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, figuresEnd)
	if !ok || !closed {
		return "", fmt.Errorf("expected the lines %q and %q", begin, figuresEnd)
	}
	return head + begin + "\n" + figures + "\n" + figuresEnd + after, nil
}
