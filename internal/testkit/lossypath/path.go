// Package lossypath is a path between two hosts that loses, delays, duplicates and marks packets, with a place in the middle where a capture is taken.
// It knows of each retransmission why it was sent, so that tests can compare what others conclude from the capture.
package lossypath

import (
	"container/heap"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Fate is what happens to a frame on one half of the path.
type Fate struct {
	Lost  bool
	Delay int64 // ns; frames that are delayed differently may overtake each other
	Twice bool
	CE    bool
}

// Rule decides what happens to a frame: from which host it comes (0 or 1), whether before the capture or behind it, and its number in this direction.
type Rule func(from int, behind bool, n int, p *packet.Parsed) Fate

// Path moves frames in the caller's time.
type Path struct {
	Rule    Rule
	Deliver func(to int, now int64, frame []byte)
	Capture func(now int64, frame []byte)
	Trace   *Trace // nil: none is kept

	events events
	seq    int
	n      [2]int
	Truth  Truth
}

// event is a frame that comes to the capture, or to the host at the end.
type event struct {
	at     int64
	seq    int
	from   int
	middle bool
	frame  []byte
	note   *transmission
	behind Fate
}

// Enter puts a frame on the path.
func (w *Path) Enter(from int, now int64, frame []byte) {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	n := w.n[from]
	w.n[from]++
	s := Step{At: now, From: from, Length: len(frame), Before: w.Rule(from, false, n, &p), Then: w.Rule(from, true, n, &p)}
	if w.Trace != nil && p.Kind == packet.RoCEv2 {
		s.Frame = append(s.Frame, frame[:min(len(frame), kept)]...)
		w.Trace.Steps = append(w.Trace.Steps, s)
	}
	w.enter(&s, frame)
}

func (w *Path) enter(s *Step, frame []byte) {
	var p packet.Parsed
	packet.Parse(frame, uint32(len(frame)), &p)
	note := w.Truth.sent(s.At, frame, &p)
	note.arrives = s.At + s.Before.Delay + s.Then.Delay
	if s.Then.Lost || s.Before.Lost {
		note.arrives = never
	}
	note.lost = [2]bool{s.Before.Lost, s.Then.Lost && !s.Before.Lost}
	if s.Before.Lost {
		return
	}
	f := append([]byte(nil), frame...)
	if s.Before.CE && p.ECN != 0 {
		packet.MarkCE(f, p.Outer, p.ECN)
	}
	copies := 1
	if s.Before.Twice {
		copies = 2
	}
	for range copies {
		w.push(event{at: s.At + s.Before.Delay, from: s.From, middle: true, frame: f, note: note, behind: s.Then})
	}
}

func (w *Path) push(e event) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.events, e)
}

// Due is when the next frame moves; ok is false if there is none.
func (w *Path) Due() (at int64, ok bool) {
	if len(w.events) == 0 {
		return 0, false
	}
	return w.events[0].at, true
}

// Run moves what is due.
func (w *Path) Run(now int64) {
	for len(w.events) > 0 && w.events[0].at <= now {
		e := heap.Pop(&w.events).(event)
		if !e.middle {
			w.Truth.arrived(e.note, e.at)
			w.Deliver(1-e.from, e.at, e.frame)
			continue
		}
		w.Truth.passed(e.note)
		if w.Capture != nil {
			w.Capture(e.at, e.frame)
		}
		if e.behind.Lost {
			continue
		}
		e.middle, e.at = false, e.at+e.behind.Delay
		w.push(e)
		if e.behind.Twice {
			w.push(e)
		}
	}
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}
