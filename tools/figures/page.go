package main

import (
	"fmt"
	"regexp"
	"strings"
)

// page is a file with figures.
type page struct {
	file      string // below the checkout
	sentences []sentence
	blocks    []block
	whole     string // the whole file, if it is drawn; else ""
}

// sentence is text around figures. In text, each # stands for a figure; it must be in the file exactly once. White space in it matches line breaks, too.
type sentence struct {
	text    string
	figures []string
}

// block is the lines of a fenced code block that has a line with this beginning.
type block struct{ begins, lines string }

const placeholder = "#"

// with returns the file's text with its figures.
func (p *page) with(text string) (string, error) {
	if p.whole != "" {
		return p.whole, nil
	}
	var err error
	for _, s := range p.sentences {
		if text, err = s.with(text); err != nil {
			return "", err
		}
	}
	for _, b := range p.blocks {
		if text, err = b.with(text); err != nil {
			return "", err
		}
	}
	return text, nil
}

func (s *sentence) with(text string) (string, error) {
	parts := strings.Split(s.text, placeholder)
	if len(parts) != len(s.figures)+1 {
		return "", fmt.Errorf("%q has %d places for figures, expected %d", s.text, len(parts)-1, len(s.figures))
	}
	for i := range parts {
		parts[i] = strings.ReplaceAll(regexp.QuoteMeta(parts[i]), " ", `\s`)
	}
	found := regexp.MustCompile(strings.Join(parts, `([^|<>\n]{1,20}?)`)).FindAllStringSubmatchIndex(text, -1)
	if len(found) != 1 {
		return "", fmt.Errorf("expected %q once, with figures in place of each %s; it is there %d times", s.text, placeholder, len(found))
	}
	var out strings.Builder
	at := 0
	for i, figure := range s.figures {
		out.WriteString(text[at:found[0][2*i+2]])
		out.WriteString(figure)
		at = found[0][2*i+3]
	}
	return out.String() + text[at:], nil
}

func (b *block) with(text string) (string, error) {
	const fence = "\n```\n"
	begin := strings.Index(text, "\n"+b.begins)
	if begin < 0 {
		return "", fmt.Errorf("no line begins with %q", b.begins)
	}
	open, length := strings.LastIndex(text[:begin+1], "\n```"), strings.Index(text[begin:], fence)
	if open < 0 || length < 0 {
		return "", fmt.Errorf("the line that begins with %q is in no fenced block", b.begins)
	}
	first := open + 1 + strings.IndexByte(text[open+1:], '\n') + 1
	return text[:first] + b.lines + text[begin+length+1:], nil
}

// firstDifference shows the first line that differs.
func firstDifference(before, after string) string {
	want := strings.Split(after, "\n")
	for i, line := range strings.Split(before, "\n") {
		const most = 200
		if i >= len(want) || line != want[i] {
			expected := strings.Join(want[min(i, len(want)):min(i+1, len(want))], "")
			return fmt.Sprintf(", line %d:\n%.*s\nexpected\n%.*s\n", i+1, most, line, most, expected)
		}
	}
	return ""
}
