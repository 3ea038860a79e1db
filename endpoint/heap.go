package endpoint

// timerHeap holds QPs by time, each at most once. The QP stores its index, so that its time can be changed.
type timerHeap struct {
	entries []timerEntry
}

type timerEntry struct {
	at    int64
	place *int32 // the QP's field for the entry's index plus 1; 0 while it isn't in the heap
	qp    *qp
}

func (t *timerHeap) first() (at int64, ok bool) {
	if len(t.entries) == 0 {
		return never, false
	}
	return t.entries[0].at, true
}

// set puts a QP into the heap, or changes its time.
func (t *timerHeap) set(q *qp, place *int32, at int64) {
	i := int(*place) - 1
	if i < 0 {
		i = len(t.entries)
		t.entries = append(t.entries, timerEntry{at, place, q})
		*place = int32(i + 1)
	}
	t.entries[i].at = at
	t.up(i)
	t.down(int(*place) - 1)
}

// popDue removes and returns the QP with the earliest time if that time has come; else it returns nil.
func (t *timerHeap) popDue(now int64) *qp {
	if len(t.entries) == 0 || t.entries[0].at > now {
		return nil
	}
	q := t.entries[0].qp
	t.remove(t.entries[0].place)
	return q
}

// remove removes the entry at *place, if there is one.
func (t *timerHeap) remove(place *int32) {
	i := int(*place) - 1
	if i < 0 {
		return
	}
	*place = 0
	last := len(t.entries) - 1
	moved := t.entries[last]
	t.entries[last] = timerEntry{}
	t.entries = t.entries[:last]
	if i == last {
		return
	}
	t.entries[i] = moved
	*moved.place = int32(i + 1)
	t.up(i)
	t.down(int(*moved.place) - 1)
}

func (t *timerHeap) up(i int) {
	e := t.entries[i]
	for i > 0 {
		parent := (i - 1) / 2
		if t.entries[parent].at <= e.at {
			break
		}
		t.entries[i] = t.entries[parent]
		*t.entries[i].place = int32(i + 1)
		i = parent
	}
	t.entries[i] = e
	*e.place = int32(i + 1)
}

func (t *timerHeap) down(i int) {
	e := t.entries[i]
	for {
		child := 2*i + 1
		if child >= len(t.entries) {
			break
		}
		if child+1 < len(t.entries) && t.entries[child+1].at < t.entries[child].at {
			child++
		}
		if e.at <= t.entries[child].at {
			break
		}
		t.entries[i] = t.entries[child]
		*t.entries[i].place = int32(i + 1)
		i = child
	}
	t.entries[i] = e
	*e.place = int32(i + 1)
}
