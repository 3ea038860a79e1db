package store

// A group whose side is full has branches: groups of the same hosts, each for the flows with some UDP source ports. The two directions of a
// connection have one port if hosts use Linux's formula, so both find the same branch. A group has 16 branches at most, by four bits of the port's
// hash, a branch that is full 16 of its own, and so on until a branch is of one port.
const (
	branchBits = 4
	maxDepth   = 16 / branchBits
	// Depths is the number of groups on the way of a port: the group of two hosts, its branch, that one's branch, and so on.
	Depths = maxDepth + 1
	// SlotsABranch is how many flows of one direction a branch can have: a judgement of one compares it with all.
	SlotsABranch = 64
	// Branches is the number of branches that a group can have.
	Branches = 1 << branchBits
)

// branchOf is the number of a port's branch at a depth. Odd multiples of ports hash each to another value.
func branchOf(port uint16, depth uint8) uint16 {
	const odd = 0x9e37
	return uint16(uint32(port*odd) >> (16 - branchBits*uint32(depth)))
}

// Way finds the groups of two hosts in which a flow with a UDP source port may have a slot, under Store.Lock: theirs, the branch of the port, and
// so on.
func (s *Store) Way(whole *Group, port uint16, to *[Depths]*Group) (n int) {
	for g := whole; g != nil; n++ {
		to[n] = g
		if g.branches.Load() == 0 {
			return n + 1
		}
		g = s.group(&g.key, g.hash, g.depth+1, branchOf(port, g.depth+1))
	}
	return n
}

// MakeBranch makes a branch of a full group, for flows with a port; nil if there can be none, or if all groups are in use.
func (s *Store) MakeBranch(g *Group, port uint16) *Group {
	if g.IsDeepest() {
		return nil
	}
	depth := g.depth + 1
	b := s.newGroup(&g.key, g.hash, depth, branchOf(port, depth))
	if b == nil {
		return nil
	}
	b.beside = [2]uint32{g.index, 0}
	b.other.Store(g.other.Load())
	g.branches.Add(1)
	return b
}

// Branches finds the branches of a group of two hosts, but not theirs, under Store.Lock.
func (s *Store) Branches(g *Group, to *[Branches]*Group) (n int) {
	for number := range uint16(len(to)) {
		if g.branches.Load() == 0 {
			break
		}
		if b := s.group(&g.key, g.hash, 1, number); b != nil {
			to[n], n = b, n+1
		}
	}
	return n
}

// Above is the group whose branch a slot's group is; false for the group of two hosts.
func (v *View) Above() (*Group, bool) {
	return &v.s.groups[v.g.beside[0]], v.g.depth > 0
}

// Divided reports whether the group has branches, or is one.
func (g *Group) Divided() bool { return g.depth > 0 || g.branches.Load() > 0 }

// slots is how many slots a side can have.
func (g *Group) slots() int {
	if g.depth > 0 {
		return SlotsABranch
	}
	return SlotsASide
}

// Full reports whether each slot that a side can have has a flow.
func (g *Group) Full(side int) bool { return g.Flows(side) >= g.slots() }

// Holds reports whether the group has flows of a side, or branches, which may.
func (g *Group) Holds(side int) bool { return g.Flows(side) > 0 || g.branches.Load() > 0 }

// IsBranch reports whether the group is a branch.
func (g *Group) IsBranch() bool { return g.depth > 0 }

// IsDeepest reports whether the group is of one port, so that it can have no branches.
func (g *Group) IsDeepest() bool { return g.depth == maxDepth }

// Note keeps what was counted of the group's flows, for its branches.
func (g *Group) Note(counts uint32) { g.noted.Store(counts) }

// Noted is what was kept last, 0 at first.
func (g *Group) Noted() uint32 { return g.noted.Load() }
