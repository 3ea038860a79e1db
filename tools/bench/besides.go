package main

import "path/filepath"

// These rows are what forwarding loses to what a gateway does besides it. What recurs, recurs twice a second: in slices of 30 ms the median would not
// see it.

// health compares following connections with not doing so.
func health() group {
	return besides("fwd_mixed_health", "as fwd_mixed, 1,024 connections followed, the default", "none followed", func(b *bench, l *layout) (with, without *process, err error) {
		if with, err = b.gatewayOf(l, nil); err != nil {
			return nil, nil, err
		}
		without, err = b.gatewayOf(l, func(s *gatewaySetup) { s.NoHealth = true })
		return with, without, err
	})
}

// asked compares a gateway whose page is open with one that nobody asks.
func asked() group {
	return besides("fwd_mixed_asked", "as fwd_mixed, the API asked twice a second for all that a page shows", "nobody asks", func(b *bench, l *layout) (with, without *process, err error) {
		if with, err = b.runningOf(l, "asked", func(s *gatewaySetup) { s.Asked = true }); err != nil {
			return nil, nil, err
		}
		without, err = b.runningOf(l, "alone", nil)
		return with, without, err
	})
}

// fleet compares a gateway of a fleet with one that is alone.
func fleet() group {
	return besides("fwd_mixed_fleet", "as fwd_mixed, one of a fleet of two with the same flows", "alone", func(b *bench, l *layout) (with, without *process, err error) {
		sections, err := b.fleetOfTwo()
		if err != nil {
			return nil, nil, err
		}
		if _, err = b.runningOf(l, "fleet1", func(s *gatewaySetup) { s.Fleet = sections[1] }); err != nil { // it isn't measured
			return nil, nil, err
		}
		if with, err = b.runningOf(l, "fleet0", func(s *gatewaySetup) { s.Fleet = sections[0] }); err != nil {
			return nil, nil, err
		}
		without, err = b.runningOf(l, "alone", nil)
		return with, without, err
	})
}

// besides is one row that compares two gateways on mixed traffic.
func besides(name, what, peer string, start func(b *bench, l *layout) (with, without *process, err error)) group {
	return group{
		name: name, cores: 2, rows: []row{{Name: name, What: what, Unit: "Mpps", Peer: peer}},
		measure: func(b *bench, rows []row) error {
			l, err := b.mixed(name)
			if err != nil {
				return err
			}
			defer l.remove()
			with, without, err := start(b, l)
			if err != nil {
				return err
			}
			longer := *b
			if !b.short {
				longer.time, longer.runs = 20*b.time, max(b.runs/8, 1)
			}
			return longer.compareOne(&rows[0], with, without)
		},
	}
}

// runningOf starts a whole gateway on a layout.
func (b *bench) runningOf(l *layout, name string, change func(*gatewaySetup)) (*process, error) {
	s := gatewaySetup{
		Workers: []int{b.core}, MainCore: b.mainCore, Hugepages: b.hugepages, Burst: b.burst, Room: l.room,
		Devices: l.devices, Frames: l.frames, Flows: l.flows, API: filepath.Join(b.dir, name+".sock"),
	}
	if change != nil {
		change(&s)
	}
	return b.child("running", &s)
}
