package replay_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestHealthOfUnsortedCaptures: frames that are recorded out of the order of their timestamps, as by several queues, change nothing.
func TestHealthOfUnsortedCaptures(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, c := range captures(t) {
		t.Run(c.name, func(t *testing.T) {
			all := frames(t, readFile(t, c.path))
			for i := range all[1:] { // no two at the same time
				all[i+1].at = max(all[i+1].at, all[i].at+1)
			}
			want := reportText(t, rewritten(t, all))
			mixed := all[:0:0]
			for len(all) > 0 { // blocks of several queues
				n := min(len(all), 1+random.IntN(50))
				queues := [2][]frame{}
				for _, f := range all[:n] {
					q := random.IntN(2)
					queues[q] = append(queues[q], f)
				}
				mixed, all = append(append(mixed, queues[1]...), queues[0]...), all[n:]
			}
			if got := reportText(t, rewritten(t, mixed)); got != want {
				t.Errorf("out of order:\n%s\nin order:\n%s", got, want)
			}
		})
	}
}

func reportText(t *testing.T, path string) string {
	t.Helper()
	r := healthOf(t, path)
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
