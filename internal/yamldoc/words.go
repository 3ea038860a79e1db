package yamldoc

import (
	"fmt"
	"slices"
	"strings"
)

// Quote formats a value from the file for an error: quoted, escaped and shortened.
func Quote(s string) string {
	const most = 64
	if runes := []rune(s[:min(len(s), 4*most+utf8Slack)]); len(runes) > most {
		return fmt.Sprintf("%q...", string(runes[:most]))
	}
	return fmt.Sprintf("%q", s)
}

const utf8Slack = 4 // so that cutting bytes never leaves fewer than 64 whole characters of a longer text

// Either lists names for people: "a", "a or b", "a, b or c"; of many, only the first ones.
func Either(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s or one of %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// synonyms are words that operators use for keys, words and flags.
var synonyms = []struct{ name, words string }{
	{"fabric", "lan dc inside internal downlink"}, {"wan", "outside external uplink internet"},
	{"standard-cnp", "cnp dcqcn rocev2-cnp"}, {"ppfc", "pfc"},
	{"debug", "trace verbose"}, {"warn", "warning"}, {"error", "fatal critical panic"},
	{"management", "logging log log_level metrics listen socket api"}, {"ports", "interfaces nics links"}, {"endpoints", "hosts servers"},
	{"device", "interface iface pci"}, {"rate", "speed bandwidth"}, {"sent", "notified"}, {"suppressed", "dropped limited"}, {"text", "table plain"}, {"output", "json format"},
}

// plainWord is a word without what mistakes in it are rarely about: its case, and what joins its parts.
func plainWord(text string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(text))
}

// Nearest finds the name that text most likely means, or "".
func Nearest(text string, names []string) string {
	if len(text) > 64 {
		return ""
	}
	text = plainWord(text)
	best, least := "", max(1, len(text)/3)+1
	consider := func(word, name string) {
		word = plainWord(word)
		d := editDistance(text, word)
		if len(text) > 2 && strings.HasPrefix(word, text) {
			d = min(d, 1)
		}
		if d < least {
			best, least = name, d
		}
	}
	for _, name := range names {
		consider(name, name)
	}
	for _, s := range synonyms {
		for _, word := range strings.Fields(s.words) {
			if slices.Contains(names, s.name) {
				consider(word, s.name)
			}
		}
	}
	return best
}

// editDistance is how many bytes to add, remove, change or swap with the next one make b of a.
func editDistance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1) // of the last two bytes of a, and of this one
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := above[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// CheckWord refuses a text that is not one of the words. The error says which one it may mean, and what was expected.
func CheckWord(text string, words []string) error {
	if slices.Contains(words, text) {
		return nil
	}
	if meant := Nearest(text, words); meant != "" {
		return fmt.Errorf("%s is not known; did you mean %s? Expected %s", Quote(text), meant, Either(words))
	}
	return fmt.Errorf("%s is not known; expected %s", Quote(text), Either(words))
}
