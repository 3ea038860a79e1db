package config

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		text  string
		units []unit
		want  uint64
		err   error
	}{
		{"64KB", sizeUnits, 64_000, nil},
		{"64KiB", sizeUnits, 65_536, nil},
		{"1.5GiB", sizeUnits, 3 << 29, nil},
		{"0.001KB", sizeUnits, 1, nil},
		{"0B", sizeUnits, 0, nil},
		{"007B", sizeUnits, 7, nil},
		{"18446744073709551615B", sizeUnits, math.MaxUint64, nil},
		{"18446744073709551616B", sizeUnits, 0, errRange},
		{"16777216TiB", sizeUnits, 0, errRange},
		{"1.5B", sizeUnits, 0, errFraction},
		{"0.0001KB", sizeUnits, 0, errFraction},
		{"64", sizeUnits, 0, errForm},
		{"KB", sizeUnits, 0, errForm},
		{".5KB", sizeUnits, 0, errForm},
		{"5.KB", sizeUnits, 0, errForm},
		{"1.2.3KB", sizeUnits, 0, errForm},
		{"1e3KB", sizeUnits, 0, errForm},
		{"-1KB", sizeUnits, 0, errForm},
		{"1kb", sizeUnits, 0, errForm},
		{"1Kb", sizeUnits, 0, errForm},
		{"1KB ", sizeUnits, 0, errForm},
		{"1 KB", sizeUnits, 0, errForm},
		{"", sizeUnits, 0, errForm},
		{"1" + string(make([]byte, 100)), sizeUnits, 0, errForm},
		{"00000000000000000000000000000000000000001B", sizeUnits, 0, errForm},
		{"100Gbps", rateUnits, 1e11, nil},
		{"2.5Gbps", rateUnits, 25e8, nil},
		{"100kbps", rateUnits, 1e5, nil},
		{"100Kbps", rateUnits, 0, errForm},
		{"100GB", rateUnits, 0, errForm},
		{"1Mi", countUnits, 1 << 20, nil},
		{"4096", countUnits, 4096, nil},
		{"1M", countUnits, 0, errForm},
	} {
		got, err := parseUnits(c.text, c.units)
		if err != c.err || got != c.want {
			t.Errorf("%q: got %d, %v; want %d, %v", c.text, got, err, c.want, c.err)
		}
	}
}

// Every value in its shortest form is read back unchanged.
func TestUnitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SampledFrom([][]unit{sizeUnits, rateUnits, countUnits}).Draw(t, "units")
		v := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.Uint64Range(0, 1<<20), func(v uint64) uint64 {
			return v * units[0].factor / 1000
		})).Draw(t, "v")
		text := formatUnits(v, units)
		if got, err := parseUnits(text, units); err != nil || got != v {
			t.Fatalf("%d written as %s is read as %d, %v", v, text, got, err)
		}
	})
}

// A fraction is exact or refused, never rounded.
func TestUnitsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`[0-9]{1,12}(\.[0-9]{1,12})?`).Draw(t, "number")
		u := rapid.SampledFrom(sizeUnits).Draw(t, "unit")
		exact, _ := new(big.Rat).SetString(number)
		exact.Mul(exact, new(big.Rat).SetInt(new(big.Int).SetUint64(u.factor)))
		got, err := parseUnits(number+u.name, sizeUnits)
		switch {
		case !exact.IsInt():
			if err != errFraction {
				t.Fatalf("%s%s: got %d, %v", number, u.name, got, err)
			}
		case !exact.Num().IsUint64():
			if err != errRange {
				t.Fatalf("%s%s: got %d, %v", number, u.name, got, err)
			}
		case err != nil || got != exact.Num().Uint64():
			t.Fatalf("%s%s: got %d, %v; want %s", number, u.name, got, err, exact.Num())
		}
	})
}

func TestOtherNumbers(t *testing.T) {
	integers := map[string]int64{"0": 0, "17": 17, "-3": -3, "0x9E": 0x9e, "0xff": 255, "9223372036854775807": math.MaxInt64}
	for text, want := range integers {
		if got, err := parseInteger(text); err != nil || got != want {
			t.Errorf("integer %q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "+1", "010", "0b1", "0o7", "1_000", "0x", "0x-1", "-0x1", "1.0", "9223372036854775808", "٣"} {
		if got, err := parseInteger(text); err == nil {
			t.Errorf("integer %q: got %d", text, got)
		}
	}
	rates := map[string]uint64{"0": 0, "0/s": 0, "1000/s": 1000}
	for text, want := range rates {
		if got, err := parsePerSecond(text); err != nil || got != want {
			t.Errorf("a second %q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "/s", "1000", "1000/m", "+1/s", "-1/s", "1.5/s", "99999999999999999999/s"} {
		if got, err := parsePerSecond(text); err == nil {
			t.Errorf("a second %q: got %d", text, got)
		}
	}
	for _, v := range []uint64{1, 250_000, 1_000_000, 99_999_999} {
		if got, err := parseDecimal(formatMillionths(v)); err != nil || got != v {
			t.Errorf("millionths %d: got %d, %v", v, got, err)
		}
	}
}
