package rdma

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
)

const ms = int64(1e6)

// overGateway is traffic between an endpoint in the fabric and one behind the WAN, whose queue of 1 Gbit/s may be too short.
type overGateway struct {
	queue     uint64 // bytes of each port's queue
	op        endpoint.Op
	reader    bool // the endpoint behind the WAN asks
	both      bool // each of them does
	selective bool
	window    int64
	lossy     int // the WAN loses one packet in so many; 0: none
}

// ask lets the worker fill a snapshot.
func ask(t *testing.T, rig *testkit.Rig, s *dataplane.Snapshot) {
	t.Helper()
	w := rig.Plane.Worker(0)
	if !w.Ask(s) {
		t.Fatal("the worker has another request")
	}
	for w.Asked(s) {
		w.Step()
	}
}

// frame is one on its way.
type frame struct {
	at   int64
	data []byte
}

// run moves the traffic, and returns the report, what the gateway dropped, and what the WAN lost.
func (o *overGateway) run(t *testing.T) (r *health.Report, dropped, lost uint64) {
	t.Helper()
	addresses := [2]packet.Addr{packet.AddrFrom(netip.MustParseAddr("10.1.0.1")), packet.AddrFrom(netip.MustParseAddr("10.9.0.9"))}
	var hosts [2]*endpoint.Host
	for i := range hosts {
		var err error
		if hosts[i], err = endpoint.New(endpoint.Config{
			Addr: addresses[i], MAC: [6]byte{2, 0, 0, 0, 0, byte(i + 1)}, LineRate: 10e9, MTU: 1024, Window: o.window, Timeout: 20 * ms, Retries: 1000, SelectiveRepeat: o.selective,
			AckEvery: 4, Payload: endpoint.PayloadReal,
		}); err != nil {
			t.Fatal(err)
		}
	}
	atA, atB, err := endpoint.Connect(hosts[0], hosts[1], [2]uint32{0xfffff0, 100})
	if err != nil {
		t.Fatal(err)
	}
	static, err := pairing.NewQPMap([]pairing.QPPair{{Source: addresses[0], Destination: addresses[1], SourceQP: atA, DestinationQP: atB}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	rig := testkit.New(t, testkit.Setup{Static: static, Rate: 1e9, Capacity: o.queue, Frames: 1 << 14, Buffers: 1 << 14, Change: func(c *dataplane.Config) { c.Followed = 8 }})
	rig.Inject(t, 0, testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", Opcode: packet.UDSendOnly, DestQP: packet.GSIQP}.Frame())
	rig.Settle()
	rig.Advance(2e9) // it begins to inspect a second after its first frame
	rig.Settle()
	rig.Take(0)
	rig.Take(1)
	for i, qp := range []uint32{atA, atB} {
		if o.both || (i == 1) == o.reader {
			if err := hosts[i].Start(endpoint.Stream{QP: qp, Op: o.op, Bytes: 1 << 17, Messages: 20}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var recording *health.Recording
	var before health.Connection // when it began
	random := rand.New(rand.NewPCG(1, 2))
	var wan [2][]frame // to the gateway, and from it to the host
	var out [endpoint.MaxFrame]byte
	for busy, step := true, 0; busy; step++ {
		if step > 2_000_000 {
			t.Fatalf("the traffic doesn't end: %+v %+v", hosts[0].Counters(), hosts[1].Counters())
		}
		now := rig.Now
		busy = false
		for i, h := range hosts {
			_, due := h.Due()
			busy = busy || due
			for range 8 {
				n, length := h.Next(now, out[:])
				if length == 0 {
					break
				}
				if b := slices.Clone(out[:n]); i == 0 {
					rig.Inject(t, 0, b)
				} else {
					wan[0] = append(wan[0], frame{now + 2*ms, b})
				}
			}
		}
		for way := range wan {
			for len(wan[way]) > 0 && wan[way][0].at <= now {
				f := wan[way][0]
				wan[way] = wan[way][1:]
				switch {
				case o.lossy > 0 && way == 1 && random.IntN(o.lossy) == 0:
					lost++
				case way == 0:
					rig.Inject(t, 1, f.data)
				default:
					hosts[1].Receive(now, f.data, len(f.data))
				}
			}
			busy = busy || len(wan[way]) > 0
		}
		rig.Settle()
		if step == 500 { // of the connection's packets
			part := &dataplane.HealthCopy{Connections: make([]health.Connection, 0, 8)}
			ask(t, rig, &dataplane.Snapshot{Health: part})
			before = part.Connections[0]
			recording = health.NewRecording(before.Ends, 1e15)
			for _, busy := range []bool{false, true} { // one at a time
				r := &dataplane.HealthRecording{Recording: recording}
				if busy {
					r.Recording = health.NewRecording(before.Ends, 1)
				}
				if ask(t, rig, &dataplane.Snapshot{Recording: r}); r.Busy != busy || !recording.Begun() {
					t.Fatalf("busy: %v; begun: %v", r.Busy, recording.Begun())
				}
			}
		}
		for _, s := range rig.Take(0) {
			hosts[0].Receive(now, s.Octets, len(s.Octets))
		}
		for _, s := range rig.Take(1) {
			wan[1] = append(wan[1], frame{now + 2*ms, s.Octets})
		}
		busy = busy || rig.Plane.Worker(0).Queued() > 0
		rig.Advance(4000)
	}
	for port := range 2 {
		dropped += rig.Count(port, counters.DroppedQueueOctets) + rig.Count(port, counters.DroppedQueueFrames)
	}
	b := health.Builder{Ports: []string{"dc", "line"}}
	part := &dataplane.HealthCopy{Connections: make([]health.Connection, 0, 8)}
	ask(t, rig, &dataplane.Snapshot{Recording: &dataplane.HealthRecording{Recording: recording, End: true}})
	ask(t, rig, &dataplane.Snapshot{Health: part})
	checkRecording(t, recording, &before, &part.Connections[0])
	for i := range part.Connections {
		b.Add(&part.Connections[i], "")
	}
	rig.Drain()
	rig.Close(t)
	return b.Report(nil, 0), dropped, lost
}

// checkRecording: a recording that isn't full has all packets of either end's requests, as the counts have them.
func checkRecording(t *testing.T, r *health.Recording, before, after *health.Connection) {
	t.Helper()
	for end := range 2 {
		got := map[string]uint64{}
		trace := r.Trace(end)
		for _, p := range trace.Points {
			got[p.Kind] += p.Packets
		}
		was, is := &before.Half[end].Counts, &after.Half[end].Counts
		for _, c := range []struct {
			what      string
			kinds     []string
			was, is   uint64
			undecided uint64 // only at the end
		}{
			{"requests", []string{health.PointRequest, health.PointAgain, health.PointLate, health.PointTwice}, was.Requests.Packets, is.Requests.Packets, 0},
			{"sent again", []string{health.PointAgain}, was.AgainRequests.Packets, is.AgainRequests.Packets, 1},
			{"NAKs", []string{health.PointNAK}, was.NAKs[0], is.NAKs[0], 0},
			{"dropped", []string{health.PointDropped}, was.DroppedHere[0] + was.DroppedHere[1], is.DroppedHere[0] + is.DroppedHere[1], 0},
		} {
			sum := uint64(0)
			for _, k := range c.kinds {
				sum += got[k]
			}
			if want := c.is - c.was; !r.Full() && (sum > want || sum+c.undecided < want) || r.Full() && sum > want {
				t.Errorf("end %d, %s: the trace has %d, the counts %d", end, c.what, sum, want)
			}
		}
		if len(trace.Points) > health.MostPoints {
			t.Errorf("%d points", len(trace.Points))
		}
	}
}

// TestOwnDrops: what a gateway's queue drops is named as that and not blamed on the WAN; what the WAN loses is. No advice is for the owner of a capture.
func TestOwnDrops(t *testing.T) {
	const short, long = 64 << 10, 16 << 20
	for _, c := range []struct {
		name string
		overGateway
		own, wan bool
	}{
		{"a short queue", overGateway{queue: short, window: 1 << 20, op: endpoint.Write}, true, false},
		{"a short queue, selective repeat", overGateway{queue: short, window: 1 << 20, op: endpoint.Write, selective: true}, true, false},
		{"a short queue of READ responses", overGateway{queue: short, op: endpoint.Read, reader: true, window: 1 << 17}, true, false},
		{"a short queue of requests and ACKs", overGateway{queue: short, window: 1 << 18, op: endpoint.Send, both: true}, true, false},
		{"a long queue", overGateway{queue: long, window: 1 << 20, op: endpoint.Write}, false, false},
		{"a long queue, a lossy WAN", overGateway{queue: long, window: 1 << 20, op: endpoint.Write, lossy: 300}, false, true},
		{"a short queue, a lossy WAN", overGateway{queue: short, window: 140_000, op: endpoint.Write, lossy: 100}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, dropped, lost := c.run(t)
			named := map[string]bool{}
			for _, v := range r.Verdicts {
				t.Log(v.Name, v.Subject, v.Evidence, v.Advice, v.Commands)
				named[v.Name] = true
				if strings.Contains(v.Advice+strings.Join(v.Commands, " "), "tcpdump") {
					t.Errorf("%s advises %q, %q", v.Name, v.Advice, v.Commands)
				}
			}
			if named[health.GatewayDrops] != c.own || named[health.LossDownstream] != c.wan || named[health.LossUpstream] || named[health.AckLoss] || named[health.Incomplete] {
				t.Errorf("verdicts %v; the gateway dropped %d, the WAN lost %d", named, dropped, lost)
			}
			if s := r.Summary; s.DroppedHere != dropped || s.LostDownstream > lost+dropped/100 || c.own != (dropped > 0) {
				t.Errorf("%d dropped here, %d lost behind; want %d and at most %d", s.DroppedHere, s.LostDownstream, dropped, lost)
			}
		})
	}
}
