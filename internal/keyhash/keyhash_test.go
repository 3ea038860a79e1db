package keyhash

import "testing"

// TestSpread: the first numbers of SplitMix64 from seed 1234567, as its author published them.
func TestSpread(t *testing.T) {
	var got [3]uint64
	Spread(got[:], 1234567)
	if want := [3]uint64{6457827717110365317, 3203168211198807973, 9817491932198370423}; got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

func TestFold(t *testing.T) {
	for _, c := range [][3]uint64{{0, 5, 0}, {3, 7, 21}, {1 << 32, 1 << 32, 1}, {1<<64 - 1, 1<<64 - 1, 1<<64 - 1}} {
		if got := Fold(c[0], c[1]); got != c[2] {
			t.Errorf("Fold(%#x, %#x) = %#x, want %#x", c[0], c[1], got, c[2])
		}
	}
}
