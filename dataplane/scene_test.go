package dataplane_test

import (
	"bytes"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// The queues of a scene: above 2,000 octets packets are marked, above 4,000 senders are notified.
const (
	kMin, kMax = 2000, 4000
	fabric     = 0
	wan        = 1
	sourceQP   = 55
)

func address(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

func grant(p string, accepts ...packet.Notification) prefix.Entry[congestion.Preference] {
	return prefix.Entry[congestion.Preference]{Prefix: netip.MustParsePrefix(p), Value: congestion.Prefer(accepts...)}
}

// notifying is a policy that notifies every sender of the grants, in any format, as often as it can.
func notifying(grants ...prefix.Entry[congestion.Preference]) *dataplane.Policy {
	p := testkit.DefaultPolicy(2)
	for i := range p.Ports {
		p.Ports[i].Thresholds = congestion.Thresholds{KMin: kMin, KMax: kMax}
		p.Ports[i].Ladder = []congestion.Rung{{Action: congestion.RateReduce, Percent: 30}}
	}
	p.Who = &congestion.Policy{
		Enabled: [packet.SentNotifications]bool{packet.FastCNP: true, packet.LongHaulCNP: true, packet.LongHaulCNPICMPv6: true}, HasIPv4: true, HasIPv6: true,
		Endpoints: prefix.New(grants),
	}
	p.Build = cnpgen.Gateway{
		IPv4: address("192.0.2.1"), IPv6: address("2001:db8::1"), HasIPv4: true, HasIPv6: true, DSCP: 48,
		Code: packet.DefaultCodePoints, ICRCExtensionHeaders: true,
	}
	return p
}

// byAnything grants the senders of the tests every format, Fast CNP first.
var byAnything = []prefix.Entry[congestion.Preference]{
	grant("fd00:18::/32", packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6),
	grant("198.18.0.0/16", packet.FastCNP, packet.LongHaulCNP, packet.LongHaulCNPICMPv6),
}

// knownQPs gives the flows to DestQP 100 to 109 source QP 55 to 64.
func knownQPs(t testing.TB) *pairing.QPMap {
	t.Helper()
	var pairs []pairing.QPPair
	for n := range uint32(10) {
		for _, ends := range [][2]string{{sender4, receiver4}, {sender6, receiver6}} {
			pairs = append(pairs, pairing.QPPair{Source: address(ends[0]), Destination: address(ends[1]), SourceQP: sourceQP + n, DestinationQP: 100 + n})
		}
	}
	m, err := pairing.NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scene is a gateway in front of two slow lines, each with a frame on it: nothing leaves until time goes on.
type scene struct {
	*testkit.Rig
	t *testing.T
}

func newScene(t *testing.T, p *dataplane.Policy, change func(*testkit.Setup)) *scene {
	t.Helper()
	s := testkit.Setup{Rate: 1_000_000, Policy: p, Static: knownQPs(t), Capacity: 1_000_000, Frames: 4096, Buffers: 8192}
	if change != nil {
		change(&s)
	}
	r := &scene{testkit.New(t, s), t}
	for port := range 2 * max(1, s.Pairs) {
		r.Inject(t, port, ethernet(0x88cc))
	}
	r.Settle()
	for port := range 2 * max(1, s.Pairs) {
		if len(r.Take(port)) != 1 {
			t.Fatal("the line isn't taken")
		}
	}
	return r
}

// data is a data packet of a flow from the fabric, 1000 octets long.
func data(v6 bool, flow uint32) testkit.RoCE {
	r := testkit.RoCE{Src: sender4, Dst: receiver4, ECN: packet.ECT0, SrcPort: 0xc123, DestQP: 100 + flow, Size: 1000}
	if v6 {
		r.Src, r.Dst = sender6, receiver6
	}
	return r
}

// arrive lets frames come in by the fabric port, one after another, at this moment.
func (s *scene) arrive(frames ...[]byte) { s.arriveAt(fabric, frames...) }

func (s *scene) arriveAt(port int, frames ...[]byte) {
	s.t.Helper()
	for _, f := range frames {
		s.Inject(s.t, port, f)
		s.Settle()
	}
}

// fill lets n data packets of a flow come in.
func (s *scene) fill(n int, f testkit.RoCE) {
	s.t.Helper()
	for range n {
		s.arrive(f.Frame())
	}
}

// suppressed is the fabric port's count of each reason, by name, without the zeros.
func (s *scene) suppressed(port int) map[string]uint64 {
	out := map[string]uint64{}
	for n := counters.SuppressedFirst; n < counters.Counters; n++ {
		if v := s.Count(port, n); v > 0 {
			out[counters.Catalogue[n].Value] = v
		}
	}
	return out
}

func (s *scene) wantSuppressed(want map[string]uint64) {
	s.t.Helper()
	if got := s.suppressed(fabric); !maps.Equal(got, want) {
		s.t.Errorf("suppressed %v, expected %v", got, want)
	}
	if got := s.suppressed(wan); len(got) != 0 {
		s.t.Errorf("suppressed %v at the WAN port", got)
	}
}

// finish lets all leave, checks the sums, and returns the notifications, in order.
func (s *scene) finish() (notes []testkit.Sent) {
	s.t.Helper()
	s.Drain()
	for port := range 2 {
		for _, f := range s.Take(port) {
			switch {
			case !f.Built:
			case port != fabric:
				s.t.Errorf("a notification left by port %d", port)
			default:
				notes = append(notes, f)
			}
		}
	}
	sent := uint64(0)
	for n := counters.SentFirst; n < counters.ObservedFirst; n++ {
		sent += s.Count(fabric, n)
	}
	if sent != uint64(len(notes)) {
		s.t.Errorf("%d notifications counted, %d sent", sent, len(notes))
	}
	s.wantRecords(notes)
	s.Close(s.t)
	return notes
}

// wantRecords checks that the worker has a record of each notification, in order, with what it keeps of the frame, and the flow that it is about.
func (s *scene) wantRecords(notes []testkit.Sent) {
	s.t.Helper()
	records := s.records()
	for i, n := range notes {
		k := slices.IndexFunc(records, func(r notify.NotificationRecord) bool {
			return int(r.Length) == len(n.Octets) && bytes.HasPrefix(n.Octets, r.Captured())
		})
		if k < 0 {
			s.t.Fatalf("notification %d has no record: % x", i, n.Octets)
		}
		r := &records[k]
		_, p := kindOf(n)
		if r.Outcome != counters.Emitted || int(r.In) != fabric || int(r.Out) != wan || r.To != p.Dst || int(r.Length) != len(n.Octets) ||
			r.Key.Src != p.Dst && r.Format != packet.ProxyNotification {
			s.t.Errorf("notification %d to %v has the record %+v", i, p.Dst, r)
		}
		records = records[k+1:]
	}
}

// records are those that worker 0 has of what it sent, or only observed.
func (s *scene) records() []notify.NotificationRecord {
	all := make([]notify.NotificationRecord, 1024)
	n, _ := s.Plane.Worker(0).Notifications().Read(0, all)
	return all[:n]
}

// kindOf returns the kind of a notification, and its headers.
func kindOf(f testkit.Sent) (packet.Notification, packet.Parsed) {
	var p packet.Parsed
	packet.Parse(f.Octets, f.Length, &p)
	return packet.Classify(f.Octets, &p, &packet.DefaultCodePoints), p
}

// decoded is what a receiver reads in a notification.
func decoded(t testing.TB, n testkit.Sent) (d cnpdec.Notification) {
	t.Helper()
	_, p := kindOf(n)
	r := cnpdec.Receiver{Code: packet.DefaultCodePoints, Extension: packet.LongHaulCNP}
	if reason := r.Decode(n.Octets, &p, &d); reason != cnpdec.Accepted {
		t.Fatalf("refused: %v", reason)
	}
	return d
}

func perSecond(n uint64) ratelimit.Rate { return ratelimit.PerSecond(n) }
