package health

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
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
	Connections  int    `json:"connections" doc:"How many."`
	Bad          int    `json:"bad" doc:"Connections with a verdict."`
	NotPaired    int    `json:"not_paired" doc:"Connections of which one direction is known only."`
	OneDirection int    `json:"one_direction" doc:"RC connections of which packets of one direction were seen only."`
	Hosts        int    `json:"hosts" doc:"Hosts that send or receive."`
	DurationNS   int64  `json:"duration_ns" doc:"From the first packet to the last."`
	OtherFrames  uint64 `json:"other_frames,omitempty" doc:"Frames that are no RoCEv2 packets of a followed connection."`

	unacknowledged int // connections whose service has no answers
	unheard        int // those that end with a request without an answer
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
	DroppedHere    uint64            `json:"dropped_here,omitempty" doc:"Packets that this gateway's queues dropped."`
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
	t.DroppedHere, t.Again = c.DroppedHere[0]+c.DroppedHere[1], c.Again()
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

func addTo[K comparable](m map[K]*Sum, key K, c *Counts, cnps uint64) {
	s := m[key]
	if s == nil {
		s = &Sum{Name: fmt.Sprint(key)}
		m[key] = s
	}
	s.Connections++
	s.add(c, cnps)
}

// prefixes are those of the requester and the responder.
type prefixes struct{ from, to netip.Prefix }

func (p prefixes) String() string { return p.from.String() + " -> " + p.to.String() }

func prefixOf(a netip.Addr) netip.Prefix {
	bits := 24
	if a.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(a, bits).Masked()
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
