package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// groups returns all groups of measurements, in order.
func groups() []group {
	few := func(t traffic) traffic {
		t.flows, t.payload = 1<<10, max(t.payload, smallest)
		return t
	}
	million := traffic{flows: 1 << 20, payload: smallest}
	millionV6 := traffic{flows: 1 << 20, payload: smallest, v6: true}
	all := slices.Concat(
		onNIC("nic_mixed", "as in captures", (*bench).mixed, goals{"io": 0, "5tswap": 0.9, "csum": 1}),
		onNIC("nic64_1k", "64-byte class, IPv4", bothOf(few(traffic{})), goals{"io": 0, "5tswap": 0.9, "csum": 1}),
		onNIC("nic64v6_1k", "64-byte class, IPv6", bothOf(few(traffic{v6: true})), goals{"io": 0, "5tswap": 0.9, "csum": 1}),
		onNIC("nic1k", "1 KB payload, IPv4", bothOf(few(traffic{payload: 1 << 10})), goals{"io": 0, "5tswap": 0, "csum": 1})[:1],
		onNIC("nic_imix", "IMIX, IPv4", bothOf(few(traffic{imix: true})), goals{"io": 0, "5tswap": 0, "csum": 1})[:1],
		onNIC("nic64_1m", "64-byte class, IPv4, 1 Mi flows", bothOf(million), goals{"io": 0, "5tswap": 0, "csum": 0.85})[:1],
		onNIC("nic64v6_1m", "64-byte class, IPv6, 1 Mi flows", bothOf(millionV6), goals{"io": 0, "5tswap": 0, "csum": 0.85})[:1],
	)
	for i := range all {
		switch g := &all[i]; {
		case strings.HasSuffix(g.name, "_1m_cold"):
			*g = needs(*g, 3, 1.5)
		case !strings.HasPrefix(g.name, "nic_mixed"):
			g.more = true
		}
	}
	all = append(all, []group{
		forwardingOf("fwd_mixed", "as in captures", (*bench).mixed, "", goals{"csum": 0.89}),
		forwarding("fwd64_1k", "64-byte class, IPv4", few(traffic{}), "", goals{"csum": 0.89}),
		forwarding("fwd64v6_1k", "the same, IPv6", few(traffic{v6: true}), "", goals{"csum": 0.79}),
		forwarding("fwd1k", "1 KB payload, IPv4", few(traffic{payload: 1 << 10}), "", goals{"csum": 0.92}),
		forwarding("ecn64_1k", "as fwd64_1k, each marked CE", few(traffic{}), "mark", goals{"csum": 0.8}),
		floor(), workers(), onVeth(), cnps(), health(), asked(), fleet(),
		notifying("notify", "Long-haul CNP, RoCEv2", "long-haul-cnp", traffic{}, 8),
		notifying("notify_fast_cnp", "Fast CNP", "fast-cnp", traffic{v6: true}, 8),
		more(notifying("notify_icmpv6", "Long-haul CNP, ICMPv6", "long-haul-cnp-icmpv6", traffic{v6: true}, 5)),
		waiting("reaction", "to a packet over K_max", "notify", 3),
		waiting("latency", "fabric to WAN, idle", "", 3),
		hashing("_1k", 1<<10, 1, 1), needs(hashing("", 1<<20, 1.1, 1), 2, 0.5),
	}...)
	for _, flows := range growth {
		g := growing(flows)
		switch {
		case flows.flows == growth[0].flows:
			g = more(g)
		case flows.flows > 1<<20:
			g = needs(g, 12, 9)
		case flows.flows > 1<<16:
			g = needs(g, 3, 1.5)
		}
		all = append(all, g)
	}
	return append(all, remembering("flow_octets", "flow_rss_1m", "1,048,576", 1<<20), needs(remembering("flow_octets_10m", "flow_rss_10m", "10,485,760", 10<<20), 2, 0))
}

func more(g group) group {
	g.more = true
	return g
}

func needs(g group, gib, hugepages float64) group {
	g.memory, g.hugepages, g.once = gib, hugepages, true
	return g
}

// ---- forwarding, beside testpmd

var modes = []string{"io", "5tswap", "csum"}

// goals are the modes beside which traffic is measured, and the least ratios; 0: any.
type goals map[string]float64

// forwarding is the rows of one kind of traffic, one for each mode of testpmd that has a goal.
func forwarding(name, what string, t traffic, respond string, wanted goals) group {
	return forwardingOf(name, what, bothOf(t), respond, wanted)
}

// bothOf makes layouts in which each port receives half of the flows.
func bothOf(t traffic) func(*bench, string) (*layout, error) {
	return func(b *bench, name string) (*layout, error) { return b.both(name, t, 1) }
}

// forwardingOf is forwarding on the layout that make makes.
func forwardingOf(name, what string, make func(b *bench, name string) (*layout, error), respond string, wanted goals) group {
	g := group{name: name}
	for _, mode := range modes {
		if goal, ok := wanted[mode]; ok {
			g.rows = append(g.rows, row{Name: name + "_" + mode, What: what, Unit: "Mpps", Peer: "testpmd " + mode, Wanted: goal})
		}
	}
	g.measure = func(b *bench, rows []row) error {
		l, err := make(b, name)
		if err != nil {
			return err
		}
		defer l.remove()
		gw, err := b.gatewayOf(l, func(s *gatewaySetup) { s.Respond = respond })
		if err != nil {
			return err
		}
		defer gw.close()
		peer, err := startTestpmd(b, l)
		if err != nil {
			return err
		}
		defer peer.close()
		sides := []side{gw}
		for i := range rows {
			sides = append(sides, testpmdMode{testpmd: peer, mode: rows[i].Peer[len("testpmd "):]})
		}
		return b.compare(rows, func(taken slicesOf) {
			for i := range rows {
				rows[i].fill(taken.millions(0), taken.millions(1+i), b.noise)
			}
		}, sides...)
	}
	return g
}

// floor is the lower bound: a forwarding loop in C that reads no frames, on devices that do nothing.
func floor() group {
	return group{
		name: "null_c_loop",
		rows: []row{{Name: "null_c_loop", What: "empty frames, no flows", Unit: "Mpps", Peer: "a loop in C"}},
		measure: func(b *bench, rows []row) error {
			l := nothing()
			gw, err := b.gatewayOf(l, nil)
			if err != nil {
				return err
			}
			defer gw.close()
			peer, err := b.startPeer("nullfwd", 64, []string{"--vdev", l.devices[0], "--vdev", l.devices[1]}, number10(b.burst))
			if err != nil {
				return err
			}
			defer peer.close()
			return b.compareOne(&rows[0], gw, peer)
		},
	}
}

// workers compares two workers with two processes of one worker each, which share nothing.
func workers() group {
	return group{
		name: "workers_2", cores: 2, hugepages: 2,
		rows: []row{{Name: "workers_2", What: "as nic64_1k_cold, two workers", Unit: "Mpps", Peer: "two processes", Wanted: 0.98}},
		measure: func(b *bench, rows []row) error {
			t := traffic{flows: 1 << 10, payload: smallest}
			two, err := b.both("workers_2", t, 2)
			if err != nil {
				return err
			}
			defer two.remove()
			b.likeNIC(two, true)
			one, err := b.both("workers_1", t, 1)
			if err != nil {
				return err
			}
			defer one.remove()
			b.likeNIC(one, true)
			var apart together
			for _, core := range []int{b.core, b.otherCore()} {
				gw, err := b.gatewayOf(one, func(s *gatewaySetup) { s.Workers = []int{core} })
				if err != nil {
					return err
				}
				defer gw.close()
				apart = append(apart, gw)
			}
			gw, err := b.gatewayOf(two, func(s *gatewaySetup) { s.Workers = []int{b.core, b.otherCore()} })
			if err != nil {
				return err
			}
			defer gw.close()
			return b.compareOne(&rows[0], gw, apart)
		},
	}
}

// cnps is what a CNP of a receiver costs that passes to a sender whose flow the control law watches: half a core must be enough for eight million a second.
func cnps() group {
	return group{
		name: "cnps",
		rows: []row{{Name: "cnps_mpps", What: "CNPs that pass, with the law", Unit: "M/s", Peer: "required", Wanted: 1}},
		measure: func(b *bench, rows []row) error {
			t := traffic{flows: 1 << 10, payload: smallest}
			var sides []side
			for _, layout := range []func(string, traffic) (*layout, error){b.answered, func(name string, t traffic) (*layout, error) { return b.both(name, t, 1) }} {
				l, err := layout("cnps", t)
				if err != nil {
					return err
				}
				defer l.remove()
				gw, err := b.gatewayOf(l, func(s *gatewaySetup) { s.Law = true })
				if err != nil {
					return err
				}
				defer gw.close()
				sides = append(sides, gw)
			}
			return b.compare(rows, func(taken slicesOf) {
				both, data := taken.nanoseconds(0), taken.nanoseconds(1)
				for i := range both {
					both[i] = 1e3 / (2*both[i] - data[i]) // every other packet is a CNP
				}
				rows[0].fill(both, taken.always(16), b.noise)
			}, sides...)
		},
	}
}

// together are sides that run at the same time, as one.
type together []side

func (t together) run(d time.Duration) (*sample, error) {
	sum, failed := sample{}, make([]error, len(t))
	rates := make([]float64, len(t))
	var all sync.WaitGroup
	for i := range t {
		all.Go(func() {
			s, err := t[i].run(d)
			if err != nil {
				failed[i] = err
				return
			}
			rates[i] = s.rate()
		})
	}
	all.Wait()
	for i := range rates {
		sum.Rate += rates[i]
	}
	return &sum, errors.Join(failed...)
}

// ---- notifications and times, beside what is required

// notifying counts notifications; required is in millions a second.
func notifying(name, what, accepts string, t traffic, required float64) group {
	t.flows, t.payload = 1<<10, smallest
	return group{
		name: name,
		rows: []row{{Name: name + "_mpps", What: what, Unit: "M/s", Peer: "required", Wanted: 1}},
		measure: func(b *bench, rows []row) error {
			l, err := b.oneWay(name, t)
			if err != nil {
				return err
			}
			defer l.remove()
			gw, err := b.gatewayOf(l, func(s *gatewaySetup) { s.Respond, s.Accepts = "notify", accepts })
			if err != nil {
				return err
			}
			defer gw.close()
			return b.compare(rows, func(taken slicesOf) { rows[0].fill(taken.millions(0), taken.always(required), b.noise) }, gw)
		},
	}
}

// waiting measures times between two net_ring ports. The far ends are on the core that isn't measured. A figure is the median of the slices'
// own percentiles. As these vary more than rates do, their interval may be twice as wide.
func waiting(name, what, respond string, limit float64) group {
	quantiles := []string{"p50", "p99", "p99.9"}
	g := group{name: name, cores: 2}
	for i, suffix := range []string{"_p50_us", "_p99_us", "_p999_us"} {
		r := row{Name: name + suffix, What: what, Unit: "us", Peer: "required", less: true}
		if i == 1 {
			r.Wanted = 1
		}
		g.rows = append(g.rows, r)
	}
	g.measure = func(b *bench, rows []row) error {
		s := gatewaySetup{
			Workers: []int{b.core}, MainCore: b.otherCore(), Hugepages: b.hugepages, Burst: b.burst, Room: roomOf(0), Flows: 1 << 10, Payload: 1 << 10,
			Respond: respond, Accepts: "long-haul-cnp",
		}
		gw, err := b.child("latency", &s)
		if err != nil {
			return err
		}
		defer gw.close()
		return b.compare(rows, func(taken slicesOf) {
			for i := range rows {
				k := slices.IndexFunc(g.rows, func(r row) bool { return r.Name == rows[i].Name })
				rows[i].fill(taken.extra(0, quantiles[k]), taken.always(limit), 2*b.noise)
				rows[i].What = fmt.Sprintf("%s (cores away: %.2g %%)", what, 100*median(taken.extra(0, "away")))
			}
		}, gw)
	}
	return g
}

// flowBytes is the memory that a flow may take.
const flowBytes = 124

// remembering measures memory. One run is enough, since the result is deterministic.
func remembering(octets, total, flows string, n int) group {
	return group{
		name: octets, once: true,
		rows: []row{
			{Name: octets, What: "a flow's memory, " + flows + " flows", Unit: "bytes", Peer: "required", Wanted: 1, less: true},
			{Name: total, What: "process with " + flows + " flows", Unit: "MiB", Peer: "128 bytes a flow", less: true},
		},
		measure: func(b *bench, rows []row) error {
			p, err := startChild("cnpgate", b.self, "memory", number10(n))
			if err != nil {
				return err
			}
			defer p.close()
			s, err := p.sample(startup)
			if err != nil {
				return err
			}
			for i := range rows {
				if rows[i].Name == octets {
					rows[i].fill([]float64{s.Extra["octets"] / float64(n)}, []float64{flowBytes}, b.noise)
				} else {
					rows[i].fill([]float64{s.Extra["process"] / (1 << 20)}, []float64{128 * float64(n) / (1 << 20)}, b.noise)
				}
			}
			return nil
		},
	}
}

// ---- the flow table, beside rte_hash

// hashing compares the flow table with rte_hash on the same keys, looked up in the same order. lookup and lockFree are the least ratios of
// lookups, without and with lock-free readers of rte_hash.
func hashing(suffix string, n int, lookup, lockFree float64) group {
	g := group{name: "table" + suffix}
	flows := map[int]string{1 << 10: "1,024", 1 << 20: "1,048,576"}[n]
	g.rows = []row{
		{Name: "lookup" + suffix + "_rte_hash", What: "lookups of " + flows + " flows", Unit: "M/s", Peer: "rte_hash_lookup_bulk", Wanted: lookup},
		{Name: "lookup" + suffix + "_rte_hash_lf", What: "the same, lock-free readers", Unit: "M/s", Peer: "rte_hash_lookup_bulk, LF", Wanted: lockFree},
		{Name: "insert" + suffix + "_rte_hash", What: "insertions of " + flows + " flows", Unit: "M/s", Peer: "rte_hash_add_key", Wanted: 1},
	}
	g.measure = func(b *bench, rows []row) error {
		keys, wanted, err := b.keyFiles(n)
		if err != nil {
			return err
		}
		ours, err := startChild("cnpgate", b.self, "table", number10(b.core), keys, wanted)
		if err != nil {
			return err
		}
		defer ours.close()
		var theirs [2]*process // without and with lock-free readers
		for lf := range theirs {
			if theirs[lf], err = b.startPeer("rtehash", 1024, nil, keys, number10(keySize), wanted, number10(lf)); err != nil {
				return err
			}
			defer theirs[lf].close()
		}
		for i := range rows {
			pair := map[string][2]side{
				g.rows[0].Name: {ours, theirs[0]}, g.rows[1].Name: {ours, theirs[1]},
				g.rows[2].Name: {asking{ours, "insert"}, asking{theirs[0], "insert"}},
			}[rows[i].Name]
			if err := b.compareOne(&rows[i], pair[0], pair[1]); err != nil {
				return err
			}
		}
		return nil
	}
	return g
}

// startPeer starts one of the C programs, on the measured core.
func (b *bench) startPeer(name string, memory int, eal []string, args ...string) (*process, error) {
	all := append([]string{filepath.Join(b.programs, name)}, b.eal(memory)...)
	all = append(all, "--lcores=0@"+number10(b.core))
	all = append(append(all, eal...), "--")
	return startChild(name, append(all, args...)...)
}
