package scenario

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/hpcc"
	"github.com/cnpgate/cnpgate/sim/workload"
)

// traffic is the flows between the hosts of a topology.
type traffic struct {
	topology
	flows  []sim.Flow
	groups []string // names of the flows' groups
}

// buildTraffic makes the flows.
func (s *traffic) buildTraffic(files Files) {
	for i := range s.d.Traffic {
		t := &s.d.Traffic[i]
		if s.add(t, files, uint64(s.d.Seed)+uint64(i)<<32); len(s.flows) > mostFlows {
			s.doc.Problem(t, "%d flows in this entry and those before it; expected at most %d", len(s.flows), mostFlows)
			return
		}
	}
	if len(s.flows) == 0 && s.doc.Err() == nil {
		s.doc.Problem(&s.d.Traffic, "it makes no flows; expected at least one")
	}
	s.group()
}

// add makes the flows of one entry.
func (s *traffic) add(t *trafficSection, files Files, seed uint64) {
	if given := s.given(&t.Incast, &t.AllToAll, &t.Ring, &t.Tree, &t.Poisson, &t.File); given != 1 {
		s.doc.Problem(t, "%d kinds of traffic; expected one of incast, all_to_all, ring, tree, poisson and file", given)
		return
	}
	switch {
	case s.doc.Given(&t.Incast):
		s.incast(&t.Incast, seed)
	case s.doc.Given(&t.AllToAll):
		s.collective(&t.AllToAll, workload.AllToAll)
	case s.doc.Given(&t.Ring):
		s.collective(&t.Ring, workload.Ring)
	case s.doc.Given(&t.Tree):
		s.collective(&t.Tree, workload.Tree)
	case s.doc.Given(&t.Poisson):
		s.poisson(&t.Poisson, seed)
	default:
		s.flowFile(&t.File, files)
	}
}

func (s *traffic) incast(t *incastSection, seed uint64) {
	from, receivers := s.hostList(&t.From), s.hostList(&t.To)
	for _, to := range receivers {
		if slices.Contains(from, to) {
			s.doc.Problem(&t.To, "host %d can't receive from %q; expected another one, of 0 to %d", to, t.From, s.hosts-1)
			return
		}
	}
	if n := len(from) * len(receivers) * int(t.QPs); n > mostFlows {
		s.doc.Problem(&t.QPs, "%d flows; expected at most %d", n, mostFlows)
		return
	}
	var senders []int // one for each QP
	for range t.QPs {
		senders = append(senders, from...)
	}
	var flows []sim.Flow
	for i, to := range receivers {
		flows = append(flows, workload.Incast(senders, to, max(int64(t.Bytes)/int64(t.QPs), 1), int64(t.Spread), seed+uint64(i)<<48)...)
	}
	if bursts := int64(t.Bursts); bursts > 1 && len(flows) > 0 {
		if flows[0].Bytes > math.MaxInt32 {
			s.doc.Problem(&t.Bytes, "bursts of %d bytes; expected at most %d", flows[0].Bytes, math.MaxInt32)
			return
		}
		for i := range flows {
			flows[i].Bytes, flows[i].Bursts, flows[i].Every = flows[i].Bytes*bursts, int(bursts), int64(t.Every)
		}
	}
	s.extend(flows, int64(t.Start))
}

func (s *traffic) collective(t *collectiveSection, flows func(ranks []int, bytes int64) []sim.Flow) {
	const most = 1 << 20
	ranks := s.hostList(&t.Ranks)
	if n := len(ranks); n < 2 || n*n > most {
		s.doc.Problem(&t.Ranks, "%d ranks; expected 2 to 1024", n)
		return
	}
	if len(slices.Compact(slices.Sorted(slices.Values(ranks)))) < len(ranks) {
		s.doc.Problem(&t.Ranks, "a rank is named twice; expected each host once at most")
		return
	}
	s.extend(flows(ranks, int64(t.Bytes)), int64(t.Start))
}

// extend adds flows that begin `start` later. Flows that wait for others begin when these have ended.
func (s *traffic) extend(flows []sim.Flow, start int64) {
	before := len(s.flows)
	for _, f := range flows {
		if f.After == [2]int{} {
			f.Start += start
		}
		for i := range f.After {
			if f.After[i] != 0 {
				f.After[i] += before
			}
		}
		s.flows = append(s.flows, f)
	}
}

// mostFlows is how many flows a scenario may have: each needs some KB of memory.
const mostFlows = 1 << 22

func (s *traffic) poisson(t *poissonSection, seed uint64) {
	if s.hosts < 2 {
		s.doc.Problem(t, "only %d host; expected at least 2", s.hosts)
		return
	}
	p := workload.Poisson{
		Hosts: s.hosts, Load: float64(t.Load) / 100, Length: int64(t.Length), Seed: seed, Rate: s.hostRate(),
		Sizes: []workload.Distribution{workload.WebSearch, workload.Hadoop, workload.Storage}[t.Sizes],
	}
	if n := p.Expected() + float64(len(s.flows)); n > mostFlows {
		s.doc.Problem(t, "some %.0f flows; expected at most %d in all", n, mostFlows)
		return
	}
	s.extend(p.Flows(), 0)
}

// hostRate is the rate of the first host's link.
func (s *topology) hostRate() uint64 {
	for _, l := range s.network.Links {
		if s.network.Nodes[l.A].Kind == sim.HostNode || s.network.Nodes[l.B].Kind == sim.HostNode {
			return l.Rate
		}
	}
	return 0
}

// flowFile reads flows of the HPCC simulator, and shifts them so that the first one starts at 0.
func (s *traffic) flowFile(path *string, files Files) {
	data, err := files(*path)
	if err != nil {
		s.doc.Problem(path, "%v", err)
		return
	}
	list, err := hpcc.ReadFlows(*path, data)
	if err != nil {
		s.doc.Problem(path, "%v", err)
		return
	}
	host := s.hostNumbers()
	first := slices.MinFunc(append(list, hpcc.Flow{Start: 1 << 62}), func(a, b hpcc.Flow) int { return cmp.Compare(a.Start, b.Start) }).Start
	for i, f := range list {
		if f.From >= len(host) || f.To >= len(host) || host[f.From] < 0 || host[f.To] < 0 || f.From == f.To {
			s.doc.Problem(path, "flow %d of %s goes from node %d to node %d; expected two hosts of the topology", i+1, *path, f.From, f.To)
			return
		}
		s.flows = append(s.flows, sim.Flow{From: host[f.From], To: host[f.To], Bytes: f.Bytes, Start: f.Start - first})
	}
}

// hostNumbers returns the host's number of each node, -1 for other nodes.
func (s *topology) hostNumbers() []int {
	out, hosts := make([]int, len(s.network.Nodes)), 0
	for i := range out {
		out[i] = -1
		if s.network.Nodes[i].Kind == sim.HostNode {
			out[i] = hosts
			hosts++
		}
	}
	return out
}

// group separates flows within a data centre from flows between two: hosts are in one data centre if short links connect them. If all flows
// are of one kind, there are no groups.
func (s *traffic) group() {
	var site []int // by host
	sites := s.network.Sites()
	for node, h := range s.hostNumbers() {
		if h >= 0 {
			site = append(site, sites[node])
		}
	}
	between := 0
	for i := range s.flows {
		if f := &s.flows[i]; site[f.From] != site[f.To] {
			f.Group = 1
			between++
		}
	}
	if between > 0 && between < len(s.flows) {
		s.groups = []string{"within", "between"}
	}
}
