package health

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Report is the health of all connections: the answer of the API, and the output of a replay.
type Report struct {
	Summary     Summary   `json:"summary" doc:"The sum of all connections."`
	Conclusion  string    `json:"conclusion" doc:"The answer in a sentence."`
	Verdicts    []Verdict `json:"verdicts" doc:"What is wrong, what matters most first. Empty: nothing that can be told; see conclusion."`
	Notes       []Note    `json:"notes" doc:"What isn't wrong, but should be known."`
	Frames      *Frames   `json:"frames,omitempty" doc:"What was examined of a capture, and what was not."`
	Hosts       []Sum     `json:"hosts" doc:"Sums by host, of the packets that it sent or received."`
	Prefixes    []Sum     `json:"prefixes" doc:"Sums by pair of prefixes, /24 and /64, from the requester's to the responder's."`
	Ports       []Sum     `json:"ports,omitempty" doc:"Sums by gateway port at which the requests arrive."`
	Connections []Record  `json:"connections" doc:"Those with verdicts first, then by bytes."`
}

// Summary is the sum of all connections.
type Summary struct {
	Connections     int    `json:"connections" doc:"How many."`
	Bad             int    `json:"bad" doc:"Connections with a verdict."`
	NotPaired       int    `json:"not_paired" doc:"Connections of which one direction is known only."`
	OneDirection    int    `json:"one_direction" doc:"RC connections of which packets of one direction were seen only."`
	Hosts           int    `json:"hosts" doc:"Hosts that send or receive."`
	DurationNS      int64  `json:"duration_ns" doc:"From the first packet to the last."`
	OtherFrames     uint64 `json:"other_frames,omitempty" doc:"Frames that are no RoCEv2 packets of a followed connection."`
	UnreadableBytes uint64 `json:"-"`
	Totals
}

// Totals are sums over connections.
type Totals struct {
	Packets        uint64            `json:"packets" doc:"Packets."`
	Bytes          uint64            `json:"bytes" doc:"Of frames."`
	GoodputBytes   uint64            `json:"goodput_bytes" doc:"Payload, each byte counted once."`
	Retransmitted  Amount            `json:"retransmitted" doc:"Packets that were sent again."`
	Again          string            `json:"-"`
	Causes         map[string]Amount `json:"causes" doc:"What was sent again, by cause."`
	LostUpstream   uint64            `json:"lost_upstream" doc:"Packets lost before they came here."`
	LostDownstream uint64            `json:"lost_downstream" doc:"Packets that passed here and were lost behind."`
	AcksLost       uint64            `json:"acks_lost" doc:"ACKs that passed here and were lost behind."`
	OutOfOrder     uint64            `json:"out_of_order" doc:"Packets that came late."`
	Duplicates     uint64            `json:"duplicates" doc:"Packets that came twice, and were not sent again."`
	NAKs           uint64            `json:"naks" doc:"NAKs."`
	RNRNAKs        uint64            `json:"rnr_naks" doc:"RNR NAKs."`
	CE             uint64            `json:"ce_marked" doc:"Packets with CE."`
	CNPs           uint64            `json:"cnps" doc:"CNPs to the requesters."`
	RTT            *RTT              `json:"rtt,omitempty" doc:"From a request to its ACK."`

	counts Counts
}

// Sum is the sum of the connections of a host, a pair of prefixes or a port.
type Sum struct {
	Name        string `json:"name" doc:"Host, pair of prefixes or port."`
	Connections int    `json:"connections" doc:"How many."`
	Incast      int    `json:"incast,omitempty" doc:"Of a host: the most senders whose data it received at the same time."`
	Totals
}

func (t *Totals) add(c *Counts, cnps uint64) {
	t.counts.Add(c)
	t.CNPs += cnps
}

// finish fills the fields from the sum of counts.
func (t *Totals) finish() {
	c := &t.counts
	t.Packets, t.Bytes = c.Requests.Packets+c.Responses.Packets, c.Requests.Bytes+c.Responses.Bytes
	t.GoodputBytes, t.Retransmitted = c.Goodput+c.ReadGoodput, c.Retransmissions()
	t.LostUpstream, t.LostDownstream, t.AcksLost, t.OutOfOrder, t.Duplicates = c.LostUpstream, c.LostDownstream, c.AcksLost, c.OutOfOrder, c.Duplicates
	t.Again = c.Again()
	t.RNRNAKs, t.CE, t.RTT = c.RNRNAKs, c.CE, rttOf(&c.RTT, 0)
	t.Causes = map[string]Amount{}
	for cause, a := range c.Retransmitted {
		if a.Packets > 0 {
			t.Causes[Cause(cause).String()] = a
		}
	}
	for _, n := range c.NAKs {
		t.NAKs += n
	}
}

// Pauses are the PAUSE and PFC frames of one sender of them.
type Pauses struct {
	From   string // a MAC address, or a port
	Frames uint64 // that pause; those that resume don't count
	First  int64  // ns
	Last   int64
	// Priorities are what each priority was paused for; nil: not known.
	Priorities []Paused
}

// Builder makes a Report of copies of connections, one by one.
type Builder struct {
	Ports []string // names of the gateway's ports; nil: none
	// Offset is added to times: a gateway's clock to Unix time.
	Offset int64
	// PairedBy says of the next connection by what evidence its directions are known to be one; "": not said.
	PairedBy string

	notes []Note
	// Frames accounts for a capture's frames; nil: there is none.
	Frames *Frames

	verdicts     []Verdict
	records      []Record
	hosts        map[netip.Addr]*Sum
	prefixes     map[string]*Sum
	ports        map[string]*Sum
	all          Totals
	first, last  int64
	oneDirection int
	unlisted     uint64
	directions   []direction        // by record
	oneSided     map[direction]bool // those of connections whose other direction isn't in the same record
	incast       map[netip.Addr][]active
	slow         map[netip.Addr]*receiver
}

// Add adds a copy that Table.Copy has made.
func (b *Builder) Add(c *Connection) {
	b.begin()
	r := c.Record(b.Ports)
	r.StartNS += b.Offset
	r.PairedBy = b.PairedBy
	n := len(b.records)
	for i := range c.Half {
		for _, v := range c.judge(i) {
			v.Connections, v.of = 1, []int{n}
			b.verdicts = append(b.verdicts, v)
		}
		b.notes = append(b.notes, c.notes(i)...)
		b.sum(c, i)
	}
	b.span(c)
	d, oneSided := c.direction()
	if b.directions = append(b.directions, d); oneSided {
		b.oneSided[d] = true
		if c.Service != transportUC && c.Service != transportUD {
			b.oneDirection++
		}
	}
	b.records = append(b.records, r)
}

func (b *Builder) begin() {
	if b.hosts == nil {
		b.hosts, b.prefixes, b.ports = map[netip.Addr]*Sum{}, map[string]*Sum{}, map[string]*Sum{}
		b.oneSided = map[direction]bool{}
		b.incast, b.slow = map[netip.Addr][]active{}, map[netip.Addr]*receiver{}
	}
}

func (b *Builder) span(c *Connection) {
	if b.first == 0 || c.First < b.first {
		b.first = c.First
	}
	b.last = max(b.last, c.Last)
}

// AddSums adds a copy of a connection for which there is no room in the list: it counts in the sums only.
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

func (c *Connection) direction() (d direction, oneSided bool) {
	var sends [2]bool
	for i := range sends {
		sends[i] = c.Half[i].Requests.Packets+c.Half[i^1].Responses.Packets > 0
	}
	from := 0
	if !sends[0] {
		from = 1
	}
	return direction{c.End[from].Addr, c.End[from^1].Addr, c.Scope}, sends[0] != sends[1]
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
		addTo(b.hosts, host, host.String(), &counts, cnps)
	}
	pair := prefixOf(from).String() + " -> " + prefixOf(to).String()
	addTo(b.prefixes, pair, pair, &counts, cnps)
	if p := int(c.End[i].Port); p < len(b.Ports) {
		addTo(b.ports, b.Ports[p], b.Ports[p], &counts, cnps)
	}
	if counts.Goodput > 0 {
		b.incast[to] = append(b.incast[to], active{from, c.First, c.Last})
	}
	if counts.ReadGoodput > 0 {
		b.incast[from] = append(b.incast[from], active{to, c.First, c.Last})
	}
	b.receives(to, from, &c.Half[i])
}

func addTo[K comparable](m map[K]*Sum, key K, name string, c *Counts, cnps uint64) {
	s := m[key]
	if s == nil {
		s = &Sum{Name: name}
		m[key] = s
	}
	s.Connections++
	s.add(c, cnps)
}

func prefixOf(a netip.Addr) netip.Prefix {
	bits := 24
	if a.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(a, bits).Masked()
}

// active is a sender's time of sending to a receiver.
type active struct {
	sender      netip.Addr
	first, last int64
}

// incastOf is the most senders at one time.
func incastOf(all []active) (most int) {
	type edge struct {
		at     int64
		step   int
		sender netip.Addr
	}
	var edges []edge
	for _, a := range all {
		edges = append(edges, edge{a.first, 1, a.sender}, edge{a.last + 1, -1, a.sender})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	now := map[netip.Addr]int{}
	for _, e := range edges {
		if now[e.sender] += e.step; now[e.sender] == 0 {
			delete(now, e.sender)
		}
		most = max(most, len(now))
	}
	return most
}

// Report makes the report. pauses may be nil; the counts of connections' packets that were not followed are other.
func (b *Builder) Report(pauses []Pauses, other uint64) *Report {
	b.verdicts = slices.DeleteFunc(b.verdicts, func(v Verdict) bool { return v.Name == Asymmetric && b.elsewhere(v) })
	for _, p := range pauses {
		if v, n := p.judge(b.last - b.first); v.Name != "" {
			b.verdicts = append(b.verdicts, v)
		} else {
			b.notes = append(b.notes, n)
		}
	}
	b.verdicts = b.withoutCorrupted()
	b.verdicts = append(append(b.verdicts, b.slowReceivers()...), b.Frames.verdicts()...)
	if b.unlisted > 0 {
		b.notes = append(b.notes, Note{Name: NoteUnlisted, Text: fmt.Sprintf("there was no room to follow %d parts of connections on: what they sent counts in the sums, but not in the list and the verdicts, "+
			"and what was sent again after that may not be told from new packets; follow more connections at a time (--connections)", b.unlisted)})
	}
	r := &Report{Verdicts: merge(b.verdicts), Notes: mergeNotes(b.notes), Frames: b.Frames, Connections: b.records}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		v.Commands = v.commands()
		for _, n := range v.of {
			if !slices.Contains(r.Connections[n].Verdicts, v.Name) {
				r.Connections[n].Verdicts = append(r.Connections[n].Verdicts, v.Name)
			}
		}
	}
	b.all.finish()
	r.Summary = Summary{Connections: len(b.records), Hosts: len(b.hosts), DurationNS: b.last - b.first, OtherFrames: other, Totals: b.all, OneDirection: b.oneDirection}
	for i := range r.Connections {
		if c := &r.Connections[i]; len(c.Verdicts) > 0 {
			r.Summary.Bad++
		}
		if !r.Connections[i].Paired {
			r.Summary.NotPaired++
		}
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

func (r *Record) bytes() (n uint64) {
	for i := range r.Requests {
		n += r.Requests[i].Packets.Bytes + r.Requests[i].Responses.Bytes
	}
	return n
}

// sorted lists sums: most retransmitted first, then by bytes.
func sorted[K comparable](m map[K]*Sum) []Sum {
	out := make([]Sum, 0, len(m))
	for _, s := range slices.Collect(maps.Values(m)) {
		s.finish()
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(b.Retransmitted.Packets, a.Retransmitted.Packets), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// receiver is what is known of a host as a responder.
type receiver struct {
	rtt     Histogram
	rnr     uint64
	senders map[netip.Addr]bool
}

func (b *Builder) receives(to, from netip.Addr, h *Half) {
	r := b.slow[to]
	if r == nil {
		r = &receiver{senders: map[netip.Addr]bool{}}
		b.slow[to] = r
	}
	r.rtt.merge(&h.RTT)
	r.rnr += h.RNRNAKs
	r.senders[from] = true
}

// slowReceivers are hosts that acknowledge much later than most others of their prefix.
func (b *Builder) slowReceivers() (all []Verdict) {
	byPrefix := map[netip.Prefix][]netip.Addr{}
	const enough = 16
	for host, r := range b.slow {
		if r.rtt.Count() >= enough {
			byPrefix[prefixOf(host)] = append(byPrefix[prefixOf(host)], host)
		}
	}
	for _, hosts := range byPrefix {
		const fewest, times, least = 3, 4, 100_000
		if len(hosts) < fewest {
			continue
		}
		slices.SortFunc(hosts, func(x, y netip.Addr) int {
			return cmp.Or(cmp.Compare(b.slow[x].rtt.Quantile(0.5), b.slow[y].rtt.Quantile(0.5)), x.Compare(y))
		})
		usual := b.slow[hosts[(len(hosts)-1)/2]].rtt.Quantile(0.5)
		host := hosts[len(hosts)-1]
		if late := b.slow[host].rtt.Quantile(0.5); late > times*usual && late > usual+least {
			all = append(all, Verdict{
				Name: SlowReceiver, Subject: host.String(), Connections: len(b.slow[host].senders), Weight: b.slow[host].rtt.Count(),
				Evidence: fmt.Sprintf("half of its ACKs take longer than %s; those of most of the %d receivers in its prefix take %s", Duration(int64(late)), len(hosts), Duration(int64(usual))),
				Advice:   "look at this host: its link's speed and errors, PCIe width, memory and CPU, and whether it is the target of an incast",
			})
		}
	}
	return all
}
