package health

import (
	"cmp"
	"slices"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Trace is what passed of the requests of one end of a connection, and of the answers to them, over time: a time-sequence plot's data.
type Trace struct {
	Requester int     `json:"requester" doc:"0 or 1: which end of the connection."`
	MergedNS  int64   `json:"merged_ns" doc:"Packets of a kind within so many ns are one point; 0: each packet is one."`
	Points    []Point `json:"points" doc:"By time."`

	of     *Record
	offset int64
	found  *Connection // of the record
	tally  tally       // after its latest packet
	at     int64       // position of PSN latest
	latest uint32
	begun  bool
	last   map[string]int // the latest point of a kind, plus 1
}

// Point is packets of a kind with successive PSNs, or one.
type Point struct {
	Kind    string `json:"kind" doc:"request, response, ack; again, response-again: sent again; late, twice; missing: skipped by the packet that passed here; nak, rnr-nak, cnp, ce; dropped: by this gateway's queue."`
	TimeNS  int64  `json:"time_ns" doc:"Of the first one, since the capture's first frame; in a gateway since the trace began."`
	PSN     int64  `json:"psn" doc:"The lowest PSN, counted from that of the first packet; it doesn't wrap."`
	PSNs    int64  `json:"psns" doc:"How many PSNs from there on."`
	Packets uint64 `json:"packets" doc:"How many packets."`
}

// The kinds of points.
const (
	PointRequest       = "request"
	PointAgain         = "again"
	PointResponse      = "response"
	PointResponseAgain = "response-again"
	PointAck           = "ack"
	PointNAK           = "nak"
	PointRNRNAK        = "rnr-nak"
	PointLate          = "late"
	PointTwice         = "twice"
	PointMissing       = "missing"
	PointCNP           = "cnp"
	PointCE            = "ce"
	PointDropped       = "dropped"
)

// MostPoints bounds a trace: above, packets of a kind that are close in time become one point.
const MostPoints = 20_000

// NewTrace makes a trace of the requests of one end of a record's connection. offset is the Builder's.
func NewTrace(of *Record, requester int, offset int64) *Trace {
	return &Trace{Requester: requester & 1, Points: []Point{}, of: of, offset: offset, last: map[string]int{}}
}

// Packet passes a packet to the follower, as its method Packet does, and traces it.
func (t *Trace) Packet(f *Follower, flow flowtable.Ref, k *flowtable.Key, b []byte, p *packet.Parsed, now int64) {
	o := Read(b, p, now)
	if s := f.slots[flow.Index]; s != 0 && s&waiting == 0 && t.isOf(f.at(s.id())) {
		t.before(s.side(), &o)
	}
	f.Packet(flow, k, b, p, now)
	s := f.slots[flow.Index]
	if flow.Index == flowtable.None || s == 0 || s&waiting != 0 || f.at(s.id()).flows[s.side()] != flow || !t.isOf(f.at(s.id())) {
		return
	}
	t.after(s.side(), &o)
}

// before comes before a packet that end from sends is observed.
func (t *Trace) before(from int, o *Packet) {
	if from == t.Requester && o.Opcode.Role() != packet.Response {
		t.settle(o)
	}
}

// after traces a packet that was observed.
func (t *Trace) after(from int, o *Packet) {
	if o.Opcode.Role() == packet.Response {
		from ^= 1
	}
	if from != t.Requester {
		return
	}
	if h := &t.found.Half[from]; h.pending.set && o.Opcode.Role() != packet.Response {
		t.tally = tallyOf(h) // what it is, is said later
	} else {
		t.packet(h, o)
	}
}

// settle adds the request of which only the next one tells what it is; nil: there is none.
func (t *Trace) settle(next *Packet) {
	if h := t.found.Half[t.Requester]; h.pending.set { // a copy
		p := h.pending.packet
		h.settle(next)
		t.packet(&h, &p)
	}
}

// End completes the trace, after the last packet.
func (t *Trace) End() {
	if t.found != nil && t.isOf(t.found) {
		t.settle(nil)
	}
	t.sort()
}

func (t *Trace) sort() {
	slices.SortStableFunc(t.Points, func(a, b Point) int { return cmp.Compare(a.TimeNS, b.TimeNS) })
}

// CNP passes a CNP to the follower, as its method CNP does, and traces it.
func (t *Trace) CNP(f *Follower, k *flowtable.Key, now int64) {
	f.CNP(k, now)
	if e := f.find(k.Dst, k.DestQP, k.Scope().Named()); e != 0 && t.isOf(f.at(e.id())) {
		t.add(Point{PointCNP, now + t.offset, t.at, 1, 1})
	}
}

// isOf reports whether a connection is the record's.
func (t *Trace) isOf(c *Connection) bool {
	if c.First+t.offset != t.of.StartNS {
		return false
	}
	if c != t.found {
		for i, e := range t.of.Ends {
			if c.End[i].Addr.Netip() != e.IP || c.End[i].QP != e.QP {
				return false
			}
		}
		if Network(c.Scope) != t.of.Network {
			return false
		}
		t.found = c
	}
	return true
}

// tally is what a packet changes of a Half, and tells what the packet was.
type tally struct{ again, responsesAgain, late, twice, missing, responsesMissing uint64 }

func tallyOf(h *Half) tally {
	return tally{h.AgainRequests.Packets, h.AgainResponses.Packets, h.OutOfOrder, h.Duplicates, h.holes.missing(), h.reads.holes.missing()}
}

// packet adds a packet.
func (t *Trace) packet(h *Half, p *Packet) {
	then, now := t.tally, tallyOf(h)
	t.tally = now
	at := t.place(p.PSN)
	kind, psns := PointRequest, int64(1)
	if p.Opcode.Role() == packet.Response {
		switch {
		case p.HasAETH && p.Syndrome>>5 == 1:
			kind = PointRNRNAK
		case p.HasAETH && p.Syndrome>>5 == 3:
			kind = PointNAK
		case now.responsesAgain > then.responsesAgain:
			kind = PointResponseAgain
		case now.late > then.late:
			kind = PointLate
		case now.twice > then.twice:
			kind = PointTwice
		case p.Opcode.HasPayload():
			kind = PointResponse
			t.missing(p, at, now.responsesMissing, then.responsesMissing)
		default:
			kind = PointAck
		}
	} else {
		switch {
		case now.again > then.again:
			kind = PointAgain
		case now.late > then.late:
			kind = PointLate
		case now.twice > then.twice:
			kind = PointTwice
		default:
			t.missing(p, at, now.missing, then.missing)
		}
		if p.Opcode.Role() == packet.ReadRequest {
			psns = int64(h.psnsOf(p))
		}
	}
	t.add(Point{kind, p.Time + t.offset, at, psns, 1})
	if p.CE {
		t.add(Point{PointCE, p.Time + t.offset, at, 1, 1})
	}
}

// missing adds what a packet at a position has skipped.
func (t *Trace) missing(p *Packet, at int64, now, then uint64) {
	if n := int64(now - then); now > then && n <= maxGap {
		t.add(Point{PointMissing, p.Time + t.offset, at - n, n, uint64(n)})
	}
}

// place is the position of a PSN. A PSN far from those before it begins anew above them.
func (t *Trace) place(psn uint32) int64 {
	d, reach := ahead(psn, t.latest), int32(maxGap)
	if t.found != nil {
		reach = t.found.Half[t.Requester].reach()
	}
	switch {
	case !t.begun:
		t.begun, t.at = true, 0
	case d > maxGap || d < -reach:
		t.at++
	case d > 0:
		t.at += int64(d)
	default:
		return t.at + int64(d)
	}
	t.latest = psn
	return t.at
}

// add adds a point, and joins points if there are too many.
func (t *Trace) add(p Point) {
	t.put(p)
	if len(t.Points) < MostPoints {
		return
	}
	if t.MergedNS == 0 {
		t.MergedNS = max((p.TimeNS-t.Points[0].TimeNS)/MostPoints, 1)
	}
	for len(t.Points) > MostPoints/2 {
		t.MergedNS *= 2
		all := t.Points
		t.Points = t.Points[:0]
		clear(t.last)
		for _, o := range all {
			t.put(o)
		}
	}
}

// put appends a point, or adds it to the latest one of its kind if that is so close that they are one.
func (t *Trace) put(p Point) {
	if i := t.last[p.Kind]; i > 0 && t.MergedNS > 0 && p.TimeNS/t.MergedNS == t.Points[i-1].TimeNS/t.MergedNS {
		o := &t.Points[i-1]
		end := max(o.PSN+o.PSNs, p.PSN+p.PSNs)
		o.PSN = min(o.PSN, p.PSN)
		o.PSNs, o.Packets = end-o.PSN, o.Packets+p.Packets
		return
	}
	t.Points = append(t.Points, p)
	t.last[p.Kind] = len(t.Points)
}
