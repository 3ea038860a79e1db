package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/internal/units"
)

type (
	size      = scalar[uint64, sizeKind] // bytes
	rate      = scalar[uint64, rateKind] // bit/s
	duration  = scalar[time.Duration, durationKind]
	perSecond = scalar[uint64, perSecondKind]
	count     = scalar[int64, countKind]
	length    = scalar[uint64, lengthKind] // m
)

// FormatRate writes a rate (bit/s) in the form of the file: in the largest unit that divides it.
func FormatRate(rate uint64) string { return units.Exact(rate, units.Rates) }

// unitError turns an error of units.Parse into one for the operator.
func unitError(err error, text, what, expected, smallest string, of []units.Unit) error {
	if meant := units.Meant(text, of); err == units.ErrForm && meant != "" {
		return fmt.Errorf("%s is not %s; did you mean %s? Expected %s", quote(text), what, meant, expected)
	}
	switch err {
	case units.ErrFraction:
		return fmt.Errorf("%s is not a whole number of %s; expected %s", quote(text), smallest, expected)
	case units.ErrRange:
		return fmt.Errorf("%s is too large; expected %s", quote(text), expected)
	}
	return not(text, what, expected)
}

// inUnits is the form of numbers with a unit, the smallest of which is called smallest.
func inUnits(rl rule, what, expected, smallest string, of []units.Unit) form[uint64] {
	read := func(text string) (uint64, error) { return units.Parse(text, of) }
	return form[uint64]{expected, func(text string) (uint64, error) {
		v, err := read(text)
		if err != nil {
			return 0, unitError(err, text, what, expected, smallest, of)
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
	return inUnits(rl, "a size", "a number with unit, such as 64KB, 1.5GiB or 1500B", "bytes", units.Sizes)
}

func (rateKind) Form(rl rule) form[uint64] {
	return inUnits(rl, "a rate", "a number with unit, such as 100Gbps, 10Mbps or 100kbps", "bits a second", units.Rates)
}

func (lengthKind) Form(rl rule) form[uint64] {
	return inUnits(rl, "a length", "a number with unit, such as 300m or 2km", "metres", units.Lengths)
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
		return 0, units.ErrForm
	}
	return strconv.ParseUint(digits, 10, 64)
}

func (countKind) Form(rl rule) form[int64] {
	return ordered(rl, "a count", "a whole number, perhaps with Ki (1024) or Mi (1048576), "+span(rl), parseCount)
}

func parseCount(text string) (int64, error) {
	v, err := units.Parse(text, units.Counts)
	if err == nil && v > 1<<62 {
		return 0, units.ErrRange
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
