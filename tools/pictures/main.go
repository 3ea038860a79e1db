// Command pictures draws the pictures of the documentation that show a run (scripts/screenshots): what cnpgate top has on a terminal, and the pages.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	page := flag.String("page", "", "draw this page, which cnpgate sim incast-10ms --web=FILE.html has written")
	diagnose := flag.String("diagnose", "", "draw the plot of the worst RDMA connection of this capture; else what cnpgate top has written to standard input")
	flag.Parse()
	var err error
	switch {
	case *page != "":
		err = drawPage(os.Stdout, os.Stderr, *page)
	case *diagnose != "":
		err = drawDiagnosis(os.Stdout, os.Stderr, *diagnose)
	default:
		var recorded []byte
		if recorded, err = io.ReadAll(os.Stdin); err == nil {
			err = drawScreen(os.Stdout, string(recorded))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

const clear = "\x1b[H\x1b[2J"

// most is the greatest value in a column of the first table of a display: bytes, or percent.
func most(display, column string) (greatest float64) {
	at := -1
	for line := range strings.Lines(display) {
		if i := strings.Index(line, column+" "); i >= 0 && at < 0 {
			at = i
			continue
		}
		if strings.TrimSpace(line) == "" && at >= 0 {
			break // the next table
		}
		if at < 0 || at >= len(line) {
			continue
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line[at:]), " ")
		digits := strings.TrimRight(size, "BKMGTi%")
		value, _ := strconv.ParseFloat(digits, 64)
		for unit, factor := range map[string]float64{"K": 1e3, "M": 1e6, "G": 1e9} {
			if strings.HasPrefix(size[len(digits):], unit) {
				value *= factor
			}
		}
		greatest = max(greatest, value)
	}
	return greatest
}

// busy is the load of a port in percent from which on it counts as busy all the time.
const busy = 95

// drawScreen draws, of the complete displays of a recorded cnpgate top, which clears the screen before each, the one with the longest queue
// in front of a busy port.
func drawScreen(to io.Writer, recorded string) error {
	displays := strings.Split(recorded, clear)
	if len(displays) < 3 {
		return errors.New("the recording has no complete display; expected that of a terminal with cnpgate top")
	}
	const character, line, margin = 7.83, 17, 12 // of a monospaced font of 13 px
	shown := slices.MaxFunc(displays[1:len(displays)-1], func(a, b string) int {
		return cmp.Or(cmp.Compare(min(most(a, "LOAD"), busy), min(most(b, "LOAD"), busy)), cmp.Compare(most(a, "QUEUE"), most(b, "QUEUE")))
	})
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(shown, "\r", ""), "\n "), "\n")
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
