package control

import (
	"runtime"
	"testing"
)

// However few threads the environment allows, there are two besides the workers; more stay.
func TestTuneRuntime(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, c := range []struct{ before, workers, want int }{{1, 3, 5}, {5, 3, 5}, {9, 3, 9}} {
		runtime.GOMAXPROCS(c.before)
		tuneRuntime(c.workers)
		if got := runtime.GOMAXPROCS(0); got != c.want {
			t.Errorf("%d threads for %d workers, %d before: want %d", got, c.workers, c.before, c.want)
		}
	}
}
