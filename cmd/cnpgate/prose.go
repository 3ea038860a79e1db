package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// textWidth is the width of texts on an output without one.
const textWidth = 110

// widthOf is the width of an output's texts.
func widthOf(to io.Writer) int {
	if p, ok := to.(paper); ok && p.columns > 0 {
		return min(p.columns, textWidth) - 6 // they are indented
	}
	return textWidth
}

// wrapped breaks a text into lines of a width at most.
func wrapped(text string, columns int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// broken is a text in lines of a width at most, the first one behind first, the others behind rest.
func broken(first, rest, text string, columns int) string {
	return first + strings.Join(wrapped(text, columns), "\n"+rest) + "\n"
}

// printBroken prints a line of prose; on paper in several ones of its width, with first and rest as of broken.
func printBroken(to io.Writer, first, rest, text string) error {
	line := first + text + "\n"
	if p, ok := to.(paper); ok && p.columns > 0 {
		line = broken(first, rest, text, p.columns-len(rest))
	}
	_, err := io.WriteString(to, line)
	return err
}

// printHung prints a line of prose whose further lines, on paper, begin where its text does.
func printHung(to io.Writer, begin, text string) error {
	return printBroken(to, begin, strings.Repeat(" ", len(begin)), text)
}

// printLines prints lines of prose as printHung does, those that begin with spaces behind as many.
func printLines(to io.Writer, text string) error {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		rest := strings.TrimLeft(line, " ")
		if err := printHung(paperOf(to, false), line[:len(line)-len(rest)], rest); err != nil {
			return err
		}
	}
	return nil
}
