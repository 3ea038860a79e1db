package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
)

// kind is a form of values. It has no state.
type kind[T any] interface{ Form(rl rule) form[T] }

// form reads a scalar's text. Only the text counts, so quotes make no difference.
type form[T any] struct {
	expected string                       // describes a valid value
	parse    func(text string) (T, error) // its error is the text after the key's path
}

// scalar is one value of the kind K.
type scalar[T any, K kind[T]] struct {
	place
	V       T
	written string // in the file, or the default
}

func (*scalar[T, K]) form(rl rule) form[T] {
	var k K
	return k.Form(rl)
}

func (s *scalar[T, K]) read(r *decoder, n *yaml.Node, at place, rl rule) {
	s.place = at
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.mismatch(n, at, rl, s.expects(rl))
		return
	}
	v, err := s.form(rl).parse(n.Value)
	if err != nil {
		r.problem(at, "%s", err)
		return
	}
	s.V, s.written, s.valid = v, n.Value, true
	r.noteExample(at, v)
}

func (s *scalar[T, K]) absent(_ *decoder, at place, rl rule) {
	s.place = at
	if rl.def == "" {
		return
	}
	v, err := s.form(rl).parse(rl.def)
	s.V, s.written, s.valid = v, rl.def, err == nil
}

func (s *scalar[T, K]) value() any { return s.V }

func (s *scalar[T, K]) asWritten() string { return s.written }

func (s *scalar[T, K]) expects(rl rule) string { return s.form(rl).expected }

type (
	text    = scalar[string, textKind]
	name    = scalar[string, nameKind]
	device  = scalar[string, deviceKind]
	toggle  = scalar[bool, toggleKind]
	integer = scalar[int64, integerKind]
	decimal = scalar[uint64, decimalKind] // in millionths
	choice  = scalar[int, choiceKind]     // index of the word among those of the rule
)

// not is the error for a text that is not a value of its kind.
func not(text, what, expected string) error {
	return fmt.Errorf("%s is not %s; expected %s", quote(text), what, expected)
}

// bounded checks a value against its rule. Errors show the bounds as the file would have them.
func bounded[T cmp.Ordered](v T, text string, rl rule, parse func(string) (T, error)) (T, error) {
	if lo, err := parse(rl.min); err == nil && v < lo {
		return v, fmt.Errorf("%s is too low; expected %s", quote(text), span(rl))
	}
	if hi, err := parse(rl.max); err == nil && v > hi {
		return v, fmt.Errorf("%s is too high; expected %s", quote(text), span(rl))
	}
	return v, nil
}

// span describes a rule's bounds, "" without any.
func span(rl rule) string {
	switch {
	case rl.min != "" && rl.max != "":
		return rl.min + " to " + rl.max
	case rl.min != "":
		return "at least " + rl.min
	case rl.max != "":
		return "at most " + rl.max
	}
	return ""
}

// checked is the form of texts that read takes; what is the kind of value.
func checked[T any](what, expected string, read func(text string) (T, bool)) form[T] {
	return form[T]{expected, func(text string) (v T, err error) {
		v, ok := read(text)
		if !ok {
			err = not(text, what, expected)
		}
		return v, err
	}}
}

// ordered is the form of values within a rule's bounds, which read reads, too.
func ordered[T cmp.Ordered](rl rule, what, expected string, read func(text string) (T, error)) form[T] {
	return form[T]{expected, func(text string) (T, error) {
		v, err := read(text)
		if err != nil {
			return v, not(text, what, expected)
		}
		return bounded(v, text, rl, read)
	}}
}

// words is the form of the texts that ok allows, as they are.
func words(what, expected string, ok func(text string) bool) form[string] {
	return checked(what, expected, func(text string) (string, bool) { return text, ok(text) })
}

type (
	textKind    struct{}
	nameKind    struct{}
	deviceKind  struct{} // exactly one argument for EAL, so that it can't add others
	toggleKind  struct{}
	integerKind struct{}
	decimalKind struct{}
	choiceKind  struct{}
)

const (
	maxText = 1024 // bytes
	maxName = 64
	million = 1_000_000
)

func (textKind) Form(rule) form[string] {
	f := words("usable", "a text of printable characters, at most "+strconv.Itoa(maxText)+" bytes", isPlain)
	usable := f.parse
	f.parse = func(text string) (string, error) {
		if strings.TrimSpace(text) == "" {
			return "", fmt.Errorf("is empty; expected %s", f.expected)
		}
		return usable(text)
	}
	return f
}

// isPlain reports whether a text is neither too long nor has characters that can't be printed.
func isPlain(text string) bool {
	return len(text) <= maxText && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
}

func (nameKind) Form(rule) form[string] {
	return words("a name", "letters, digits, '.', '_' and '-', at most "+strconv.Itoa(maxName), isName)
}

func isName(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return text != "" && len(text) <= maxName
}

func (deviceKind) Form(rule) form[string] {
	return words("a device", "an argument of EAL's -a or --vdev, such as 0000:01:00.0 or net_af_packet0,iface=eth1", func(text string) bool {
		return text != "" && isPlain(text) && text[0] != '-' && !strings.ContainsFunc(text, unicode.IsSpace)
	})
}

func (toggleKind) Form(rule) form[bool] {
	return checked("a switch", "true or false", func(text string) (on, ok bool) { return text == "true", text == "true" || text == "false" })
}

func (integerKind) Form(rl rule) form[int64] {
	return ordered(rl, "a whole number", "a whole number, "+span(rl), parseInteger)
}

// parseInteger reads decimal digits, or hexadecimal ones after 0x. It refuses a leading zero, which means octal to some readers.
func parseInteger(text string) (int64, error) {
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		v, err := strconv.ParseUint(hex, 16, 63)
		return int64(v), err
	}
	digits := strings.TrimPrefix(text, "-")
	if strings.HasPrefix(text, "+") || len(digits) > 1 && digits[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64)
}

func (decimalKind) Form(rl rule) form[uint64] {
	return ordered(rl, "a number", "a number with at most 6 decimals, "+span(rl), parseDecimal)
}

// parseDecimal reads a decimal fraction as millionths.
func parseDecimal(text string) (uint64, error) {
	return units.Parse(text, []units.Unit{{Factor: million}})
}

func (choiceKind) Form(rl rule) form[int] {
	return form[int]{either(rl.one), func(text string) (int, error) { return slices.Index(rl.one, text), CheckWord(text, rl.one) }}
}

// CheckWord refuses a text that is not one of the words. The error says which one it may mean, and what was expected.
func CheckWord(text string, words []string) error {
	if slices.Contains(words, text) {
		return nil
	}
	if meant := nearest(text, words); meant != "" {
		return fmt.Errorf("%s is not known; did you mean %s? Expected %s", quote(text), meant, either(words))
	}
	return fmt.Errorf("%s is not known; expected %s", quote(text), either(words))
}

// accepted is a format that an endpoint accepts.
type accepted = scalar[int, acceptedKind]

type acceptedKind struct{}

func (acceptedKind) Form(rl rule) form[int] {
	f := choiceKind{}.Form(rl)
	choose := f.parse
	f.parse = func(text string) (int, error) {
		if text == packet.ProxyNotification.String() {
			return 0, fmt.Errorf("%s goes to a proxy, not to a host; list these hosts with their proxy in proxy.senders; here, expected %s", text, f.expected)
		}
		return choose(text)
	}
	return f
}
