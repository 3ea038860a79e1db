package ipfix

import (
	"net"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/health"
)

// Exporter sends records to a collector. It is for one goroutine.
type Exporter struct {
	to       net.Conn
	domain   uint32
	sequence uint32
	before   map[key]record // what was exported, to send what was added since
}

// key names the requests of one end of a connection.
type key struct {
	src, dst     netip.Addr
	srcQP, dstQP uint32
	network      string
	start        int64
}

// New makes an exporter to a collector's UDP port; domain is the observation domain (RFC 7011 3.1).
func New(collector string, domain uint32) (*Exporter, error) {
	to, err := net.Dial("udp", collector)
	if err != nil {
		return nil, err
	}
	return &Exporter{to: to, domain: domain, before: map[key]record{}}, nil
}

// Close closes the socket.
func (e *Exporter) Close() error { return e.to.Close() }

// Export sends a record for each connection and requester with new packets since the last export. An error is that of the last message that failed: a
// collector that doesn't listen misses the others, too.
func (e *Exporter) Export(r *health.Report, now time.Time) (err error) {
	var all []record
	next := map[key]record{}
	for i := range r.Connections {
		c := &r.Connections[i]
		for j := range c.Requests {
			k, total := recordOf(c, &c.Requests[j])
			next[k] = total
			if added := since(&total, e.before[k]); added.packets > 0 {
				all = append(all, added)
			}
		}
	}
	e.before = next
	for _, m := range messages(all, uint32(now.Unix()), e.domain, e.sequence) {
		if _, failed := e.to.Write(m); failed != nil {
			err = failed
		}
	}
	e.sequence += uint32(len(all))
	return err
}

// recordOf is the record of the requests of one end, since the connection began.
func recordOf(c *health.Record, s *health.Side) (key, record) {
	from, to := &c.Ends[s.Requester&1], &c.Ends[s.Requester&1^1]
	r := record{
		src: from.IP, dst: to.IP, srcQP: from.QP, dstQP: to.QP, packets: s.Packets.Packets, bytes: s.Packets.Bytes,
		start: c.StartNS, end: c.StartNS + c.DurationNS, lostUp: s.LostUpstream, lostDown: s.LostDownstream, rnr: s.RNRNAKs, ce: s.CE, cnps: from.CNPs,
		outOfOrder: s.OutOfOrder, verdicts: uint64(len(c.Verdicts)), resent: map[string]uint64{},
	}
	for name, n := range s.Causes {
		r.resent[name] = n.Packets
	}
	for _, n := range s.NAKs {
		r.naks += n
	}
	if s.RTT != nil {
		r.rtt = s.RTT.P50NS
	}
	return key{r.src, r.dst, r.srcQP, r.dstQP, c.Network, c.StartNS}, r
}

// since is what was added to a record. A count that fell, as a cause was found to be another one, adds nothing.
func since(total *record, before record) record {
	r := *total
	r.resent = map[string]uint64{}
	for name, n := range total.resent {
		r.resent[name] = n - min(n, before.resent[name])
	}
	for _, c := range [...]struct {
		to   *uint64
		from uint64
	}{
		{&r.packets, before.packets}, {&r.bytes, before.bytes}, {&r.lostUp, before.lostUp}, {&r.lostDown, before.lostDown}, {&r.naks, before.naks},
		{&r.rnr, before.rnr}, {&r.ce, before.ce}, {&r.cnps, before.cnps}, {&r.outOfOrder, before.outOfOrder},
	} {
		*c.to -= min(*c.to, c.from)
	}
	if before.end != 0 {
		r.start = before.end
	}
	return r
}
