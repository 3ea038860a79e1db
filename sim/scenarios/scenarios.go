// Package scenarios holds the scenarios that come with cnpgate. docs/simulator.md describes them.
package scenarios

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

const suffix = ".yaml"

// Names returns the scenarios' names in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // never: the folder is embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	slices.Sort(names) // with the suffix, the order is another one
	return names
}

// Summary is the first sentence of the comment that a scenario begins with.
func Summary(name string) string {
	text, _ := Find(name)
	var words []string
	for line := range strings.Lines(string(text)) {
		comment, is := strings.CutPrefix(line, "# ")
		if !is {
			break
		}
		words = append(words, strings.TrimSpace(comment))
	}
	sentence, _, _ := strings.Cut(strings.Join(words, " ")+" ", ". ")
	return strings.TrimSuffix(sentence, ".")
}

// Find returns the text of a scenario, by its name with or without .yaml.
func Find(name string) ([]byte, bool) {
	text, err := files.ReadFile(strings.TrimSuffix(name, suffix) + suffix)
	return text, err == nil
}
