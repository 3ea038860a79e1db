package yamldoc

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cnpgate/cnpgate/internal/units"
)

// Form is a form of scalars. Only a scalar's text counts, so quotes make no difference.
type Form struct {
	Expected string                         // describes a valid value
	Parse    func(text string) (any, error) // its error is the text after the key's path
	JSON     map[string]any                 // its JSON Schema
}

// Bounds are those of a value as its tags have them, and the words that a choice takes.
type Bounds struct {
	Min, Max string
	One      []string
	Such     string // an example, the tag "expects"
}

// span describes the bounds, "" without any.
func (b Bounds) span() string {
	switch {
	case b.Min != "" && b.Max != "":
		return b.Min + " to " + b.Max
	case b.Min != "":
		return "at least " + b.Min
	case b.Max != "":
		return "at most " + b.Max
	}
	return ""
}

// Forms are the forms by name, each for some bounds.
type Forms map[string]func(b Bounds) Form

// byType are the names of the forms that values of a type have without the tag "form".
var byType = map[reflect.Type]string{
	reflect.TypeFor[time.Duration](): "duration", reflect.TypeFor[netip.Addr](): "address", reflect.TypeFor[netip.Prefix](): "prefix",
	reflect.TypeFor[bool](): "toggle", reflect.TypeFor[string](): "text",
}

// of is the form of values of a type. f has those that standard doesn't have.
func (f Forms) of(t reflect.Type, rl *rule) Form {
	name := rl.form
	switch {
	case name != "":
	case rl.one != nil:
		name = "choice"
	case byType[t] != "":
		name = byType[t]
	default:
		name = "integer"
	}
	return f.named(name, rl)
}

func (f Forms) named(name string, rl *rule) Form {
	of := f[name]
	if of == nil {
		of = standard[name]
	}
	return of(Bounds{rl.min, rl.max, rl.one, rl.expects})
}

// store writes a value to a field. Of a choice, the field gets the word, the word's number, or whether it is the second one.
func store(to reflect.Value, v any, one []string) {
	word, ok := v.(int)
	switch {
	case to.Kind() == reflect.Bool && ok:
		to.SetBool(word == 1)
	case to.Kind() == reflect.String && ok:
		to.SetString(one[word])
	case to.Type() == reflect.TypeFor[netip.AddrPort]():
		at, _ := netip.ParseAddrPort(v.(string)) // the form has checked it
		to.Set(reflect.ValueOf(at))
	default:
		to.Set(reflect.ValueOf(v).Convert(to.Type()))
	}
}

// text is the value of a scalar, of a choice the word.
func (n *Node) text() string {
	if word, ok := n.value.(int); ok {
		return n.rule.one[word]
	}
	return fmt.Sprint(n.value)
}

// not is the error for a text that is not a value of its form.
func not(text, what, expected string) error {
	return fmt.Errorf("%s is not %s; expected %s", Quote(text), what, expected)
}

// textual is the JSON Schema of texts with a pattern, or of other values.
func textual(pattern string, or ...map[string]any) map[string]any {
	s := map[string]any{"type": "string", "pattern": pattern}
	if or == nil {
		return s
	}
	return map[string]any{"anyOf": append([]map[string]any{s}, or...)}
}

// Checked is the form of texts that read takes; what is the kind of value.
func Checked[T any](what, expected string, json map[string]any, read func(text string) (T, bool)) Form {
	return Form{expected, func(text string) (any, error) {
		v, ok := read(text)
		if !ok {
			return v, not(text, what, expected)
		}
		return v, nil
	}, json}
}

// Words is the form of the texts that ok allows, as they are.
func Words(what, expected, pattern string, ok func(text string) bool) Form {
	return Checked(what, expected, textual(pattern), func(text string) (string, bool) { return text, ok(text) })
}

// bounded checks a value against its bounds. Errors show the bounds as the file would have them.
func bounded[T cmp.Ordered](v T, text string, b Bounds, parse func(string) (T, error)) (any, error) {
	if lo, err := parse(b.Min); err == nil && v < lo {
		return v, fmt.Errorf("%s is too low; expected %s", Quote(text), b.span())
	}
	if hi, err := parse(b.Max); err == nil && v > hi {
		return v, fmt.Errorf("%s is too high; expected %s", Quote(text), b.span())
	}
	return v, nil
}

// ordered is the form of values within bounds, which read reads, too.
func ordered[T cmp.Ordered](b Bounds, what, expected string, json map[string]any, read func(text string) (T, error)) Form {
	return Form{expected, func(text string) (any, error) {
		v, err := read(text)
		if err != nil {
			return v, not(text, what, expected)
		}
		return bounded(v, text, b, read)
	}, json}
}

// inUnits is the form of numbers with a unit, the smallest of which is called smallest.
func inUnits(what, expected, smallest string, of []units.Unit) func(Bounds) Form {
	var names []string
	for _, u := range of {
		names = append(names, u.Name)
	}
	json := textual(`^[0-9]+(\.[0-9]+)?(` + strings.Join(names, "|") + `)$`)
	read := func(text string) (uint64, error) { return units.Parse(text, of) }
	return func(b Bounds) Form {
		return Form{expected, func(text string) (any, error) {
			v, err := read(text)
			switch meant := units.Meant(text, of); {
			case err == nil:
				return bounded(v, text, b, read)
			case err == units.ErrForm && meant != "":
				return v, fmt.Errorf("%s is not %s; did you mean %s? Expected %s", Quote(text), what, meant, expected)
			case err == units.ErrFraction:
				return v, fmt.Errorf("%s is not a whole number of %s; expected %s", Quote(text), smallest, expected)
			case err == units.ErrRange:
				return v, fmt.Errorf("%s is too large; expected %s", Quote(text), expected)
			}
			return v, not(text, what, expected)
		}, json}
	}
}

const (
	maxText = 1024 // bytes
	maxName = 64
	million = 1_000_000
)

var namePattern = "^[A-Za-z0-9._-]{1," + strconv.Itoa(maxName) + "}$"

// standard are the forms of any document.
var standard = Forms{
	"text": func(Bounds) Form {
		f := Words("usable", "a text of printable characters, at most "+strconv.Itoa(maxText)+" bytes", `\S`, IsPlain)
		usable := f.Parse
		f.Parse = func(text string) (any, error) {
			if strings.TrimSpace(text) == "" {
				return "", fmt.Errorf("is empty; expected %s", f.Expected)
			}
			return usable(text)
		}
		return f
	},
	"file": func(b Bounds) Form {
		f := Words("an absolute path", "one such as "+b.Such, `^/\S`, func(text string) bool { return IsPlain(text) && path.IsAbs(text) })
		f.Expected = "an absolute path, such as " + b.Such
		return f
	},
	"name": func(Bounds) Form {
		return Words("a name", "letters, digits, '.', '_' and '-', at most "+strconv.Itoa(maxName), namePattern, isName)
	},
	"toggle": func(Bounds) Form {
		return Checked("a boolean", "true or false", map[string]any{"type": "boolean"},
			func(text string) (on, ok bool) { return text == "true", text == "true" || text == "false" })
	},
	"integer": func(b Bounds) Form {
		return ordered(b, "a whole number", "a whole number, "+b.span(), numeric("integer", b), parseInteger)
	},
	"decimal": func(b Bounds) Form {
		return ordered(b, "a number", "a number with at most 6 decimals, "+b.span(), numeric("number", b), parseDecimal)
	},
	"count": func(b Bounds) Form {
		json := map[string]any{"anyOf": []map[string]any{numeric("integer", b), textual(`^[0-9]+(\.[0-9]+)?(Ki|Mi)$`)}}
		return ordered(b, "a count", "a whole number, perhaps with Ki (1024) or Mi (1048576), "+b.span(), json, parseCount)
	},
	"choice": func(b Bounds) Form {
		words := make([]any, len(b.One)) // as YAML reads them
		for i, word := range b.One {
			if words[i] = word; word == "true" || word == "false" {
				words[i] = word == "true"
			}
		}
		return Form{Either(b.One), func(text string) (any, error) { return slices.Index(b.One, text), CheckWord(text, b.One) }, map[string]any{"enum": words}}
	},
	"size":   inUnits("a size", "a number with unit, such as 64KB, 1.5GiB or 1500B", "bytes", units.Sizes),
	"rate":   inUnits("a rate", "a number with unit, such as 100Gbps, 10Mbps or 100kbps", "bits a second", units.Rates),
	"length": inUnits("a length", "a number with unit, such as 300m or 2km", "metres", units.Lengths),
	"duration": func(b Bounds) Form {
		return ordered(b, "a duration", "a number with unit, such as 10ms, 500us or 60s",
			textual(`^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`, zero), time.ParseDuration)
	},
	"per-second": func(b Bounds) Form {
		return ordered(b, "a number a second", "a whole number a second, such as 1000/s, or 0 for no limit", textual(`^[0-9]+/s$`, zero), parsePerSecond)
	},
	"address": func(Bounds) Form { return addresses("an IP address", anAddress, `^[0-9A-Fa-f:.]+$`, parseAddress, nil) },
	"routed":  func(Bounds) Form { return addresses("an IP address", anAddress, `^[0-9A-Fa-f:.]+$`, parseRouted, nil) },
	"ipv4": func(Bounds) Form {
		return addresses("an IPv4 address", "a unicast IPv4 address, such as 192.0.2.1", `^[0-9.]+$`, parseRouted, netip.Addr.Is4)
	},
	"ipv6": func(Bounds) Form {
		return addresses("an IPv6 address", "a unicast IPv6 address, such as 2001:db8::1", `^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$`, parseRouted, netip.Addr.Is6)
	},
	"prefix": func(Bounds) Form {
		return Form{aPrefix, func(text string) (any, error) { return ParsePrefix(text) }, textual(`^[0-9A-Fa-f:.]+/[0-9]{1,3}$`)}
	},
	"socket": func(Bounds) Form {
		return Words("an address with port", "an address and a port, such as 127.0.0.1:9456 or [::1]:9456", `^.+:[0-9]{1,5}$`, func(text string) bool {
			s, err := netip.ParseAddrPort(text)
			return err == nil && s.Port() != 0
		})
	},
}

var zero = map[string]any{"const": 0} // needs no unit

// numeric is the JSON Schema of a number.
func numeric(kind string, b Bounds) map[string]any {
	s := map[string]any{"type": kind}
	for key, text := range map[string]string{"minimum": b.Min, "maximum": b.Max} {
		if n, err := parseInteger(text); err == nil {
			s[key] = n
		} else if n, err := parseCount(text); err == nil {
			s[key] = n
		} else if n, err := strconv.ParseFloat(text, 64); err == nil {
			s[key] = n
		}
	}
	return s
}

// IsPlain reports whether a text is neither too long nor has characters that can't be printed.
func IsPlain(text string) bool {
	return len(text) <= maxText && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
}

func isName(text string) bool {
	for _, c := range []byte(text) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return text != "" && len(text) <= maxName
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

// parseDecimal reads a decimal fraction as millionths.
func parseDecimal(text string) (uint64, error) {
	return units.Parse(text, []units.Unit{{Factor: million}})
}

// parsePerSecond reads a number a second.
func parsePerSecond(text string) (uint64, error) {
	if text == "0" {
		return 0, nil
	}
	digits, ok := strings.CutSuffix(text, "/s")
	if !ok || strings.HasPrefix(digits, "+") {
		return 0, units.ErrForm
	}
	return strconv.ParseUint(digits, 10, 64)
}

func parseCount(text string) (int64, error) {
	v, err := units.Parse(text, units.Counts)
	if err == nil && v > 1<<62 {
		return 0, units.ErrRange
	}
	return int64(v), err
}

// ParseRate reads a rate such as 100Mbps, in bit/s. The error says what was expected.
func ParseRate(text string) (uint64, error) { return parsed[uint64]("rate", text) }

// ParseSize reads a size such as 64KiB, in bytes. The error says what was expected.
func ParseSize(text string) (uint64, error) { return parsed[uint64]("size", text) }

// ParseDuration reads a duration such as 500ms. The error says what was expected.
func ParseDuration(text string) (time.Duration, error) {
	return parsed[time.Duration]("duration", text)
}

func parsed[T any](form, text string) (T, error) {
	v, err := standard[form](Bounds{}).Parse(text)
	return v.(T), err
}
