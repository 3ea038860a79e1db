package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// fitHelp makes the help of a command fit a terminal. In a file or a pipe it stays as it is.
func fitHelp(c *cobra.Command) {
	help := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		if columns := columnsOfTerminal(c.OutOrStdout()); columns >= leastColumns {
			c.Long = filled(c.Long, columns)
			c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), "FlagUsages", fmt.Sprintf("FlagUsagesWrapped %d", columns)))
		}
		help(c, args)
	})
}

// leastColumns is the width below which a terminal doesn't know its own.
const leastColumns = 40

// columnsOfTerminal is the width of a terminal, 0 if w is none.
func columnsOfTerminal(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// filled breaks the lines of paragraphs anew. Indented lines, such as those of tables, stay.
func filled(text string, columns int) string {
	var out strings.Builder
	at := 0 // column
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			if at > 0 {
				out.WriteByte('\n')
			}
			out.WriteString(line + "\n")
			at = 0
			continue
		}
		for _, word := range strings.Fields(line) {
			length := len([]rune(word))
			switch {
			case at > 0 && at+1+length > columns:
				out.WriteByte('\n')
				at = 0
			case at > 0:
				out.WriteByte(' ')
				at++
			}
			out.WriteString(word)
			at += length
		}
	}
	return strings.TrimRight(out.String(), "\n")
}
