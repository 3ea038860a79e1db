package pacing

// merge merges two leftist heaps, with the least served flow on top. Its depth of recursion is the number of right levels of the heaps: at
// most the logarithm of their flows.
func (p *Pacer) merge(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return a + b
	}
	if p.flows.of[b].served < p.flows.of[a].served {
		a, b = b, a
	}
	top := &p.flows.of[a]
	top.right = p.merge(top.right, b)
	if p.flows.of[top.left].distance < p.flows.of[top.right].distance {
		top.left, top.right = top.right, top.left
	}
	top.distance = p.flows.of[top.right].distance + 1
	return a
}

// before reports whether a host is ready before another one.
func (p *Pacer) before(a, b uint32) bool { return p.hosts.of[a].dueAt() < p.hosts.of[b].dueAt() }

func (p *Pacer) put(place, at uint32) {
	p.due[place] = at
	p.hosts.of[at].rank = place
}

// up moves a host from a place in due towards the root as far as it belongs.
func (p *Pacer) up(place, at uint32) {
	for place > 1 && p.before(at, p.due[place/2]) {
		p.put(place, p.due[place/2])
		place /= 2
	}
	p.put(place, at)
}

// down moves a host from a place in due towards the leaves.
func (p *Pacer) down(place, at uint32) {
	for {
		child := 2 * place
		if int(child) >= len(p.due) {
			break
		}
		if int(child)+1 < len(p.due) && p.before(p.due[child+1], p.due[child]) {
			child++
		}
		if !p.before(p.due[child], at) {
			break
		}
		p.put(place, p.due[child])
		place = child
	}
	p.put(place, at)
}

// move restores the order after the time at which a host is due has changed.
func (p *Pacer) move(at uint32) {
	if rank := p.hosts.of[at].rank; rank != 0 {
		p.up(rank, at)
		p.down(p.hosts.of[at].rank, at)
	}
}

// remove removes the host at a place from due.
func (p *Pacer) remove(place uint32) {
	end := uint32(len(p.due) - 1)
	last := p.due[end]
	p.due = p.due[:end]
	if place != end {
		p.up(place, last)
		p.down(p.hosts.of[last].rank, last)
	}
}
