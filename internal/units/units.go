// Package units has the notation of rates and sizes, which is one in configurations, on command lines and in what people read: 9.31Gbps, 1.25MB.
package units

import (
	"cmp"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// Unit is a suffix and what it multiplies with.
type Unit struct {
	Name   string
	Factor uint64
}

// From the largest to the smallest, so that formatting finds the shortest form first.
var (
	Sizes = []Unit{
		{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
		{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1},
	}
	Rates   = []Unit{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}
	Lengths = []Unit{{"km", 1000}, {"m", 1}}
	Counts  = []Unit{{"Mi", 1 << 20}, {"Ki", 1 << 10}, {"", 1}}
)

// What is wrong with a text that Parse refuses.
var (
	ErrForm     = errors.New("not a number with a unit")
	ErrFraction = errors.New("not a whole number of the smallest unit")
	ErrRange    = errors.New("too large")
)

const maxDigits = 40 // of a number: more than any valid value has

// Parse reads digits, perhaps with a decimal fraction, directly followed by a unit. The result is exact.
func Parse(text string, of []Unit) (uint64, error) {
	end := strings.IndexFunc(text, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
	if end < 0 {
		end = len(text)
	}
	whole, fraction, dot := strings.Cut(text[:end], ".")
	if whole == "" || dot && fraction == "" || strings.Contains(fraction, ".") || end > maxDigits {
		return 0, ErrForm
	}
	for _, u := range of {
		if text[end:] == u.Name {
			v, _ := new(big.Rat).SetString(text[:end])
			v.Mul(v, new(big.Rat).SetInt(new(big.Int).SetUint64(u.Factor)))
			switch {
			case !v.IsInt():
				return 0, ErrFraction
			case !v.Num().IsUint64():
				return 0, ErrRange
			}
			return v.Num().Uint64(), nil
		}
	}
	return 0, ErrForm
}

// Exact writes a value in the largest unit that divides it; Parse reads it back.
func Exact(v uint64, of []Unit) string {
	for _, u := range of {
		if v >= u.Factor && v%u.Factor == 0 {
			return strconv.FormatUint(v/u.Factor, 10) + u.Name
		}
	}
	return strconv.FormatUint(v, 10) + of[len(of)-1].Name
}

// Meant is the text as it may be meant: without spaces, with the unit in its own case, and a rate or a size in another notation, such as 100Mbit/s, 10G or
// 1250MB/s; "" if that is no value either.
func Meant(text string, of []Unit) string {
	text = strings.Join(strings.Fields(text), "")
	number := strings.TrimRightFunc(text, func(c rune) bool { return unicode.IsLetter(c) || c == '/' })
	suffix := text[len(number):]
	meant := func(unit string) string {
		for _, u := range of {
			if _, err := Parse(number+u.Name, of); err == nil && strings.EqualFold(unit, u.Name) {
				return number + u.Name
			}
		}
		return ""
	}
	if suffix == "" {
		return "" // whatever unit is meant
	}
	isRate := &of[0] == &Rates[0]
	endings, amount := []string{"bytes", "byte", "b"}, strings.TrimRight(suffix, "/sp") // of what a rate has a second
	if isRate {
		endings = []string{"bits", "bit", "be", "b"} // 10GbE
	}
	prefix := amount
	for _, ending := range endings {
		if n := len(amount) - len(ending); n >= 0 && strings.EqualFold(amount[n:], ending) {
			prefix = amount[:n]
			break
		}
	}
	found := cmp.Or(meant(suffix), meant(prefix+of[len(of)-1].Name))
	if isRate && strings.HasSuffix(amount, "B") && amount != suffix && found != "" { // bytes a second
		if v, err := Parse(found, of); err == nil && v <= math.MaxUint64/8 {
			return Exact(8*v, of)
		}
	}
	return found
}

// Rate is a rate in bit/s: three digits and a decimal unit.
func Rate[N uint64 | int64 | float64](bps N) string {
	return scaled(float64(bps), "bps", "kbps", "Mbps", "Gbps", "Tbps")
}

// Packets is a rate in packets a second.
func Packets(pps uint64) string { return scaled(float64(pps), "pps", "kpps", "Mpps", "Gpps") }

// Size is a number of bytes.
func Size[N uint64 | int64 | float64](bytes N) string {
	return scaled(float64(bytes), "B", "KB", "MB", "GB", "TB")
}

// scaled is a number with three digits, in the largest of some decimal units that leaves a whole part.
func scaled(value float64, units ...string) string {
	for value >= 999.5 && len(units) > 1 {
		value, units = value/1000, units[1:]
	}
	digits := strconv.FormatFloat(value, 'g', 3, 64)
	if value >= 999.5 { // beyond the largest unit; 'g' would write an exponent
		digits = strconv.FormatFloat(value, 'f', 0, 64)
	}
	return digits + units[0]
}
