package replay

import (
	"cmp"
	"maps"
	"slices"
)

// tally is what the samples say of a view.
type tally struct {
	view       int
	seen       int
	directions int
	with       map[int]int // packets that another view has, too
}

func (o *between) tally(views []view) []*tally {
	all := map[int]*tally{}
	for d, samples := range o.samples {
		for _, seen := range samples {
			var in []sighting // the first one in each view
			for _, s := range seen {
				if !slices.ContainsFunc(in, func(f sighting) bool { return f.view == s.view }) {
					in = append(in, s)
				}
			}
			for _, s := range in {
				t := all[s.view]
				if t == nil {
					t = &tally{view: s.view, with: map[int]int{}}
					all[s.view] = t
				}
				t.seen++
				t.directions |= 1 << d
				for _, u := range in {
					if s.hops != u.hops || !twoTenants(views[s.view], views[u.view]) {
						t.with[u.view]++
					}
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.directions/3, a.directions/3), cmp.Compare(b.seen, a.seen), cmp.Compare(a.view, b.view))
	})
}

// twoTenants reports whether views differ by nothing but a VLAN or VNI.
func twoTenants(a, b view) bool { return a.l3 == b.l3 && a.scope != b.scope }

// decide keeps the views that have both directions and the most packets first, and drops those that have the same packets, as long as they may: most of them, as what
// is sent again behind the end of a file is the same, too. If one begins after the other has ended, they
// must have nearly all in common, by clocks that differ.
func (o *between) decide(views []view, spans []extent) bool {
	var kept []int
	for _, t := range o.tally(views) {
		var apart int64
		var common extent
		at := slices.IndexFunc(kept, func(u int) bool {
			if t.with[u] < fewSamples || 4*t.with[u] < t.seen {
				return false
			}
			if (spans[u].to < spans[t.view].from || spans[t.view].to < spans[u].from) && 10*t.with[u] < 9*t.seen {
				return false
			}
			mean, differs := o.apart(u, t.view)
			apart, common = mean, extent{spans[u].from + mean - differs, spans[u].to + mean + differs}
			return 2*t.with[u] > o.within(t.view, common)
		})
		if at < 0 {
			kept = append(kept, t.view)
			continue
		}
		if o.decided.drops == nil {
			o.decided = copied{drops: map[view]extent{}, kept: views[kept[at]], of: views[t.view], apart: apart}
		}
		o.decided.drops[views[t.view]] = common
	}
	return o.again(kept) || o.decided.drops != nil
}

// within is how many of a view's samples are of a time.
func (o *between) within(view int, e extent) (n int) {
	for _, samples := range o.samples {
		for _, seen := range samples {
			if slices.ContainsFunc(seen, func(s sighting) bool { return s.view == view && e.from <= s.at && s.at <= e.to }) {
				n++
			}
		}
	}
	return n
}

// apart is how far the clock of a view is ahead of that of another: the mean of both directions, so that the time of the path between counts for nothing; and
// by how much that differs from packet to packet, at most.
func (o *between) apart(from, to int) (mean, differs int64) {
	var each []int64
	n := int64(0)
	for _, samples := range o.samples {
		var all []int64
		for _, seen := range samples {
			a := slices.IndexFunc(seen, func(s sighting) bool { return s.view == from })
			b := slices.IndexFunc(seen, func(s sighting) bool { return s.view == to })
			if a >= 0 && b >= 0 {
				all = append(all, seen[b].at-seen[a].at)
			}
		}
		if len(all) > 0 {
			mean, n = mean+median(all), n+1
			each = append(each, all...)
		}
	}
	mean /= max(n, 1)
	for _, lag := range each {
		differs = max(differs, lag-mean, mean-lag)
	}
	return mean, differs
}

func median(all []int64) int64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// again looks for copies within the views that are kept.
func (o *between) again(kept []int) bool {
	packets, twice, proven, elsewhere := 0, 0, 0, 0
	var lags [2][timesEach][]int64
	ids := map[uint16]bool{}
	exact, fine := true, false
	for d, samples := range o.samples {
		for _, seen := range samples {
			seen = slices.DeleteFunc(slices.Clone(seen), func(s sighting) bool { return !slices.Contains(kept, s.view) })
			if len(seen) == 0 {
				continue
			}
			packets++
			if len(seen) < 2 || seen[0].view != seen[1].view {
				continue
			}
			twice++
			exact, fine = exact && seen[1].at == seen[0].at, fine || seen[0].at%1000 != 0
			for n, s := range seen[1:] {
				lags[d][n] = append(lags[d][n], s.at-seen[0].at)
			}
			if seen[0].id != 0 {
				proven++
			}
			if seen[0].hops != seen[1].hops {
				elsewhere++
			}
			ids[seen[0].id] = true
		}
	}
	near := 0
	for d := range lags {
		all := lags[d][0]
		if len(all) == 0 {
			all = lags[1-d][0]
		}
		n := 0
		if o.decided.lag[d], n = usual(all); n == 0 {
			return false
		}
		near += n
		for _, further := range lags[d][1:] {
			if lag, n := usual(further); n*2 > len(all) {
				o.decided.more[d] = append(o.decided.more[d], lag)
			}
		}
	}
	longest := max(o.decided.lag[0], o.decided.lag[1])
	both := len(o.samples[0]) > 0 && len(o.samples[1]) > 0
	refused := 64*o.refused >= o.requests[0]+o.requests[1] || !both // most may be sent again because of NAKs
	switch {
	case twice < fewSamples, near*10 < twice*8:
	case exact && fine:
		o.decided.again, o.decided.inFile = true, true
	case min(o.decided.lag[0], o.decided.lag[1]) < leastLag, elsewhere > 0 && longest <= clocksDiffer: // package health tells them
	case elsewhere*10 >= twice*9:
		o.decided.again = true
	case o.interleaved && !refused && 2*twice > packets:
		o.decided.again = true
	case twice*10 >= packets*9 && both && o.refused == 0 && longest < noTimeOut:
		o.decided.again = true
	case proven*10 >= twice*9 && len(ids)*2 > twice && 4*twice >= packets:
		o.decided.again = true
	}
	return o.decided.again
}

// usual is the median of times between packets and copies, ns, and how many are about that.
func usual(all []int64) (lag int64, near int) {
	if len(all) == 0 {
		return 0, 0
	}
	lag = median(all)
	for _, l := range all {
		if max(l-lag, lag-l) <= tolerance(max(lag, -lag)) {
			near++
		}
	}
	return lag, near
}

// tolerance is how much the time between a packet and its copy may differ, ns.
func tolerance(lag int64) int64 {
	if lag == 0 {
		return 0
	}
	return max(lag/4, msec/10)
}
