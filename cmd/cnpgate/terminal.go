package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isScreen reports whether w is a terminal that obeys control sequences (term(7)).
func isScreen(w io.Writer) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// screen is a terminal whose whole display a command uses; what was there before comes back at the end.
type screen struct {
	to    *os.File
	keys  *os.File
	state *term.State // of keys, to restore
}

// Sequences of ECMA-48 8.3, and of xterm: the alternate screen and the cursor.
const (
	clearScreen  = "\x1b[H\x1b[2J" // cursor home, clear (8.3.21, 8.3.39)
	beginScreen  = "\x1b[?1049h\x1b[?25l"
	endScreen    = "\x1b[?25h\x1b[?1049l"
	usualColumns = 80
	usualLines   = 24
)

// newScreen begins to use a terminal as a screen; nil if to is none. Keys are read one by one if the keyboard is a terminal, too.
func newScreen(to io.Writer, keys *os.File) *screen {
	if !isScreen(to) {
		return nil
	}
	s := &screen{to: to.(*os.File), keys: keys}
	if term.IsTerminal(int(keys.Fd())) {
		s.state, _ = term.MakeRaw(int(keys.Fd())) // without it, keys take effect with the next Return
	}
	_, _ = io.WriteString(s.to, beginScreen)
	return s
}

// restore gives the terminal back.
func (s *screen) restore() {
	_, _ = io.WriteString(s.to, endScreen)
	if s.state != nil {
		_ = term.Restore(int(s.keys.Fd()), s.state)
	}
}

// size is the number of columns and lines.
func (s *screen) size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(s.to.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return usualColumns, usualLines
	}
	return columns, lines
}

// draw replaces what is displayed, cut at the edges.
func (s *screen) draw(text string) error {
	columns, lines := s.size()
	_, err := io.WriteString(s.to, clearScreen+fitted(text, columns, lines))
	return err
}

// fitted is a text for a display: cut, and with the line ends of a raw terminal.
func fitted(text string, columns, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	all = all[:min(len(all), lines)]
	for i, line := range all {
		if r := []rune(line); len(r) > columns {
			all[i] = string(r[:columns])
		}
	}
	return strings.Join(all, "\r\n")
}

// pressed sends each key until the keyboard ends.
func (s *screen) pressed() <-chan byte {
	keys := make(chan byte)
	go func() {
		var b [1]byte
		for {
			if n, err := s.keys.Read(b[:]); n == 0 || err != nil {
				return
			}
			keys <- b[0]
		}
	}()
	return keys
}

// fitHelp makes the help of a command fit a terminal. In a file or a pipe it stays as it is. The error is that of writing it, which cobra doesn't return.
func fitHelp(c *cobra.Command) (failed *error) {
	failed = new(error)
	help := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		out := c.OutOrStdout()
		columns := columnsOfTerminal(out)
		narrow := columns >= leastColumns
		if narrow {
			c.Example = continued(c.Example, columns)
			c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), "FlagUsages", fmt.Sprintf("FlagUsagesWrapped %d", columns)))
		}
		var b strings.Builder
		c.SetOut(&b)
		help(c, args)
		c.SetOut(out)
		text := b.String()
		if narrow {
			text = filled(text, columns) + "\n"
		}
		_, *failed = io.WriteString(out, text)
	})
	return failed
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

// continued breaks command lines as a shell reads them, between words.
func continued(commands string, columns int) string {
	lines := strings.Split(commands, "\n")
	for i, line := range lines {
		if len([]rune(line)) > columns {
			lines[i] = "  " + strings.Join(wrapped(line, columns-len("      \\")), " \\\n      ")
		}
	}
	return strings.Join(lines, "\n")
}

// hung breaks an indented line, such as of a table: what follows stands below its last column.
func hung(line string, columns int) string {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	if len([]rune(line)) <= columns {
		return line
	}
	at := indent
	if gap := strings.LastIndex(line[:min(len(line), columns/2)], "  "); gap >= indent {
		at = gap + len("  ")
	}
	return strings.TrimSuffix(broken(line[:at], strings.Repeat(" ", at), line[at:], columns-at), "\n")
}

// filled breaks the lines of paragraphs anew, and those of tables that are too long.
func filled(text string, columns int) string {
	var out, paragraph strings.Builder
	for line := range strings.SplitSeq(text+"\n", "\n") {
		if line != "" && line[0] != ' ' {
			paragraph.WriteString(line + " ")
			continue
		}
		if paragraph.Len() > 0 {
			out.WriteString(broken("", "", paragraph.String(), columns))
			paragraph.Reset()
		}
		out.WriteString(hung(line, columns) + "\n")
	}
	return strings.TrimRight(out.String(), "\n")
}

// progress prints how far a long command is, in a format with a number of frames, to a terminal only. done removes the line; the next show prints it
// again.
func progress(w io.Writer, format string) (show func(frames int), done func()) {
	if !isScreen(w) {
		return nil, func() {}
	}
	shown := false
	show = func(frames int) {
		shown = true
		fmt.Fprintf(w, "\r"+format, frames)
	}
	return show, func() {
		if shown {
			shown = false
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}

// behind is a writer to what may be the same terminal as the line of progress: done removes that before each write.
type behind struct {
	io.Writer
	done func()
}

func (b behind) Write(text []byte) (int, error) {
	b.done()
	return b.Writer.Write(text)
}
