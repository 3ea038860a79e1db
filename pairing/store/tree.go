package store

// attach makes a slot that is not in use the n-th one of a side, under both locks. It returns false if there is none, or no node for it.
func (s *Store) attach(g *Group, side, n int) (slot Slot, ok bool) {
	x := uint32(0)
	at := s.grow(g, side, n)
	if at != nil {
		x = s.newSlot()
	}
	if x == 0 {
		s.shrink(g, side, n)
		return slot, false
	}
	*at = x
	g.attached[side]++
	s.slots[x].spot.Store(makeSpot(g.index, side, n))
	return s.At(x), true
}

// detach takes an empty slot from its group, and drops the group if it was the last one, under both locks. It does nothing while a flow of the side is
// about to leave its slot: which slot that is, can't be seen.
func (s *Store) detach(v *View) {
	g := v.g
	if g.Flows(v.Side()) >= int(g.attached[v.side]) {
		return
	}
	*s.find(g, v.Side(), v.Number(), 0) = 0
	g.attached[v.side]--
	v.p.spot.Store(0)
	v.p.free, s.freeSlot = s.freeSlot, v.x
	s.shrink(g, v.Side(), v.Number())
	s.Tidy(g)
}

// Tidy drops a group that has no slots and no branches, under both locks.
func (s *Store) Tidy(g *Group) {
	if g.attached[0]+g.attached[1] == 0 && g.branches.Load() == 0 {
		s.drop(g)
	}
}

// find returns where the number of slot n of a side is, or that of the node above it at a level; nil if the side's tree doesn't reach to it.
func (s *Store) find(g *Group, side, n, level int) *uint32 {
	height := int(g.heights[side])
	if n>>(nodeBits*height) != 0 {
		return nil
	}
	at := &g.trees[side]
	for ; height > level; height-- { // node 0 has only zeros
		at = &s.nodes[*at][n>>(nodeBits*(height-1))%len(Node{})]
	}
	return at
}

// grow makes the nodes that lead to slot n of a side, and returns where its number is to be written; nil if there are not enough nodes.
func (s *Store) grow(g *Group, side, n int) *uint32 {
	for n>>(nodeBits*int(g.heights[side])) != 0 {
		top := g.trees[side]
		if top != 0 {
			x := s.newNode()
			if x == 0 {
				return nil
			}
			s.nodes[x][0], g.trees[side] = top, x
		}
		g.heights[side]++
	}
	for level := int(g.heights[side]); level > 0; level-- {
		at := s.find(g, side, n, level)
		if *at == 0 {
			*at = s.newNode()
		}
		if *at == 0 {
			return nil
		}
	}
	return s.find(g, side, n, 0)
}

// shrink frees the nodes that only led to slot n of a side, and which is the last slot of the side.
func (s *Store) shrink(g *Group, side, n int) {
	for level := 1; level <= int(g.heights[side]); level++ {
		at := s.find(g, side, n, level)
		if at == nil || *at == 0 {
			continue
		}
		if s.nodes[*at] != (Node{}) {
			break
		}
		s.nodes[*at][0], s.freeNode = s.freeNode, *at
		*at = 0
	}
	if g.trees[side] == 0 {
		g.heights[side] = 0
	}
	used := g.Used(side)
	for used > 0 {
		if at := s.find(g, side, used-1, 0); at != nil && *at != 0 {
			break
		}
		used--
	}
	g.used[side].Store(int32(used))
}

func (s *Store) newNode() uint32 {
	x := s.freeNode
	switch {
	case x != 0:
		s.freeNode = s.nodes[x][0]
		s.nodes[x] = Node{}
	case int(s.usedNodes) < len(s.nodes)-1:
		s.usedNodes++
		x = s.usedNodes
	}
	return x
}

func (s *Store) newSlot() uint32 {
	x := s.freeSlot
	switch {
	case x != 0:
		s.freeSlot = s.slots[x].free
	case int(s.usedSlots) < len(s.slots)-1:
		s.usedSlots++
		x = s.usedSlots
	}
	return x
}
