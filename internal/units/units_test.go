package units_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

func TestUnits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{units.Rate(uint64(0)), "0bps"}, {units.Rate(uint64(999)), "999bps"}, {units.Rate(uint64(999_499)), "999kbps"}, {units.Rate(uint64(999_500)), "1Mbps"},
		{units.Rate(uint64(12_345_678_901)), "12.3Gbps"}, {units.Rate(uint64(1e15)), "1000Tbps"}, {units.Rate(9.314e9), "9.31Gbps"},
		{units.Size(uint64(1_246_504)), "1.25MB"}, {units.Size(int64(64_000)), "64KB"}, {units.Size(int64(7)), "7B"}, {units.Size(uint64(math.MaxUint64)), "18446744TB"},
		{units.Packets(9_750_000), "9.75Mpps"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

// TestReadBack: configurations read what people see, and it is within three digits of the value.
func TestReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Uint64Range(0, 1<<20), rapid.Uint64Range(0, 1e16)).Draw(t, "v")
		rate, err := yamldoc.ParseRate(units.Rate(v))
		size, sizeErr := yamldoc.ParseSize(units.Size(v))
		for _, got := range []uint64{rate, size} {
			if err != nil || sizeErr != nil || math.Abs(float64(got)-float64(v)) > float64(v)*0.0051 {
				t.Fatalf("%d is written as %s and %s, and read as %d: %v, %v", v, units.Rate(v), units.Size(v), got, err, sizeErr)
			}
		}
	})
}
