package workload

import (
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/sim"
)

// Incast makes each sender send a number of bytes to the receiver, starting at a random time within `spread` ns.
func Incast(senders []int, receiver int, bytes, spread int64, seed uint64) []sim.Flow {
	const purpose = 2 << 40
	random := splitmix.New(seed, purpose)
	flows := make([]sim.Flow, 0, len(senders))
	for _, from := range senders {
		flows = append(flows, sim.Flow{From: from, To: receiver, Bytes: bytes, Start: int64(random.Below(uint64(spread) + 1))})
	}
	return flows
}

// AllToAll makes each rank send a number of bytes to every other rank, all at once.
func AllToAll(ranks []int, bytes int64) []sim.Flow {
	var flows []sim.Flow
	for shift := 1; shift < len(ranks); shift++ {
		for i, from := range ranks {
			flows = append(flows, sim.Flow{From: from, To: ranks[(i+shift)%len(ranks)], Bytes: bytes})
		}
	}
	return flows
}

// Ring is a ring all-reduce: in each of 2(n-1) steps, a rank sends an n-th of the bytes to the next rank, once it has received the data of
// the step before. A transfer counts as received when it is acknowledged.
func Ring(ranks []int, bytes int64) []sim.Flow {
	n := len(ranks)
	part := max(bytes/int64(n), 1)
	var flows []sim.Flow
	for step := range 2 * (n - 1) {
		for i := range ranks {
			f := sim.Flow{From: ranks[i], To: ranks[(i+1)%n], Bytes: part}
			if step > 0 {
				f.After[0] = (step-1)*n + (i+n-1)%n + 1
				f.After[1] = (step-1)*n + i + 1
			}
			flows = append(flows, f)
		}
	}
	return flows
}

// Tree is an all-reduce over a binary tree: each rank sends the bytes to its parent once its children have sent theirs. Then the root sends
// them back down the tree.
func Tree(ranks []int, bytes int64) []sim.Flow {
	n := len(ranks)
	up := make([]int, n) // by rank, 1 + the index of the flow to its parent
	var flows []sim.Flow
	for i := n - 1; i > 0; i-- {
		flows = append(flows, sim.Flow{From: ranks[i], To: ranks[(i-1)/2], Bytes: bytes, After: children(up, i)})
		up[i] = len(flows)
	}
	down := make([]int, n) // by rank, 1 + the index of the flow from its parent
	for i := 1; i < n; i++ {
		f := sim.Flow{From: ranks[(i-1)/2], To: ranks[i], Bytes: bytes, After: [2]int{down[(i-1)/2]}}
		if i <= 2 {
			f.After = children(up, 0)
		}
		flows = append(flows, f)
		down[i] = len(flows)
	}
	return flows
}

// children returns the flows from a rank's children.
func children(up []int, rank int) (after [2]int) {
	for c := range after {
		if child := 2*rank + 1 + c; child < len(up) {
			after[c] = up[child]
		}
	}
	return after
}
