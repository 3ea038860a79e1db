package rdmanet

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// SceneKind is what is wrong between two hosts.
type SceneKind uint8

// Kinds of scenes.
const (
	Healthy     SceneKind = iota
	Adaptive              // reordering, and NICs that accept it
	Cooperative           // CE, CNPs, and senders that obey them
	Lossy                 // data, ACKs or both are lost
	Hole                  // nothing comes through from a time on
	BigHole               // no large packets do
	Dying                 // a host goes down
	Hasty                 // a time-out shorter than the round trip
	Unready               // a receiver without receive buffers
	Reordering            // and NICs that take each late packet for lost
	Stubborn              // a sender that ignores CNPs
	Mute                  // a receiver that sends no CNPs
	Refusing              // a request is refused
	Corrupting            // wrong ICRCs
	Pausing               // PFC
	Waiting               // a small window on a long path
	Copying               // the network makes copies
	Sluggish              // one receiver of several answers late
	Restarting            // the QPs serve a second connection, from the same first PSNs, after a silence
	Kinds       = iota
)

// kinds are their names, and weights among the scenes of the first pair of hosts.
var kinds = [Kinds]struct {
	name   string
	weight int
}{
	Healthy: {"healthy", 24}, Adaptive: {"adaptive routing", 4}, Cooperative: {"cooperative", 5}, Lossy: {"lossy", 22}, Hole: {"hole", 3}, BigHole: {"MTU hole", 3},
	Dying: {"dying host", 5}, Hasty: {"hasty time-out", 8}, Unready: {"receiver not ready", 6}, Reordering: {"reordering", 6}, Stubborn: {"stubborn sender", 6},
	Mute: {"mute receiver", 6}, Refusing: {"refused", 3}, Corrupting: {"corrupting", 7}, Pausing: {"pausing", 4}, Waiting: {"waiting", 1}, Copying: {"copying", 2},
	Sluggish: {"sluggish receiver", 2}, Restarting: {"restarted job", 3},
}

func (k SceneKind) String() string { return kinds[k].name }

// Scene is what happens between two hosts.
type Scene struct {
	Kind   SceneKind
	Detail string
	Over   int // of an MTU hole: the largest payload that passes, bytes
}

// drawer draws a capture.
type drawer struct {
	*rand.Rand
	capture *Capture
	net     *Network
	budget  int // packets
	view    *View
	qp      uint32

	// Of a sluggish receiver: the prefix of all of them, and the delays to it.
	common *Path
	incast *incast
}

// incast is what several senders to one host have in common.
type incast struct {
	v6        bool
	requester int // the senders' side
	where     int // the part of the path with the queue
	host      *Host
	queue     *Segment
}

func (d *drawer) one(of ...int) int        { return of[d.IntN(len(of))] }
func (d *drawer) chance(p float64) bool    { return d.Float64() < p }
func (d *drawer) between(a, b int64) int64 { return a + d.Int64N(b-a+1) }

// log draws from a range evenly by the logarithm.
func (d *drawer) log(a, b float64) float64 { return a * math.Exp(d.Float64()*math.Log(b/a)) }

func (d *drawer) kind() SceneKind {
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	n := d.IntN(sum)
	for kind, k := range kinds {
		if n -= k.weight; n < 0 {
			return SceneKind(kind)
		}
	}
	return Healthy
}

// Draw draws a capture, and runs its network.
func Draw(seed uint64) *Capture {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 39))}
	d.capture = &Capture{Seed: seed}
	d.view = &d.capture.View
	d.net = &Network{Random: d.Rand}
	d.capture.Network = d.net
	d.net.Tap = func(p *Packet, now int64) { d.capture.pass(d.Rand, p, now) }
	d.budget = int(d.log(200, 2500))
	first := d.kind()
	pairs := d.one(1, 1, 2, 3)
	switch first {
	case Waiting:
		pairs = 1
	case Sluggish:
		pairs = 5
		d.common = d.path(first)
	}
	switch first {
	case Stubborn, Mute, Cooperative:
		if pairs > 1 && d.chance(0.5) {
			d.incast = &incast{requester: d.IntN(2), where: d.IntN(2)}
		}
		d.budget = max(d.budget, 1500)
	case Sluggish:
		d.budget = max(d.budget, 1500)
	}
	d.look(first)
	for n := range pairs {
		k := Healthy
		switch {
		case n == 0 || d.incast != nil:
			k = first
		case d.common == nil && d.chance(0.1):
			k = d.kind()
		}
		if n > 0 && (k == Waiting || k == Pausing || k == Corrupting || k == Sluggish) {
			k = Lossy
		}
		d.pair(n, k, max(d.budget/pairs, 100))
	}
	for _, second := range []bool{false, true} {
		for _, c := range d.net.Conns {
			if c.After > 0 == second {
				c.start()
			}
		}
		d.net.Run(never, 40_000)
	}
	d.capture.sort()
	return d.capture
}

// look draws the vantage point.
func (d *drawer) look(first SceneKind) {
	v := d.view
	*v = View{Name: "both", Snap: d.one(128, 160, 192, 256), Most: 3000, Unit: int64(d.one(1, 1000))}
	switch n := d.IntN(100); {
	case first == Waiting || n < 55:
	case n < 63:
		v.Name = "one side"
		v.Hidden[d.IntN(2)] = true
	case n < 70:
		v.Name = "two taps"
		v.Skew = d.between(-200*usec, 200*usec)
	case n < 74:
		v.Name, v.Sample = "sampled", d.one(2, 4, 10, 64)
	case n < 81:
		v.Name, v.Snap = "cut", d.one(64, 68, 74, 80, 96)
	case n < 86:
		v.Name = "twins"
		v.Twins = Switched
		v.TwinLag = int64(d.log(100, 3000))
		if d.chance(0.5) {
			v.Twins = Routed
			v.TwinLag = int64(d.log(1000, 300_000))
		}
	case n < 91:
		v.Name, v.MissOne, v.MissMany = "missed", d.log(40, 400), d.one(1, 3, 10)
	default:
		v.Name = "wrapped"
		v.Wrap = []Wrap{VLAN, VXLAN, ERSPAN}[d.IntN(3)]
		v.Snap = d.one(160, 192, 256)
	}
	if first == Pausing {
		v.Wrap, v.Twins = Plain, NoTwins
	}
	if first == Corrupting && v.Name != "cut" && d.chance(0.8) {
		v.Snap = 16384
	}
	if d.chance(0.25) && first != Waiting {
		v.Skip = d.IntN(d.budget/3 + 1)
	}
	if d.chance(0.2) && first != Waiting {
		v.Most = d.budget
	}
}

// nic draws how the ends of a pair of hosts behave. trip: ns.
func (d *drawer) nic(trip int64, s *Scene) *NIC {
	n := &NIC{
		AckEvery: d.one(0, 0, 8, 16, 32), Turn: d.between(500, 3*usec), MaxReads: d.one(1, 4, 8, 16, 64), Window: int64(d.one(16, 32, 64, 128)),
		Identified: d.chance(0.5), Retries: 7, RNRRetries: d.one(7, 7, 7, 7, 3), NotifyEvery: d.between(4*usec, 50*usec), Notifies: true, Obeys: true,
		Rate: []float64{10e9, 25e9, 100e9, 200e9}[d.IntN(4)], RNRTimer: uint8(d.between(1, 14)), ECT: true, MTU: d.one(1024, 2048, 4096),
		IPv6: d.chance(0.25) && d.common == nil, DSCP: uint8(d.one(0, 24, 26)), NetworkBytes: 82,
	}
	switch d.IntN(6) {
	case 0, 1:
		n.Name = "mlx5"
		n.AckDelay = d.between(0, 4*usec)
	case 2:
		n.Name, n.Identified, n.Turn = "Soft-RoCE", true, d.between(5*usec, 30*usec)
	case 3:
		n.Name, n.AckEach, n.Window = "ERNIC", true, int64(d.one(8, 16, 32))
	case 4:
		n.Name, n.Selective = "selective", true
		n.Tolerance = []int64{0, 20 * usec, 100 * usec, -1}[d.IntN(4)]
	default:
		n.Name = "adaptive retransmission"
		n.AckDelay = d.between(0, 2*usec)
	}
	switch s.Kind {
	case Adaptive:
		n.Name, n.Selective, n.Tolerance = "selective", true, -1
	case Sluggish:
		n.Turn = d.between(msec, 4*msec)
	case Reordering, Unready, Refusing, Hasty, Pausing:
		if n.Selective {
			n.Name, n.Selective = "mlx5", false
		}
	case Corrupting:
		n.MTU = d.one(256, 512, 1024)
	}
	if d.chance(0.1) && s.Kind != BigHole { // no link has so small an MTU (RFC 791: 576 bytes)
		n.MTU = d.one(256, 512)
	}
	d.conventions(n)
	d.timer(n, trip, s)
	return n
}

// conventions draws QPs, first PSNs and UDP source ports.
func (d *drawer) conventions(n *NIC) {
	n.QP = func() uint32 { return uint32(d.between(2, 0xfffffe)) }
	n.FirstPSN = func() uint32 { return d.Uint32() & packet.PSNMask }
	n.SourcePort = func(a, b uint32, _ int) uint16 { return linuxPort(a, b) }
	zero := func() uint32 { return 0 }
	base := uint16(d.between(0xc000, 0xfff0))
	same := func(uint32, uint32, int) uint16 { return base }
	switch d.IntN(8) {
	case 0, 1: // NCCL
		d.qp = uint32(d.between(0x100, 0xf000))
		n.QP = func() uint32 { d.qp++; return d.qp }
		n.FirstPSN = zero
	case 2: // UCX
		n.SourcePort = same
	case 3: // NVSHMEM
		n.SourcePort, n.FirstPSN = same, zero
	case 4: // ports of each direction
		n.SourcePort = func(a, b uint32, end int) uint16 { return uint16(a*31+b*17+uint32(end)*7919) | 0xc000 }
	case 5: // PSNs that wrap soon
		n.FirstPSN = func() uint32 { return packet.PSNMask - uint32(d.IntN(100)) }
	}
}

// timer draws the time-out: long enough for the path, or not.
func (d *drawer) timer(n *NIC, trip int64, s *Scene) {
	if s.Kind == Hasty {
		if d.chance(0.4) {
			n.Name, n.Doubling, n.TimeOut = "adaptive retransmission", true, 2*msec
			return
		}
		n.TimeOut = int64(float64(trip) * (0.2 + 0.65*d.Float64()))
		return
	}
	line := min(n.Rate, 10e9)
	switch s.Kind {
	case Cooperative, Stubborn, Mute, Lossy:
		line = n.Rate / 8 // of the bottleneck
		if d.incast != nil {
			line = 10e9 / 8
		}
	}
	burst := int64(float64(n.Window)*float64(n.MTU+100)*8/line*1e9) * 3
	reads := int64(float64(n.MaxReads)*65536*8/line*1e9) * 3
	safe := 3*trip + burst + reads + 4*(n.AckDelay+n.Turn) + 500*usec
	if n.Name == "adaptive retransmission" {
		if safe < 2*msec {
			n.Doubling, n.TimeOut = true, 2*msec
			return
		}
		n.Name = "mlx5"
	}
	exponent := d.one(8, 10, 12, 14, 14, 14, 16, 18)
	if s.Kind == Pausing {
		exponent = max(exponent, 15)
	}
	for exponent < 20 && int64(4096)<<exponent < safe {
		exponent++
	}
	n.TimeOut = int64(float64(int64(4096)<<exponent) * (1 + 3*d.Float64()*d.Float64()))
}

// pair draws two hosts, the path between them, and their connections.
func (d *drawer) pair(number int, k SceneKind, budget int) {
	s := &Scene{Kind: k}
	d.capture.Scenes = append(d.capture.Scenes, s)
	path := d.path(k)
	if d.common != nil {
		for end := range 2 {
			for part, from := range d.common.Segments[end] {
				path.Segments[end][part] = &Segment{Delay: from.Delay, Jitter: from.Jitter}
			}
		}
	}
	nic := d.nic(path.Trip(), s)
	if d.incast != nil && number > 0 {
		nic.IPv6 = d.incast.v6
	}
	var hosts [2]*Host
	for side := range hosts {
		hosts[side] = &Host{
			Addr: address(nic.IPv6, d.common != nil, side, number), MAC: [6]byte{2, 0, 0, byte(side + 1), 1, byte(number + 1)}, Rate: nic.Rate, ids: uint16(d.Uint32()),
		}
	}
	conns := d.one(1, 1, 1, 2)
	requester := d.IntN(2)
	switch {
	case d.common != nil:
		requester = 0
	case d.incast != nil:
		requester = d.incast.requester
		if number == 0 {
			d.incast.v6, d.incast.host = nic.IPv6, hosts[requester^1]
		}
		hosts[requester^1] = d.incast.host
	}
	for range conns {
		c := &Conn{NIC: nic, Host: hosts, QP: [2]uint32{nic.QP(), nic.QP()}, Path: path, Scene: s}
		for end := range c.Half {
			c.Half[end] = &Half{Net: d.net, Conn: c, End: end, First: nic.FirstPSN()}
			c.Half[end].Receives = -1
			c.Port[end] = nic.SourcePort(c.QP[end], c.QP[end^1], end)
		}
		d.net.Conns = append(d.net.Conns, c)
		d.traffic(c, requester, budget/conns)
		if d.chance(0.15) && k != Waiting && d.common == nil {
			d.traffic(c, requester^1, budget/conns/2)
		}
		if k == Restarting {
			d.restart(c)
		}
	}
	d.trouble(s, path, hosts, requester, number)
}

// restart adds a second connection of the same QPs, which does the same again once the first one has ended.
func (d *drawer) restart(first *Conn) {
	again := *first
	again.After = int64(d.log(2e9, 60e9))
	for end, h := range first.Half {
		again.Half[end] = &Half{Net: d.net, Conn: &again, End: end, First: h.First}
		again.Half[end].Receives = -1
		again.Half[end].requests = slices.Clone(h.requests)
	}
	d.net.Conns = append(d.net.Conns, &again)
}

// path draws delays.
func (d *drawer) path(k SceneKind) *Path {
	p := &Path{}
	delay := func() int64 { return int64(d.log(500, 20_000)) }
	far := d.chance(0.35)
	if k == Hasty {
		far = true
	}
	switch k {
	case Stubborn, Cooperative, Mute:
		far = d.chance(0.1)
	case Sluggish:
		far = false
	}
	for part := range 2 {
		t := delay()
		if far && (part == 1 || d.chance(0.3)) {
			t = int64(d.log(200e3, 15e6))
		}
		if k == Waiting && part == 1 {
			t = d.between(12*msec, 25*msec)
		}
		// part 0 is on the side of end 0
		p.Segments[0][part] = &Segment{Delay: t}
		p.Segments[1][part^1] = &Segment{Delay: t}
	}
	if k == Hasty && p.Trip() < 4*msec {
		for _, s := range []*Segment{p.Segments[0][1], p.Segments[1][0]} {
			s.Delay += 3 * msec
		}
	}
	if d.chance(0.5) && k != Waiting {
		for end := range 2 {
			for _, s := range p.Segments[end] {
				s.Jitter = s.Delay/20 + 1
			}
		}
	}
	return p
}

// traffic draws what a requester sends, in so many packets.
func (d *drawer) traffic(c *Conn, end, budget int) {
	h := c.Half[end]
	nic := c.NIC
	ops := [][]Op{{Write}, {Write}, {Send}, {Read}, {Read}, {Write, Send}, {Atomic}, {Read, Write}, {Write, Send, Read, Atomic}}[d.IntN(9)]
	most := d.one(64, 1024, 16384, 65536, 65536)
	even := d.chance(0.5)
	at := d.between(0, 50*usec)
	every := int64(0)
	if d.chance(0.2) {
		every = int64(d.log(10e3, 2e6))
	}
	switch c.Scene.Kind {
	case Unready:
		ops = [][]Op{{Send}, {Send}, {Write, Send}}[d.IntN(3)]
		most = min(most, 16384)
	case Stubborn, Cooperative, Mute:
		ops, most, every = [][]Op{{Write}, {Send}}[d.IntN(2)], 65536, 0
	case Sluggish:
		ops = [][]Op{{Write}, {Send}}[d.IntN(2)]
	case BigHole:
		ops, most, even = [][]Op{{Write}, {Send}}[d.IntN(2)], 65536, false
	case Waiting:
		ops, most, even, every = [][]Op{{Write}, {Send}}[d.IntN(2)], 65536, true, 0
		nic.Window, nic.AckEvery, nic.AckEach = int64(d.one(2, 3)), 1, false
		budget = int(float64(12_500*msec)/float64(c.Path.Trip())*float64(nic.Window)) * 2
	case Hasty:
		most = min(most, 16384)
		budget /= 3
	}
	for sent := 0; sent < budget; {
		op, length := ops[d.IntN(len(ops))], most
		if !even {
			length = int(d.between(1, int64(most)))
		}
		if c.Scene.Kind == BigHole && sent < 40 {
			length = 64
		}
		h.Post(op, length, at)
		packets := (length + nic.MTU - 1) / nic.MTU
		sent += packets + 1
		if op == Write || op == Send {
			switch {
			case nic.AckEach:
				sent += packets - 1
			case nic.AckEvery > 0:
				sent += packets / nic.AckEvery
			}
		}
		at += every
	}
}

// address is that of a host. Each pair of hosts has prefixes of its own, unless they are common.
func address(v6, common bool, side, n int) netip.Addr {
	prefix := n
	if common {
		prefix = 0
	}
	if v6 {
		return netip.AddrFrom16([16]byte{0xfd, 0, 0, byte(side + 1), 7: byte(prefix), 15: byte(n + 1)})
	}
	return netip.AddrFrom4([4]byte{10, byte(side + 1), byte(prefix), byte(n + 1)})
}
