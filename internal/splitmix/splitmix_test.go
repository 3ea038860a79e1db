package splitmix_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// TestRand fixes the numbers, so that simulations stay repeatable. The first is splitmix64's published one for the seed 1234567
// (https://prng.di.unimi.it/splitmix64.c).
func TestRand(t *testing.T) {
	r := splitmix.Rand(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423} {
		if got := r.Next(); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
	a, b := splitmix.New(1, 1), splitmix.New(1, 2)
	if a.Next() == b.Next() {
		t.Error("two purposes draw the same numbers")
	}
	sum := 0.0
	for range 10_000 {
		f := a.Float()
		if f < 0 || f >= 1 {
			t.Fatalf("%v is not between 0 and 1", f)
		}
		sum += f
	}
	if mean := sum / 10_000; mean < 0.49 || mean > 0.51 {
		t.Errorf("the mean is %v, want 0.5", mean)
	}
}
