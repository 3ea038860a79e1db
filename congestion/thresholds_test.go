package congestion

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func TestAdaptive(t *testing.T) {
	const (
		kb = 1000
		mb = 1000 * kb
		ms = int64(1e6)
		s  = int64(1e9)
		g  = uint64(1e9)
	)
	cases := []struct {
		name        string
		kBase       uint64
		alpha       float64
		rate        uint64
		rtt         int64
		kMinPercent int
		kMin, kMax  uint64
	}{
		{"draft-tian 7 step 2", 64 * kb, 1, 100 * g, 10 * ms, 50, 62_500 * kb, 125 * mb},
		{"K_base is the floor of a short link", 64 * kb, 1, 10 * g, 2000, 50, 32 * kb, 64 * kb},
		{"no RTT: K_base", 150 * kb, 1, 100 * g, 0, 50, 75 * kb, 150 * kb},
		{"negative RTT: K_base", 150 * kb, 1, 100 * g, -1, 50, 75 * kb, 150 * kb},
		{"alpha 0.7 is not one short", 1, 0.7, 100 * g, 10 * ms, 50, 43_750 * kb, 87_500 * kb},
		{"alpha 2", 64 * kb, 2, 100 * g, 10 * ms, 50, 125 * mb, 250 * mb},
		{"alpha 0: K_base", 64 * kb, 0, 100 * g, 10 * ms, 50, 32 * kb, 64 * kb},
		{"alpha not a number: K_base", 64 * kb, math.NaN(), 100 * g, 10 * ms, 50, 32 * kb, 64 * kb},
		{"alpha below 0: K_base", 64 * kb, -1, 100 * g, 10 * ms, 50, 32 * kb, 64 * kb},
		{"1 Tbps x 10 s", 64 * kb, 1, 1000 * g, 10 * s, 80, 1_000_000 * mb, 1_250_000 * mb},
		{"100 kbps x 10 ms", 1, 1, 100_000, 10 * ms, 50, 62, 125},
		{"K_min of 100 percent stays below", 64 * kb, 1, 1, 1, 100, 64*kb - 1, 64 * kb},
		{"K_min of 1000 percent stays below", 64 * kb, 1, 1, 1, 1000, 64*kb - 1, 64 * kb},
		{"K_min of 0 percent", 64 * kb, 1, 1, 1, 0, 0, 64 * kb},
		{"nothing known", 0, 1, 0, 0, 50, 0, 1},
		{"saturates", 1, 1, math.MaxUint64, math.MaxInt64, 50, math.MaxUint64 / 2, math.MaxUint64},
		{"saturates at the first product beyond 64 bits", 1, 1, 1 << 40, 8e9 << 24, 50, math.MaxUint64 / 2, math.MaxUint64},
		{"alpha saturates", 1, 1e300, 1000 * g, 10 * s, 50, math.MaxUint64 / 2, math.MaxUint64},
		{"alpha infinite saturates", 1, math.Inf(1), 1000 * g, 10 * s, 50, math.MaxUint64 / 2, math.MaxUint64},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Adaptive(c.kBase, c.alpha, c.rate, c.rtt, c.kMinPercent)
			if want := (Thresholds{c.kMin, c.kMax}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestAdaptiveExact compares with unbounded integers, for alpha 1, up to 1 Tbps x 10 s.
func TestAdaptiveExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kBase := rapid.Uint64Range(0, 1<<40).Draw(t, "kBase")
		rate := rapid.Uint64Range(0, 1e12).Draw(t, "rate")
		rtt := rapid.Int64Range(0, 10e9).Draw(t, "rtt")
		product := new(big.Int).Mul(new(big.Int).SetUint64(rate), big.NewInt(rtt))
		want := max(kBase, product.Div(product, big.NewInt(8e9)).Uint64(), 1)
		if got := Adaptive(kBase, 1, rate, rtt, 50).KMax; got != want {
			t.Fatalf("K_max is %d, want %d", got, want)
		}
	})
}

func TestAdaptiveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kBase := rapid.Uint64().Draw(t, "kBase")
		alpha := rapid.Float64().Draw(t, "alpha")
		rate, rtt := rapid.Uint64().Draw(t, "rate"), rapid.Int64().Draw(t, "rtt")
		kMinPercent := rapid.Int().Draw(t, "kMinPercent")
		k := Adaptive(kBase, alpha, rate, rtt, kMinPercent)
		if k.KMin >= k.KMax || k.KMax < kBase {
			t.Fatalf("%+v: want K_min < K_max and K_max >= %d", k, kBase)
		}
		faster := rapid.Uint64Min(rate).Draw(t, "faster")
		longer := rapid.Int64Min(rtt).Draw(t, "longer")
		for _, more := range []Thresholds{
			Adaptive(kBase, alpha, faster, rtt, kMinPercent), Adaptive(kBase, alpha, rate, longer, kMinPercent),
		} {
			if more.KMax < k.KMax || more.KMin < k.KMin {
				t.Fatalf("a larger link lowers %+v to %+v", k, more)
			}
		}
	})
}

// TestProxyLevel: 3 bits, rising with the Congestion Level: 0 below K_min, 1 at it, 5 at K_max, 7 far above.
func TestProxyLevel(t *testing.T) {
	k := Thresholds{KMin: 1000, KMax: 2000}
	for depth, want := range map[uint64]uint8{0: 0, 700: 0, 1000: 1, 1500: 3, 2000: 5, 2500: 6, 3200: 7, 4000: 7, 1 << 40: 7} {
		if got := packet.ProxyLevel(k.Severity(depth)); got != want {
			t.Errorf("%d bytes, Congestion Level %d: %d, want %d", depth, k.Severity(depth), got, want)
		}
	}
	for level := range 255 {
		if a, b := packet.ProxyLevel(uint8(level)), packet.ProxyLevel(uint8(level+1)); b < a || b > a+1 {
			t.Errorf("Congestion Levels %d and %d are %d and %d", level, level+1, a, b)
		}
	}
}
