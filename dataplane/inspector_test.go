package dataplane

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/health"
)

// TestInspectedWindows: of few packets a worker inspects all, of many as many as it may, in windows that are longer than a WAN's round trip.
func TestInspectedWindows(t *testing.T) {
	const burst, seconds = 32, 40
	for _, rate := range []int64{healthRate / 2, healthRate, 10 * healthRate, 100 * healthRate} {
		table, err := health.New(make([]byte, health.Size(1)), 1)
		if err != nil {
			t.Fatal(err)
		}
		s := &stage.State{Now: 1e9}
		i, err := newInspector(s, &Config{})
		if err != nil {
			t.Fatal(err)
		}
		i.follower = &health.Follower{Table: table}
		inspected, opened, shortest := int64(0), int64(0), int64(seconds*1e9)
		for end := s.Now + seconds*1e9; s.Now < end; s.Now += burst * 1e9 / rate {
			closed := i.closed
			if i.mayInspect(burst) {
				inspected += burst
			}
			switch {
			case closed && !i.closed:
				opened = s.Now
			case !closed && i.closed:
				shortest = min(shortest, s.Now-opened)
			}
		}
		most, least := int64(healthRate*(seconds+healthTime)), min(rate, healthRate)*(seconds-healthTime)
		if rate <= healthRate {
			least = rate * (seconds - healthTime/10) * 99 / 100
		}
		if inspected > most || inspected < least || shortest < 100e6 {
			t.Errorf("at %d packets a second, %d are inspected, want %d to %d; the shortest window is %d ns", rate, inspected, least, most, shortest)
		}
	}
}
