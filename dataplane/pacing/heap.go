package pacing

// flowHeaps are the flows with held frames. Those of a host are a leftist heap, with the least served flow on top.
type flowHeaps struct{ pool[pacedFlow] }

// merge merges two leftist heaps, with the least served flow on top. Its depth of recursion is the number of right levels of the heaps: at
// most the logarithm of their flows.
func (f *flowHeaps) merge(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return a + b
	}
	if f.of[b].served < f.of[a].served {
		a, b = b, a
	}
	top := &f.of[a]
	top.right = f.merge(top.right, b)
	if f.of[top.left].distance < f.of[top.right].distance {
		top.left, top.right = top.right, top.left
	}
	top.distance = f.of[top.right].distance + 1
	return a
}

// dueHeap has the hosts with held frames, a binary heap by dueAt.
type dueHeap struct {
	of    []uint32    // place 0 is unused
	hosts []pacedHost // of the hostTable
}

// before reports whether a host is ready before another one.
func (d *dueHeap) before(a, b uint32) bool { return d.hosts[a].dueAt() < d.hosts[b].dueAt() }

func (d *dueHeap) put(place, at uint32) {
	d.of[place] = at
	d.hosts[at].rank = place
}

// up moves a host from a place in due towards the root as far as it belongs.
func (d *dueHeap) up(place, at uint32) {
	for place > 1 && d.before(at, d.of[place/2]) {
		d.put(place, d.of[place/2])
		place /= 2
	}
	d.put(place, at)
}

// down moves a host from a place in due towards the leaves.
func (d *dueHeap) down(place, at uint32) {
	for {
		child := 2 * place
		if int(child) >= len(d.of) {
			break
		}
		if int(child)+1 < len(d.of) && d.before(d.of[child+1], d.of[child]) {
			child++
		}
		if !d.before(d.of[child], at) {
			break
		}
		d.put(place, d.of[child])
		place = child
	}
	d.put(place, at)
}

// move restores the order after the time at which a host is due has changed.
func (d *dueHeap) move(at uint32) {
	if rank := d.hosts[at].rank; rank != 0 {
		d.up(rank, at)
		d.down(d.hosts[at].rank, at)
	}
}

// add adds a host.
func (d *dueHeap) add(at uint32) {
	d.of = append(d.of, at) // within its capacity: each host is in it once
	d.up(uint32(len(d.of)-1), at)
}

// remove removes the host at a place from due.
func (d *dueHeap) remove(place uint32) {
	end := uint32(len(d.of) - 1)
	last := d.of[end]
	d.of = d.of[:end]
	if place != end {
		d.up(place, last)
		d.down(d.hosts[last].rank, last)
	}
}
