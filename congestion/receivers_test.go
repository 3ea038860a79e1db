package congestion

import (
	"testing"

	"pgregory.net/rapid"
)

// TestReceiversAgree: receivers that lie, if they are fewer than must agree, or all of one tenant, never move the value more than a quarter
// away from those of the others.
func TestReceiversAgree(t *testing.T) {
	const honest = 10 * millisecond
	rapid.Check(t, func(t *rapid.T) {
		r, p := RTT{Receivers: agreeing}, preferring(RTTPassive, RTTConfigured)
		tenants := rapid.Bool().Draw(t, "tenants") // all liars are of one, and some others of another
		liars := rapid.IntRange(0, agreeing-1).Draw(t, "liars")
		if tenants {
			liars = rapid.IntRange(0, 8).Draw(t, "liars")
		}
		now := 10 * aSecond
		for n := range liars {
			r.SampleOf(p, Receiver(n+1), now, rapid.Int64Range(1, 40*millisecond).Draw(t, "lie"))
		}
		others := rapid.IntRange(1, 6).Draw(t, "others")
		for n := range others {
			name := Receiver(100 + n)
			if tenants {
				name += 1 << 16
			}
			r.SampleOf(p, name, now, honest+rapid.Int64Range(0, millisecond).Draw(t, "true"))
		}
		r.Update(p, 12*millisecond, now)
		value, source := r.InForce()
		if source == RTTPassive && (value < honest*4/5 || value > honest*5/4+honest/8) {
			t.Fatalf("%d ns", value)
		}
		if liars == 0 && (source == RTTPassive) != (others >= agreeing) {
			t.Fatalf("%d receivers: by %v", others, source)
		}
	})
}

// TestTrust: without a lower bound by the operator, that is half of the configured RTT.
func TestTrust(t *testing.T) {
	for _, c := range []struct{ min, configured, want int64 }{{0, 10, 5}, {0, 0, 0}, {3, 10, 0}} {
		if got := (&RTTPolicy{Min: c.min}).Trust(c.configured); got != (Trust{c.want, agreeing}) {
			t.Errorf("min %d, configured %d: %+v", c.min, c.configured, got)
		}
	}
}
