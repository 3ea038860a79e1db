package rdmanet

// trouble draws what goes wrong.
func (d *drawer) trouble(s *Scene, path *Path, hosts [2]*Host, requester, number int) {
	conns := d.net.Conns
	var mine []*Conn
	for _, c := range conns {
		if c.Scene == s {
			mine = append(mine, c)
		}
	}
	nic, h := mine[0].NIC, mine[0].Half[requester]
	there, back := path.Segments[requester], path.Segments[requester^1]
	where := d.IntN(2)
	if d.incast != nil {
		where = d.incast.where
	}
	lossy := func(seg *Segment, data, acks bool, most int) {
		seg.Loss = append(seg.Loss, &Loss{Data: data, Acks: acks, OneIn: d.log(15, 150), Burst: d.one(1, 1, 1, 2, 4), Most: most})
	}
	queue := func() {
		if d.incast != nil && number > 0 {
			path.Segments[requester][where] = d.incast.queue
			return
		}
		seg := there[where]
		if d.incast != nil {
			d.incast.queue = seg
		}
		packetTime := float64(nic.MTU+82) * 8
		seg.Rate = nic.Rate / float64(d.between(2, 8))
		seg.MarkAt = int64(packetTime / seg.Rate * 1e9 * float64(d.between(3, 8)))
	}
	switch s.Kind {
	case Adaptive, Reordering:
		late := &Late{OneIn: d.log(8, 60), By: int64(d.log(3000, 40_000))}
		there[where].Late = late
		if d.chance(0.5) || reads(h) {
			back[where].Late = late
		}
	case Cooperative:
		queue()
	case Stubborn:
		queue()
		nic.Obeys = false
	case Mute:
		queue()
		nic.Notifies = false
	case Lossy:
		most := d.one(1, 3, 10, 30)
		s.Detail = []string{"data before", "data behind", "ACKs before", "ACKs behind", "both ways", "all before", "all behind", "queue"}[d.lose(lossy, there, back, most)]
		if s.Detail == "queue" {
			queue()
			there[where].DropAt, there[where].MarkAt = there[where].MarkAt*2, 0
		}
	case Hole:
		s.Detail = []string{"there", "back before", "back behind"}[d.hole(there, back)]
	case BigHole:
		s.Over = nic.MTU * 3 / 4
		there[1].Loss = append(there[1].Loss, &Loss{Data: true, OneIn: 1, Burst: 1, Over: s.Over})
	case Dying:
		hosts[requester^1].Down = 1 + int64(d.Float64()*float64(d.lasts(mine, requester)))
	case Unready:
		h.Receives, h.Supply = float64(d.between(0, 8)), d.log(1e3, 3e5)
	case Refusing:
		r := &h.requests[d.IntN(len(h.requests))]
		h.RefuseAt, h.RefuseHow = r.seq+1, uint8(d.between(1, 3))
	case Corrupting:
		seg := there[where]
		if reads(h) && d.chance(0.5) {
			seg = back[where]
		}
		seg.Loss = append(seg.Loss, &Loss{Data: true, Acks: d.chance(0.3), OneIn: d.log(10, 150), Burst: 1, Most: 30, Corrupts: true})
	case Pausing:
		d.pause(s, path, number, requester)
	case Copying:
		there[0].CopyOneIn = d.log(5, 60)
	}
}

func reads(h *Half) bool { return len(h.requests) > 0 && h.requests[0].answered() }

// lose draws which packets are lost, and where.
func (d *drawer) lose(lossy func(*Segment, bool, bool, int), there, back [2]*Segment, most int) int {
	n := d.IntN(8)
	for _, x := range [...]struct {
		seg        *Segment
		data, acks bool
		of         []int
	}{
		{there[0], true, false, []int{0, 4, 5}}, {back[0], true, false, []int{0, 4, 5}}, {there[1], true, false, []int{1, 4, 6}}, {back[1], true, false, []int{1, 4, 6}},
		{back[0], false, true, []int{2, 5}}, {back[1], false, true, []int{3, 4, 6}},
	} {
		for _, m := range x.of {
			if m == n {
				lossy(x.seg, x.data, x.acks, most)
			}
		}
	}
	return n
}

// hole draws where nothing comes through.
func (d *drawer) hole(there, back [2]*Segment) int {
	n := d.IntN(3)
	from := int64(0)
	if d.chance(0.5) {
		from = int64(d.log(100e3, 3e6))
	}
	seg := []*Segment{there[1], back[0], back[1]}[n]
	seg.Loss = append(seg.Loss, &Loss{Data: true, Acks: true, OneIn: 1, Burst: 1, From: from})
	return n
}

// lasts is about how long the traffic takes, ns.
func (d *drawer) lasts(conns []*Conn, requester int) int64 {
	h := conns[0].Half[requester]
	nic := h.Conn.NIC
	last := h.requests[len(h.requests)-1]
	psns := last.seq + last.psns
	trip := float64(h.Conn.Path.Trip())
	return int64(float64(psns)*float64(nic.MTU+82)*8/nic.Rate*1e9) + int64(float64(psns)/float64(nic.Window)*trip) + int64(trip)
}

// pause draws PFC frames of a device behind the capture.
func (d *drawer) pause(s *Scene, path *Path, number, requester int) {
	there := path.Segments[requester]
	device := [6]byte{2, 0, 0, 9, 9, byte(number + 1)}
	long, storm := int64(0), false
	switch d.IntN(3) {
	case 0:
		s.Detail, long = "short", 5*usec
	case 1:
		s.Detail, long = "pauses", 1500*usec
	default:
		s.Detail, long, storm = "storm", d.between(20*msec, 60*msec), true
	}
	const quanta, each = 65535, int64(65535 * 512 / 100)
	at := d.between(10*usec, 200*usec)
	for range d.one(1, 2, 3, 5) {
		if s.Detail != "short" && !storm {
			long = d.between(1200*usec, 3*msec)
		}
		there[0].Held = append(there[0].Held, span{at, at + long})
		for t := at; t < at+long; t += each * 9 / 10 {
			q := uint16(min(int64(quanta), (at+long-t)*100/512))
			d.net.at(t, func() {
				d.capture.Records = append(d.capture.Records, Record{At: d.net.now, Pause: &Pause{device, 3, q}})
			})
		}
		if !storm {
			d.net.at(at+long, func() {
				d.capture.Records = append(d.capture.Records, Record{At: d.net.now, Pause: &Pause{device, 3, 0}})
			})
		}
		at += long + d.between(100*usec, 2*msec)
		if storm {
			break
		}
	}
}
