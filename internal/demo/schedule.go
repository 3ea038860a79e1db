package main

import "time"

// most and little are the shares of the host whose turn it is, and of each other one.
const most, little = 40, 1

// load is what the hosts offer over a run, in parts of the full rate, which is four times the WAN port's: the queue stays empty,
// grows slowly, is flooded, and drains.
var load = []struct{ until, part float64 }{{0.2, 0.5 / 4}, {0.4, 1.5 / 4}, {0.8, 1}, {1, 0.5 / 4}}

// loadAt is the part at a time of a run.
func loadAt(at, length time.Duration) float64 {
	for _, l := range load {
		if at.Seconds() < l.until*length.Seconds() {
			return l.part
		}
	}
	return load[len(load)-1].part
}

// turnOf is how long one host sends most in a run; then the next. It is above the time that the full queue takes to drain, so that
// each host's flow comes to have the largest share of it.
func turnOf(length time.Duration) time.Duration { return min(length/8, 500*time.Millisecond) }

// schedule decides which host sends the next frame: smooth weighted round robin by frames, with weights that change by turns.
// Hosts that nobody may tell never get a turn: the largest contributor would then be one that can't be told.
type schedule struct {
	hosts  []host
	turn   time.Duration
	credit []float64 // frames, times the sum of the weights, by host
	next   []int     // place in the host's frames
}

func newSchedule(hosts []host, turn time.Duration) *schedule {
	return &schedule{hosts: hosts, turn: turn, credit: make([]float64, len(hosts)), next: make([]int, len(hosts))}
}

// frame gives the frame to send at a time after the start, and whose it is.
func (s *schedule) frame(at time.Duration) ([]byte, int) {
	best, sum := 0, 0.0
	for i := range s.hosts {
		w := s.weight(i, at)
		s.credit[i] += w
		sum += w
		if s.credit[i] > s.credit[best] {
			best = i
		}
	}
	h := &s.hosts[best]
	f := h.frames[s.next[best]]
	s.next[best] = (s.next[best] + 1) % len(h.frames)
	s.credit[best] -= sum
	return f, best
}

func (s *schedule) weight(i int, at time.Duration) float64 {
	var takers []int
	for j := range s.hosts {
		if s.hosts[j].accepts != "" {
			takers = append(takers, j)
		}
	}
	if takers[int(at/s.turn)%len(takers)] == i {
		return most
	}
	return little
}
