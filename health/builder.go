package health

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Builder makes a Report of copies of connections, one by one.
type Builder struct {
	Ports []string // names of the gateway's ports; nil: the packets are a capture's
	// Offset is added to times: a gateway's clock to Unix time.
	Offset int64
	// Most is how many connections the report lists; 0: all. Those with verdicts come first.
	Most int
	// Frames accounts for a capture's frames; nil: there is none.
	Frames *Frames

	notes          []Note
	verdicts       []Verdict
	records        []Record
	replaceable    []int // records without a verdict, if the list is bounded
	hosts          map[netip.Addr]*Sum
	prefixes       map[prefixes]*Sum
	ports          map[string]*Sum
	all            Totals
	first, last    int64
	notPaired      int
	oneDirection   int
	unacknowledged int
	unheard        int
	unlisted       uint64
	directions     []direction        // by the connection's number
	oneSided       map[direction]bool // those of connections whose other direction isn't in the same copy
	datagrams      map[direction]datagrams
	classes        map[class]*carried
	incast         map[netip.Addr][]active
	slow           map[netip.Addr]*receiver
	together       together
}

// Add adds a copy that Table.Copy has made. by says by what evidence its directions are known to be one; "": not said.
func (b *Builder) Add(c *Connection, by string) {
	b.begin()
	number := len(b.directions)
	var found []Verdict
	for i := range c.Half {
		found = append(found, c.judge(i)...)
		b.notes = append(b.notes, c.notes(i)...)
		b.sum(c, i)
	}
	b.span(c)
	if !c.Paired {
		b.notPaired++
	}
	d, oneSided := c.direction()
	if b.directions = append(b.directions, d); oneSided {
		b.oneSided[d] = true
		if !c.unacknowledged() {
			b.oneDirection++
		}
	}
	if c.unacknowledged() {
		b.unacknowledged++
	}
	if c.Service == transportUD {
		to := direction{c.End[0].Addr, c.End[1].Addr, c.Scope.Tenant()}
		b.datagrams[to] = datagrams{b.datagrams[to].packets + c.Datagram.Packets, max(b.datagrams[to].hops, c.Half[0].hops.latest[0])}
	}
	if c.unheard() {
		b.unheard++
	}
	for i := range found {
		found[i].Connections, found[i].of = 1, []int{number}
	}
	b.verdicts = append(b.verdicts, found...)
	if len(found) == 0 {
		b.together.add(c, number)
	}
	b.list(c, by, len(found) > 0)
}

// list puts a connection on the list. On a full one, it takes the place of one without a verdict, if it has one.
func (b *Builder) list(c *Connection, by string, bad bool) {
	at := len(b.records)
	switch n := len(b.replaceable); {
	case b.Most == 0 || at < b.Most:
		b.records = append(b.records, Record{})
	case bad && n > 0:
		at, b.replaceable = b.replaceable[n-1], b.replaceable[:n-1]
	default:
		return
	}
	if b.Most > 0 && !bad {
		b.replaceable = append(b.replaceable, at)
	}
	r := c.Record(b.Ports)
	r.StartNS += b.Offset
	r.PairedBy, r.number = by, len(b.directions)-1
	b.records[at] = r
}

func (b *Builder) begin() {
	if b.hosts == nil {
		b.hosts, b.prefixes, b.ports = map[netip.Addr]*Sum{}, map[prefixes]*Sum{}, map[string]*Sum{}
		b.oneSided, b.datagrams, b.classes = map[direction]bool{}, map[direction]datagrams{}, map[class]*carried{}
		b.incast, b.slow = map[netip.Addr][]active{}, map[netip.Addr]*receiver{}
	}
}

func (b *Builder) span(c *Connection) {
	if b.first == 0 || c.First < b.first {
		b.first = c.First
	}
	b.last = max(b.last, c.Last)
}

// AddSums adds a copy of a connection that isn't listed: it counts in the sums only.
func (b *Builder) AddSums(c *Connection) {
	b.begin()
	for i := range c.Half {
		b.sum(c, i)
	}
	b.span(c)
	b.unlisted++
}

// direction is where the packets of a connection go that has packets of one end only.
type direction struct {
	from, to packet.Addr
	scope    packet.Scope
}

// datagrams are those of UD in a direction: how many, and their highest TTL or hop limit.
type datagrams struct {
	packets uint64
	hops    uint8
}

// unacknowledged reports whether a connection's service has no answers, UC or UD.
func (c *Connection) unacknowledged() bool {
	return c.Service == transportUC || c.Service == transportUD
}

func (c *Connection) direction() (d direction, oneSided bool) {
	var sends [2]bool
	for i := range sends {
		sends[i] = c.Half[i].Requests.Packets+c.Half[i^1].Responses.Packets > 0
	}
	from := 0
	if !sends[0] {
		from = 1
	}
	return direction{c.End[from].Addr, c.End[from^1].Addr, c.Scope.Tenant()}, sends[0] != sends[1]
}

// elsewhere reports whether the other direction of an asymmetric connection is in another record: another worker follows it, or the pair isn't known.
func (b *Builder) elsewhere(v Verdict) bool {
	d := b.directions[v.of[0]]
	return b.oneSided[direction{d.to, d.from, d.scope}]
}

// sum adds the requests of one end to the sums.
func (b *Builder) sum(c *Connection, i int) {
	counts := c.Half[i].Counts
	if i == 0 {
		counts.Requests.plus(c.Datagram)
	}
	if counts.Requests.Packets+counts.Responses.Packets == 0 {
		return
	}
	from, to := c.End[i].Addr.Netip(), c.End[i^1].Addr.Netip()
	cnps := c.Reaction[i].CNPs
	b.all.add(&counts, cnps)
	for _, host := range [...]netip.Addr{from, to} {
		addTo(b.hosts, host, &counts, cnps)
	}
	addTo(b.prefixes, prefixes{prefixOf(from), prefixOf(to)}, &counts, cnps)
	if p := int(c.End[i].Port); p < len(b.Ports) {
		addTo(b.ports, b.Ports[p], &counts, cnps)
	}
	if counts.Goodput > 0 {
		b.incast[to] = append(b.incast[to], active{from, c.First, c.Last})
	}
	if counts.ReadGoodput > 0 {
		b.incast[from] = append(b.incast[from], active{to, c.First, c.Last})
	}
	b.receives(to, from, &c.Half[i])
	b.classify(to, from, &c.Half[i])
}

// Report makes the report. pauses may be nil; the counts of connections' packets that were not followed are other.
func (b *Builder) Report(pauses []Pauses, other uint64) *Report {
	b.verdicts = append(b.verdicts, b.together.verdicts()...)
	b.verdicts = slices.DeleteFunc(b.verdicts, func(v Verdict) bool { return v.Name == Asymmetric && b.elsewhere(v) })
	for _, p := range pauses {
		if v, n := p.judge(b.last - b.first); v.Name != "" {
			b.verdicts = append(b.verdicts, v)
		} else {
			b.notes = append(b.notes, n)
		}
	}
	b.verdicts = b.withoutExplained()
	for i := range b.verdicts {
		if v := &b.verdicts[i]; v.notECT && b.all.counts.CE > 0 {
			v.Evidence += "; it isn't ECN-capable (ECT), and others are marked CE here: a queue that marks those drops it"
		}
		if v := &b.verdicts[i]; v.lossy.IsValid() {
			v.Evidence += b.spared(v.class)
		}
	}
	if b.Ports != nil {
		for i := range b.verdicts {
			b.verdicts[i].inGateway()
		}
	}
	b.verdicts = append(append(b.verdicts, b.slowReceivers()...), b.Frames.verdicts()...)
	b.withoutAnswer()
	b.leftOut()
	r := &Report{Verdicts: grouped(b.verdicts, b.Ports != nil), Notes: mergeNotes(b.notes), Frames: b.Frames, Connections: b.records}
	b.all.finish()
	r.Summary = Summary{
		Connections: len(b.directions), Bad: r.mark(), NotPaired: b.notPaired, OneDirection: b.oneDirection, unacknowledged: b.unacknowledged, unheard: b.unheard, Hosts: len(b.hosts), DurationNS: b.last - b.first,
		OtherFrames: other, Totals: b.all,
	}
	for host, s := range b.hosts {
		s.Incast = incastOf(b.incast[host])
	}
	r.Hosts, r.Prefixes, r.Ports = sorted(b.hosts), sorted(b.prefixes), sorted(b.ports)
	slices.SortStableFunc(r.Connections, func(x, y Record) int {
		return cmp.Or(cmp.Compare(min(len(y.Verdicts), 1), min(len(x.Verdicts), 1)), cmp.Compare(y.bytes(), x.bytes()))
	})
	if r.Connections == nil {
		r.Connections = []Record{}
	}
	r.Conclusion = r.conclude()
	return r
}

// withoutAnswer notes hosts to which many datagrams went, and from which none came back.
func (b *Builder) withoutAnswer() {
	const many = 64
	oneWay := map[direction]bool{} // between two addresses, in some network: the answers may be in another one, but not in one that has both directions, of another tenant
	for d := range b.datagrams {
		if b.datagrams[direction{d.to, d.from, d.scope}].packets == 0 {
			oneWay[direction{from: d.from, to: d.to}] = true
		}
	}
	for d, n := range b.datagrams {
		answered := b.datagrams[direction{d.to, d.from, d.scope}].packets > 0 || oneWay[direction{from: d.to, to: d.from}]
		if to := d.to.Netip(); n.packets >= many && !answered && !to.IsMulticast() {
			text := fmt.Sprintf("%d datagrams (UD) went there, and none came back here", n.packets)
			switch {
			case to.IsLinkLocalUnicast():
				text += ": " + strings.TrimSuffix(LinkLocal, "; ")
			case n.hops == 1:
				text += ": " + strings.TrimSuffix(OneHop, "; ")
			}
			b.notes = append(b.notes, Note{Name: NoteDatagrams, Subject: Subject(d.from, d.to, d.scope), Text: text})
		}
	}
}

// leftOut notes what isn't in the report.
func (b *Builder) leftOut() {
	if b.unlisted > 0 {
		b.notes = append(b.notes, Note{Name: NoteUnlisted, Text: fmt.Sprintf("%d parts of connections were not followed on, as too many were open at a time: what they sent counts in the "+
			"sums, but not in the list and the verdicts, and what was sent again after that may count as new; follow more at a time (--connections)", b.unlisted)})
	}
	if n := len(b.directions) - len(b.records); n > 0 {
		b.notes = append(b.notes, Note{Name: NoteNotListed, Text: fmt.Sprintf("%d more connections are not listed, most of them without a verdict; sums and verdicts have them", n)})
	}
}

// mark names in each record what is wrong with it, and returns how many connections have a verdict.
func (r *Report) mark() int {
	bad, records := map[int]bool{}, map[int]*Record{}
	for i := range r.Connections {
		records[r.Connections[i].number] = &r.Connections[i]
	}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		for _, n := range v.of {
			bad[n] = true
			if c := records[n]; c != nil && !slices.Contains(c.Verdicts, v.Name) {
				c.Verdicts = append(c.Verdicts, v.Name)
			}
		}
	}
	return len(bad)
}
