package config

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"
)

type (
	size      = scalar[uint64, sizeKind] // bytes
	rate      = scalar[uint64, rateKind] // bit/s
	duration  = scalar[time.Duration, durationKind]
	perSecond = scalar[uint64, perSecondKind]
	count     = scalar[int64, countKind]
	length    = scalar[uint64, lengthKind] // m
)

// unit is a suffix and what it multiplies with.
type unit struct {
	name   string
	factor uint64
}

// From the largest to the smallest, so that formatting finds the shortest form first.
var (
	sizeUnits = []unit{
		{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
		{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1},
	}
	rateUnits   = []unit{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}
	lengthUnits = []unit{{"km", 1000}, {"m", 1}}
	countUnits  = []unit{{"Mi", 1 << 20}, {"Ki", 1 << 10}, {"", 1}}
)

var (
	errForm     = errors.New("not a number with a unit")
	errFraction = errors.New("not a whole number of the smallest unit")
	errRange    = errors.New("too large")
)

const maxDigits = 40 // of a number: more than any valid value has

// parseUnits reads digits, perhaps with a decimal fraction, directly followed by a unit. The result is exact.
func parseUnits(text string, units []unit) (uint64, error) {
	end := strings.IndexFunc(text, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
	if end < 0 {
		end = len(text)
	}
	whole, fraction, dot := strings.Cut(text[:end], ".")
	if whole == "" || dot && fraction == "" || strings.Contains(fraction, ".") || end > maxDigits {
		return 0, errForm
	}
	for _, u := range units {
		if text[end:] == u.name {
			v, _ := new(big.Rat).SetString(text[:end])
			v.Mul(v, new(big.Rat).SetInt(new(big.Int).SetUint64(u.factor)))
			switch {
			case !v.IsInt():
				return 0, errFraction
			case !v.Num().IsUint64():
				return 0, errRange
			}
			return v.Num().Uint64(), nil
		}
	}
	return 0, errForm
}

// formatUnits writes a value in the largest unit that divides it; parseUnits reads it back.
func formatUnits(v uint64, units []unit) string {
	for _, u := range units {
		if v >= u.factor && v%u.factor == 0 {
			return strconv.FormatUint(v/u.factor, 10) + u.name
		}
	}
	return strconv.FormatUint(v, 10) + units[len(units)-1].name
}

// FormatRate writes a rate (bit/s) in the form of the file: in the largest unit that divides it.
func FormatRate(rate uint64) string { return formatUnits(rate, rateUnits) }

// meantUnit is the text as it may be meant: without spaces, and with the unit in its own case; "" if that is no value either.
func meantUnit(text string, units []unit) string {
	text = strings.Join(strings.Fields(text), "")
	number := strings.TrimRightFunc(text, unicode.IsLetter)
	for _, u := range units {
		if _, err := parseUnits(number+u.name, units); err == nil && strings.EqualFold(text[len(number):], u.name) {
			return number + u.name
		}
	}
	return ""
}

// unitError turns an error of parseUnits into one for the operator.
func unitError(err error, text, what, expected, smallest string, units []unit) error {
	if meant := meantUnit(text, units); err == errForm && meant != "" {
		return fmt.Errorf("%s is not %s, as case and spaces matter; did you mean %s? Expected %s", quote(text), what, meant, expected)
	}
	switch err {
	case errFraction:
		return fmt.Errorf("%s is not a whole number of %s; expected %s", quote(text), smallest, expected)
	case errRange:
		return fmt.Errorf("%s is too large; expected %s", quote(text), expected)
	}
	return not(text, what, expected)
}

// inUnits is the form of numbers with a unit, the smallest of which is called smallest.
func inUnits(rl rule, what, expected, smallest string, units []unit) form[uint64] {
	read := func(text string) (uint64, error) { return parseUnits(text, units) }
	return form[uint64]{expected, func(text string) (uint64, error) {
		v, err := read(text)
		if err != nil {
			return 0, unitError(err, text, what, expected, smallest, units)
		}
		return bounded(v, text, rl, read)
	}}
}

type (
	sizeKind      struct{}
	rateKind      struct{}
	lengthKind    struct{}
	durationKind  struct{}
	perSecondKind struct{}
	countKind     struct{}
)

func (sizeKind) Form(rl rule) form[uint64] {
	return inUnits(rl, "a size", "a number with unit, such as 64KB, 1.5GiB or 1500B", "bytes", sizeUnits)
}

func (rateKind) Form(rl rule) form[uint64] {
	return inUnits(rl, "a rate", "a number with unit, such as 100Gbps, 10Mbps or 100kbps", "bits a second", rateUnits)
}

func (lengthKind) Form(rl rule) form[uint64] {
	return inUnits(rl, "a length", "a number with unit, such as 300m or 2km", "metres", lengthUnits)
}

func (durationKind) Form(rl rule) form[time.Duration] {
	return ordered(rl, "a duration", "a number with unit, such as 10ms, 500us or 60s", time.ParseDuration)
}

func (perSecondKind) Form(rl rule) form[uint64] {
	return ordered(rl, "a number a second", "a whole number a second, such as 1000/s, or 0 for no limit", parsePerSecond)
}

func parsePerSecond(text string) (uint64, error) {
	if text == "0" {
		return 0, nil
	}
	digits, ok := strings.CutSuffix(text, "/s")
	if !ok || strings.HasPrefix(digits, "+") {
		return 0, errForm
	}
	return strconv.ParseUint(digits, 10, 64)
}

func (countKind) Form(rl rule) form[int64] {
	return ordered(rl, "a count", "a whole number, perhaps with Ki (1024) or Mi (1048576), "+span(rl), parseCount)
}

func parseCount(text string) (int64, error) {
	v, err := parseUnits(text, countUnits)
	if err == nil && v > 1<<62 {
		return 0, errRange
	}
	return int64(v), err
}

// ParseRate reads a rate in the form of configurations, such as 100Mbps, in bit/s. The error says what was expected.
func ParseRate(text string) (uint64, error) { return rateKind{}.Form(rule{}).parse(text) }

// ParseSize reads a size in the form of configurations, such as 64KiB, in bytes. The error says what was expected.
func ParseSize(text string) (uint64, error) { return sizeKind{}.Form(rule{}).parse(text) }

// ParseDuration reads a duration in the form of configurations, such as 500ms. The error says what was expected.
func ParseDuration(text string) (time.Duration, error) {
	return durationKind{}.Form(rule{}).parse(text)
}
