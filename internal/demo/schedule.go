package main

import "time"

const (
	// turn is how long one host sends most; then the next. Well above what the queue holds, so that each host's flow comes to
	// have the largest share of it.
	turn = 400 * time.Millisecond
	// most and little are the shares of the host whose turn it is, and of each other one.
	most, little = 10, 1
)

// schedule decides which host sends the next frame: smooth weighted round robin by frames, with weights that change by turns.
// Hosts that nobody may tell never get a turn: the largest contributor would then be one that can't be told.
type schedule struct {
	hosts  []host
	credit []float64 // frames, times the sum of the weights, by host
	next   []int     // place in the host's frames
}

func newSchedule(hosts []host) *schedule {
	return &schedule{hosts: hosts, credit: make([]float64, len(hosts)), next: make([]int, len(hosts))}
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
	if takers[int(at/turn)%len(takers)] == i {
		return most
	}
	return little
}
