package units_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		of   []units.Unit
		want uint64
		err  error
	}{
		{"64KB", units.Sizes, 64_000, nil},
		{"64KiB", units.Sizes, 65_536, nil},
		{"1.5GiB", units.Sizes, 3 << 29, nil},
		{"0.001KB", units.Sizes, 1, nil},
		{"0B", units.Sizes, 0, nil},
		{"007B", units.Sizes, 7, nil},
		{"18446744073709551615B", units.Sizes, math.MaxUint64, nil},
		{"18446744073709551616B", units.Sizes, 0, units.ErrRange},
		{"16777216TiB", units.Sizes, 0, units.ErrRange},
		{"1.5B", units.Sizes, 0, units.ErrFraction},
		{"0.0001KB", units.Sizes, 0, units.ErrFraction},
		{"64", units.Sizes, 0, units.ErrForm},
		{"KB", units.Sizes, 0, units.ErrForm},
		{".5KB", units.Sizes, 0, units.ErrForm},
		{"5.KB", units.Sizes, 0, units.ErrForm},
		{"1.2.3KB", units.Sizes, 0, units.ErrForm},
		{"1e3KB", units.Sizes, 0, units.ErrForm},
		{"-1KB", units.Sizes, 0, units.ErrForm},
		{"1kb", units.Sizes, 0, units.ErrForm},
		{"1Kb", units.Sizes, 0, units.ErrForm},
		{"1KB ", units.Sizes, 0, units.ErrForm},
		{"1 KB", units.Sizes, 0, units.ErrForm},
		{"", units.Sizes, 0, units.ErrForm},
		{"1" + string(make([]byte, 100)), units.Sizes, 0, units.ErrForm},
		{"00000000000000000000000000000000000000001B", units.Sizes, 0, units.ErrForm},
		{"100Gbps", units.Rates, 1e11, nil},
		{"2.5Gbps", units.Rates, 25e8, nil},
		{"100kbps", units.Rates, 1e5, nil},
		{"100Kbps", units.Rates, 0, units.ErrForm},
		{"100GB", units.Rates, 0, units.ErrForm},
		{"1Mi", units.Counts, 1 << 20, nil},
		{"4096", units.Counts, 4096, nil},
		{"1M", units.Counts, 0, units.ErrForm},
	} {
		got, err := units.Parse(c.text, c.of)
		if err != c.err || got != c.want {
			t.Errorf("%q: got %d, %v; want %d, %v", c.text, got, err, c.want, c.err)
		}
	}
}

func TestExactIsParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([][]units.Unit{units.Sizes, units.Rates, units.Counts}).Draw(t, "of")
		v := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.Uint64Range(0, 1<<20), func(v uint64) uint64 {
			return v * of[0].Factor / 1000
		})).Draw(t, "v")
		text := units.Exact(v, of)
		if got, err := units.Parse(text, of); err != nil || got != v {
			t.Fatalf("%d written as %s is read as %d, %v", v, text, got, err)
		}
	})
}

func TestParseIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`[0-9]{1,12}(\.[0-9]{1,12})?`).Draw(t, "number")
		u := rapid.SampledFrom(units.Sizes).Draw(t, "unit")
		exact, _ := new(big.Rat).SetString(number)
		exact.Mul(exact, new(big.Rat).SetInt(new(big.Int).SetUint64(u.Factor)))
		got, err := units.Parse(number+u.Name, units.Sizes)
		switch {
		case !exact.IsInt():
			if err != units.ErrFraction {
				t.Fatalf("%s%s: got %d, %v", number, u.Name, got, err)
			}
		case !exact.Num().IsUint64():
			if err != units.ErrRange {
				t.Fatalf("%s%s: got %d, %v", number, u.Name, got, err)
			}
		case err != nil || got != exact.Num().Uint64():
			t.Fatalf("%s%s: got %d, %v; want %s", number, u.Name, got, err, exact.Num())
		}
	})
}

func TestMeantUnits(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"100Mbit/s", "100Mbps"}, {"10G", "10Gbps"}, {"10GbE", "10Gbps"}, {"100 Gbps", "100Gbps"}, {"100GBPS", "100Gbps"}, {"40gbit", "40Gbps"}, {"2.5Gb/s", "2.5Gbps"}, {"64Kbps", "64kbps"},
		{"400Gbits/s", "400Gbps"}, {"1250MB/s", "10Gbps"}, {"1GBps", "8Gbps"}, {"10Gib", ""}, {"fast", ""}, {"10GHz", ""}, {"", ""}, {"1e9bps", ""}, {"10000000", ""},
	} {
		checkMeant(t, c.text, c.want, units.Rates, yamldoc.ParseRate)
	}
	for _, c := range []struct{ text, want string }{
		{"10M", "10MB"}, {"64Ki", "64KiB"}, {"64kib", "64KiB"}, {"64 KB", "64KB"}, {"1500", ""}, {"1bit", ""}, {"1500bytes", "1500B"}, {"4Gbyte", "4GB"}, {"4megabytes", ""}, {"much", ""}, {"", ""},
	} {
		checkMeant(t, c.text, c.want, units.Sizes, yamldoc.ParseSize)
	}
}

func checkMeant(t *testing.T, text, want string, of []units.Unit, parse func(string) (uint64, error)) {
	t.Helper()
	if got := units.Meant(text, of); got != want {
		t.Errorf("%q: meant is %q, want %q", text, got, want)
	}
	_, err := parse(text)
	if err == nil || want != "" && !strings.Contains(err.Error(), "did you mean "+want+"?") {
		t.Errorf("%q: %v, want a hint %q", text, err, want)
	}
	if want != "" {
		if _, err := parse(want); err != nil {
			t.Errorf("%q: the hint %q isn't read: %v", text, want, err)
		}
	}
}

func TestMeantUnitsAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([][]units.Unit{units.Sizes, units.Rates, units.Lengths, units.Counts}).Draw(t, "of")
		text := rapid.StringMatching(`[0-9]{0,20}(\.[0-9]{1,3})? ?[kKmMgGtTi]{0,2}[bBpPitesE/]{0,6}`).Draw(t, "text")
		if meant := units.Meant(text, of); meant != "" {
			if _, err := units.Parse(meant, of); err != nil {
				t.Fatalf("%q: %q: %v", text, meant, err)
			}
		}
	})
}
