package rdmanet

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// View is what a capture shows of the packets that pass it.
type View struct {
	Name     string
	Hidden   [2]bool // what an end sends isn't captured
	Skew     int64   // ns, by which the clock for what end 1 sends is ahead
	Unit     int64   // ns, of its timestamps; 0: 1
	Sample   int     // one frame in so many is captured, at random; 0: all
	Snap     int     // bytes of a frame
	Wrap     Wrap
	Twins    Twins
	TwinLag  int64   // ns
	MissOne  float64 // one frame in so many begins a gap of the capture; 0: none
	MissMany int     // frames of a gap
	Skip     int     // frames before the capture begins
	Most     int     // frames
}

// Wrap is what mirrored or tunnelled frames are in.
type Wrap uint8

// Wraps.
const (
	Plain Wrap = iota
	VLAN
	VXLAN
	ERSPAN
)

// Twins says whether a capture has each frame twice.
type Twins uint8

// Twins.
const (
	NoTwins  Twins = iota
	Switched       // in and out of a switch: equal frames
	Routed         // in and out of a router: other MACs, TTL one less
)

// Record is a frame of a capture.
type Record struct {
	At     int64 // ns
	Packet *Packet
	Twin   bool
	Pause  *Pause // no packet, but a PFC frame
}

// Pause is a PFC frame.
type Pause struct {
	From     [6]byte
	Priority int
	Quanta   uint16
}

// Capture is what was captured.
type Capture struct {
	Seed    uint64
	Network *Network
	View    View
	Scenes  []*Scene
	Records []Record
	Missed  []*Packet // that passed and were not captured, though the capture was running

	passed  int
	missing int
}

// pass is the network's Tap.
func (c *Capture) pass(r *rand.Rand, p *Packet, now int64) {
	v := &c.View
	if c.passed++; c.passed <= v.Skip || len(c.Records) >= v.Most || v.Hidden[p.From] {
		return
	}
	if v.MissOne > 0 && c.missing == 0 && r.Float64()*v.MissOne < 1 {
		c.missing = 1 + r.IntN(v.MissMany)
	}
	if c.missing > 0 || v.Sample > 1 && r.IntN(v.Sample) != 0 {
		c.missing = max(c.missing-1, 0)
		c.Missed = append(c.Missed, p)
		return
	}
	if p.From == 1 {
		now += v.Skew
	}
	c.Records = append(c.Records, Record{At: v.stamp(now), Packet: p})
	if v.Twins != NoTwins {
		c.Records = append(c.Records, Record{At: v.stamp(now + v.TwinLag), Packet: p, Twin: true})
	}
}

// stamp is a time in the capture's unit.
func (v *View) stamp(at int64) int64 { return at - at%max(v.Unit, 1) }

// sort puts the records in the order of their times, as a merge of captures does.
func (c *Capture) sort() {
	slices.SortStableFunc(c.Records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
}

// whole reports whether a frame isn't cut.
func (c *Capture) whole(p *Packet) bool { return c.View.Snap >= c.wireLen(p) }

// readable reports whether the headers up to AETH and RETH are in the capture.
func (c *Capture) readable(nic *NIC) bool {
	return c.View.Snap >= c.View.Wrap.overhead()+14+ipLen(nic)+8+12+16
}

// both reports whether all that passed was captured, in both directions.
func (c *Capture) both() bool {
	v := &c.View
	return !v.Hidden[0] && !v.Hidden[1] && v.Sample <= 1 && v.MissOne == 0
}

// Shows reports whether packets of both ends of a connection are in the capture, with their BTH.
func (c *Capture) Shows(conn *Conn) bool {
	var from [2]bool
	for i := range c.Records {
		if p := c.Records[i].Packet; p != nil && p.Half.Conn == conn && p.Kind != Notification {
			from[p.From] = true
		}
	}
	return from[0] && from[1] && c.numbered(conn.NIC)
}

// numbered reports whether the BTH is in the capture.
func (c *Capture) numbered(nic *NIC) bool {
	return c.View.Snap >= c.View.Wrap.overhead()+14+ipLen(nic)+packet.UDPLen+packet.BTHLen
}

// of are the records of a half's packets, without copies.
func (c *Capture) of(h *Half) (all []*Packet) {
	for i := range c.Records {
		r := &c.Records[i]
		if p := r.Packet; p != nil && p.Half == h && !r.Twin && p.CopyOf == nil && p.Kind != Notification {
			all = append(all, p)
		}
	}
	return all
}

// Causes are the retransmissions of a half that the capture shows, by cause: the packets whose PSN was passed before, or is behind one that was.
func (c *Capture) Causes(h *Half) map[string]uint64 {
	all := map[string]uint64{}
	for _, p := range c.again(h) {
		all[p.Again.Cause()]++
	}
	return all
}

// again are the retransmissions that the capture shows. Without the BTH it shows none.
func (c *Capture) again(h *Half) (all []*Packet) {
	if !c.numbered(h.Conn.NIC) {
		return nil
	}
	var high [2]int64
	var any [2]bool
	for _, p := range c.of(h) {
		if !p.data() || p.Fate == CorruptedBefore && c.whole(p) {
			continue
		}
		end := p.Seq + 1
		if p.Kind == Request {
			end = p.Seq + p.PSNs
		}
		switch k := p.Kind; {
		case !any[k] || p.Seq >= high[k]:
			any[k], high[k] = true, end
		case p.Again != nil:
			all = append(all, p)
		}
	}
	return all
}

// Truth describes each frame of the capture: its packet, why it was sent again, and what became of it.
func (c *Capture) Truth() string {
	var b strings.Builder
	for i := range c.Records {
		r := &c.Records[i]
		p := r.Packet
		if p == nil {
			fmt.Fprintf(&b, "%d %.3f us: pause of priority %d, %d quanta\n", i+1, float64(r.At)/1e3, r.Pause.Priority, r.Pause.Quanta)
			continue
		}
		fmt.Fprintf(&b, "%d %.3f us: %v, QP %d, PSN %d, %v: %v", i+1, float64(r.At)/1e3, p.Half.Conn.Host[p.From].Addr, p.Half.Conn.QP[p.From^1], p.wire(), p.Opcode, p.Fate)
		if p.Again != nil {
			fmt.Fprintf(&b, "; sent again: %s, %v", p.Again.Cause(), p.Again.Reason())
		}
		if r.Twin || p.CopyOf != nil {
			b.WriteString("; a copy")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
