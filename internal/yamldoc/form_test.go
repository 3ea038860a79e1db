package yamldoc

import (
	"math"
	"strconv"
	"testing"
)

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
		if got, err := parseDecimal(strconv.FormatFloat(float64(v)/million, 'f', -1, 64)); err != nil || got != v {
			t.Errorf("millionths %d: got %d, %v", v, got, err)
		}
	}
}
