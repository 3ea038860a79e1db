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
)

// kind reads a scalar's text. It has no state; parse uses only the text, so quotes make no difference.
type kind[T any] interface {
	// parse's error is the text after the key's path.
	parse(text string, rl rule) (T, error)
	// expects describes the form of a valid value.
	expects(rl rule) string
}

// scalar is one value of the kind K.
type scalar[T any, K kind[T]] struct {
	place
	V T
}

func (s *scalar[T, K]) read(r *decoder, n *yaml.Node, at place, rl rule) {
	s.place = at
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.mismatch(n, at, rl, s.expects(rl))
		return
	}
	var k K
	v, err := k.parse(n.Value, rl)
	if err != nil {
		r.problem(at, "%s", err)
		return
	}
	s.V, s.valid = v, true
	r.noteExample(at, v)
}

func (s *scalar[T, K]) absent(_ *decoder, at place, rl rule) {
	s.place = at
	if rl.def == "" {
		return
	}
	var k K
	v, err := k.parse(rl.def, rl)
	s.V, s.valid = v, err == nil
}

func (s *scalar[T, K]) expects(rl rule) string {
	var k K
	return k.expects(rl)
}

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

type textKind struct{}

const maxText = 1024

func (k textKind) parse(text string, rl rule) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("is empty; expected %s", k.expects(rl))
	case len(text) > maxText || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "", not(text, "usable", k.expects(rl))
	}
	return text, nil
}

func (textKind) expects(rule) string {
	return "a text of printable characters, at most " + strconv.Itoa(maxText) + " bytes"
}

type nameKind struct{}

const maxName = 64

func (k nameKind) parse(text string, rl rule) (string, error) {
	if !isName(text) {
		return "", not(text, "a name", k.expects(rl))
	}
	return text, nil
}

func (nameKind) expects(rule) string {
	return "letters, digits, '.', '_' and '-', at most " + strconv.Itoa(maxName)
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

// deviceKind is exactly one argument for EAL, so that it can't add others.
type deviceKind struct{}

func (k deviceKind) parse(text string, rl rule) (string, error) {
	if _, err := (textKind{}).parse(text, rl); err != nil || text[0] == '-' || strings.ContainsFunc(text, unicode.IsSpace) {
		return "", not(text, "a device", k.expects(rl))
	}
	return text, nil
}

func (deviceKind) expects(rule) string {
	return "an argument of EAL's -a or --vdev, such as 0000:01:00.0 or net_af_packet0,iface=eth1"
}

type toggleKind struct{}

func (k toggleKind) parse(text string, rl rule) (bool, error) {
	if text != "true" && text != "false" {
		return false, not(text, "a switch", k.expects(rl))
	}
	return text == "true", nil
}

func (toggleKind) expects(rule) string { return "true or false" }

type integerKind struct{}

func (k integerKind) parse(text string, rl rule) (int64, error) {
	v, err := parseInteger(text)
	if err != nil {
		return 0, not(text, "a whole number", k.expects(rl))
	}
	return bounded(v, text, rl, parseInteger)
}

func (integerKind) expects(rl rule) string { return "a whole number, " + span(rl) }

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

type decimalKind struct{}

const million = 1_000_000

func (k decimalKind) parse(text string, rl rule) (uint64, error) {
	v, err := parseDecimal(text)
	if err != nil {
		return 0, not(text, "a number", k.expects(rl))
	}
	return bounded(v, text, rl, parseDecimal)
}

func (decimalKind) expects(rl rule) string { return "a number with at most 6 decimals, " + span(rl) }

// parseDecimal reads a decimal fraction as millionths.
func parseDecimal(text string) (uint64, error) {
	return parseUnits(text, []unit{{"", million}})
}

type choiceKind struct{}

func (choiceKind) parse(text string, rl rule) (int, error) {
	return slices.Index(rl.one, text), CheckWord(text, rl.one)
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

func (choiceKind) expects(rl rule) string { return either(rl.one) }

// accepted is a format that an endpoint accepts.
type accepted = scalar[int, acceptedKind]

type acceptedKind struct{ choiceKind }

func (k acceptedKind) parse(text string, rl rule) (int, error) {
	if text == packet.ProxyNotification.String() {
		return 0, fmt.Errorf("%s goes to a proxy, not to a host; list these hosts with their proxy in proxy.senders; here, expected %s", text, k.expects(rl))
	}
	return k.choiceKind.parse(text, rl)
}
