package main

import "path/filepath"

// These rows are what forwarding loses to what a gateway does besides it. What recurs, recurs twice a second: in slices of 30 ms the median would not
// see it.

// health compares following connections with not doing so.
func health() group {
	return besides("fwd_mixed_health", "health followed", "none followed",
		func(b *bench, l *layout) (*process, error) { return b.gatewayOf(l, nil) },
		func(b *bench, l *layout) (*process, error) {
			return b.gatewayOf(l, func(s *gatewaySetup) { s.NoHealth = true })
		})
}

// asked compares a gateway whose page is open with one that nobody asks.
func asked() group {
	return besides("fwd_mixed_asked", "a page open", "nobody asks",
		func(b *bench, l *layout) (*process, error) {
			return b.runningOf(l, "asked", func(s *gatewaySetup) { s.Asked = true })
		}, alone)
}

// fleet compares a gateway of a fleet with one that is alone. The second gateway of the fleet isn't measured.
func fleet() group {
	var sections [2]string
	member := func(i int) starter {
		return func(b *bench, l *layout) (*process, error) {
			return b.runningOf(l, "fleet"+number10(i), func(s *gatewaySetup) { s.Fleet = sections[i] })
		}
	}
	return besides("fwd_mixed_fleet", "in a fleet of two", "alone",
		func(b *bench, l *layout) (p *process, err error) {
			if sections, err = b.fleetOfTwo(); err != nil {
				return nil, err
			}
			return member(0)(b, l)
		}, alone, member(1))
}

func alone(b *bench, l *layout) (*process, error) { return b.runningOf(l, "alone", nil) }

// starter starts a gateway on a layout.
type starter func(b *bench, l *layout) (*process, error)

// besides is one row that compares two gateways on mixed traffic, while others exist.
func besides(name, what, peer string, with, without starter, others ...starter) group {
	return group{
		name: name, cores: 2, rows: []row{{Name: name, What: what, Unit: "Mpps", Peer: peer}},
		measure: func(b *bench, rows []row) error {
			l, err := b.mixed(name)
			if err != nil {
				return err
			}
			defer l.remove()
			var sides []*process
			for _, start := range append([]starter{with, without}, others...) {
				gw, err := start(b, l)
				if err != nil {
					return err
				}
				defer gw.close()
				sides = append(sides, gw)
			}
			longer := *b
			if !b.short {
				longer.time, longer.aStart = 20*b.time, max(b.aStart/4, 1)
			}
			return longer.compareOne(&rows[0], sides[0], sides[1])
		},
	}
}

// runningOf starts a whole gateway on a layout.
func (b *bench) runningOf(l *layout, name string, change func(*gatewaySetup)) (*process, error) {
	s := gatewaySetup{
		Workers: []int{b.core}, MainCore: b.mainCore, Hugepages: b.hugepages, Burst: b.burst, Room: l.room,
		Devices: l.devices, Frames: l.frames, Kept: l.kept, Flows: l.flows, API: filepath.Join(b.dir, name+".sock"),
	}
	if change != nil {
		change(&s)
	}
	return b.child("running", &s)
}
