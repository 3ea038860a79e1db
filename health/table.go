package health

import (
	"fmt"
	"unsafe"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// Table has the connections that one worker follows.
type Table struct {
	connections []Connection
	ends        []end // where to find an end's connection; a later one replaces an earlier one in the same place
	used        int
	next        int    // where the search for one to replace begins
	epoch       uint32 // counts the times when packets were not observed
	stats       Stats
	// Replacing, unless nil, is shown a copy of each connection whose memory another one gets, with its counts complete.
	Replacing func(*Connection)
}

// Stats counts what happened to a table's connections.
type Stats struct {
	Followed uint64 // connections that were begun
	Replaced uint64 // those that ended because another needed the memory
}

// end is a connection and one of its ends: the ID, and the number of the end in the lowest bit; 0: none.
type end uint32

func (e end) id() id    { return id(e >> 1) }
func (e end) side() int { return int(e & 1) }

// id names a connection of a table, from 1.
type id uint32

const endsEach = 4 // places for ends, by connection

// Size is the number of bytes that New needs for so many connections.
func Size(connections int) int {
	return connections * (int(unsafe.Sizeof(Connection{})) + endsEach*int(unsafe.Sizeof(end(0))))
}

// New makes a table of so many connections in mem, which must be zero, aligned to 8 bytes, and of at least Size bytes.
func New(mem []byte, connections int) (*Table, error) {
	if need := Size(connections); connections < 1 || len(mem) < need {
		return nil, fmt.Errorf("health: %d bytes of memory for %d connections: expected at least 1 connection and %d bytes", len(mem), connections, need)
	}
	start := unsafe.Pointer(unsafe.SliceData(mem))
	behind := unsafe.Add(start, connections*int(unsafe.Sizeof(Connection{})))
	return &Table{
		connections: unsafe.Slice((*Connection)(start), connections), ends: unsafe.Slice((*end)(behind), endsEach*connections),
	}, nil
}

func (t *Table) at(i id) *Connection { return &t.connections[i-1] }

// Len is the number of connections that were ever used.
func (t *Table) Len() int { return t.used }

// Copy copies connection n, from 0 to Len-1, and completes its counts. It reports false if it is not in use.
func (t *Table) Copy(n int, now int64, to *Connection) bool {
	if !t.connections[n].used {
		return false
	}
	*to = t.connections[n]
	to.snapshot(now)
	return true
}

// Leads are how much earlier than what it answers, or goes back for, what each end of connection n sends is recorded, ns; 0: it isn't, or only some.
func (t *Table) Leads(n int) (of Ends, leads [2]int64) {
	c := &t.connections[n]
	for i := range c.Half {
		h := &c.Half[i]
		if h.EarlyAnswers > 2 && !h.early.foreign(h) && 4*h.EarlyAnswers >= h.Requests.Packets-h.AgainRequests.Packets {
			leads[i^1] = max(leads[i^1], h.Lead)
		}
		if r := &h.repeat; r.foreseen > 1 && 2*r.foreseen >= r.begun {
			leads[i] = max(leads[i], r.lag)
		}
	}
	return c.Ends, leads
}

// Stats are for the owner.
func (t *Table) Stats() Stats { return t.stats }

// Miss says that packets were not observed: for each connection, what follows isn't compared with what came before.
func (t *Table) Miss() { t.epoch++ }

const searched = 16 // connections that are compared to find one to replace

// follow begins a connection. If the table is full, it replaces the one of a few that has been silent for longest.
func (t *Table) follow(e Ends, paired bool) id {
	t.stats.Followed++
	i := id(t.used + 1)
	if t.used < len(t.connections) {
		t.used++ // its memory is zero
	} else {
		i = t.oldest()
		t.stats.Replaced++
		if t.Replacing != nil {
			t.show(i)
		}
		*t.at(i) = Connection{}
	}
	c := t.at(i)
	c.Ends, c.Paired, c.used, c.epoch = e, paired, true, t.epoch
	t.list(i)
	return i
}

func (t *Table) show(i id) {
	var c Connection
	if t.Copy(int(i-1), t.at(i).Last, &c) {
		t.Replacing(&c)
	}
}

// list makes the ends of a connection known.
func (t *Table) list(i id) {
	c := t.at(i)
	for side := range c.End {
		e := &c.End[side]
		if e.QP == 0 {
			continue
		}
		at := t.place(e.Addr, e.QP)
		for try := range uint32(probed) {
			o := t.ends[(at+try)%uint32(len(t.ends))]
			if o == 0 || !t.isAt(o, (at+try)%uint32(len(t.ends))) {
				at += try
				break
			}
		}
		t.ends[at%uint32(len(t.ends))] = end(uint32(i)<<1 | uint32(side))
	}
}

const probed = 32 // places in which an end can be: at most half are taken, so few are looked at

// isAt reports whether an end in a place is still one of a connection.
func (t *Table) isAt(o end, place uint32) bool {
	c := t.at(o.id())
	e := &c.End[o.side()]
	return c.used && e.QP != 0 && (place-t.place(e.Addr, e.QP)+uint32(len(t.ends)))%uint32(len(t.ends)) < probed
}

func (t *Table) place(a packet.Addr, qp uint32) uint32 {
	return uint32(splitmix.Mix(a.Hi^splitmix.Mix(a.Lo^uint64(qp)<<32))>>32) % uint32(len(t.ends))
}

// find is the latest connection of an end in a scope; 0 if it isn't known. If there is none, it is one of the same tenant: a label or a key may belong to one direction.
func (t *Table) find(a packet.Addr, qp uint32, s packet.Scope) (found end) {
	at := t.place(a, qp)
	exact := false
	for try := range uint32(probed) {
		o := t.ends[(at+try)%uint32(len(t.ends))]
		if o == 0 { // a place is never emptied
			break
		}
		c := t.at(o.id())
		e, same := &c.End[o.side()], c.Scope == s
		if !c.used || e.Addr != a || e.QP != qp || !same && (exact || c.Scope.Tenant() != s.Tenant()) {
			continue
		}
		if same != exact || found == 0 || c.First >= t.at(found.id()).First {
			found, exact = o, same
		}
	}
	return found
}

// oldest is the connection with the earliest last packet of the next few.
func (t *Table) oldest() id {
	best := t.next % len(t.connections)
	for i := range min(searched, len(t.connections)) {
		if at := (t.next + i) % len(t.connections); t.connections[at].Last < t.connections[best].Last {
			best = at
		}
	}
	t.next = (t.next + searched) % len(t.connections)
	return id(best + 1)
}
