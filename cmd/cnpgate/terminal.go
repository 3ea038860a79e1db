package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

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

// newScreen begins to use a terminal; nil if to is none. Keys are read one by one if the keyboard is a terminal, too.
func newScreen(to io.Writer, keys *os.File) *screen {
	if !isTerminal(to) {
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
