package main

import (
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
)

const clear = "\x1b[H\x1b[2J"

// drawScreen draws the last complete display of a recorded cnpgate top, which clears the screen before each.
func drawScreen(to io.Writer, recorded string) error {
	displays := strings.Split(recorded, clear)
	if len(displays) < 3 {
		return errors.New("the recording has no complete display; expected that of a terminal with cnpgate top")
	}
	const character, line, margin = 7.83, 17, 12 // of a monospaced font of 13 px
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(displays[len(displays)-2], "\r", ""), "\n "), "\n")
	columns := 80
	for _, l := range lines {
		columns = max(columns, len([]rune(l)))
	}
	width, height := int(float64(columns)*character)+2*margin, (len(lines)+1)*line+margin
	fmt.Fprintf(to, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`+"\n", width, height)
	fmt.Fprintln(to, `<rect width="100%" height="100%" rx="6" fill="#1e1e1e"/>`)
	fmt.Fprintln(to, `<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" fill="#e0e0e0" xml:space="preserve">`)
	for i, l := range lines {
		if l != "" {
			fmt.Fprintf(to, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", margin, (i+1)*line+margin/2, html.EscapeString(l))
		}
	}
	_, err := fmt.Fprintln(to, "</g>\n</svg>")
	return err
}
