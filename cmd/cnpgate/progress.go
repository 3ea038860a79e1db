package main

import (
	"fmt"
	"io"
)

// progress prints how far a long command is, in a format with a number of frames, to a terminal only. done removes the line; the next show prints it
// again.
func progress(w io.Writer, format string) (show func(frames int), done func()) {
	if !isTerminal(w) {
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
