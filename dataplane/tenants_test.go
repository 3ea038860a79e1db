package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/pairing"
)

// Two tenants with the same addresses, QPs, ports and PSNs share a gateway, in two VLANs, tunnels or pairs of ports. What one does must change nothing for the
// other. The test compares the frames of the first tenant that leave, with their bytes and times, in two runs: the second tenant acts, or is silent.
//
// What tenants share on purpose must not make a difference. The lines take no time, the tenants have different traffic classes, and act at
// different polls. The gateway polls at fixed times, as its work per poll is bounded and its hands move on by polls.

const (
	tenantTicks = 1000  // of a run; each tenant acts once a tick
	pollTime    = 5_000 // ns; two polls a tick
	tenantDSCP  = 8     // of the first tenant, whose class has it alone
)

// places are two places of a tenant each: what the frames' Ethernet header continues with, and the scope in the maps of QPs.
type places struct {
	name   string
	tags   [2]string // VLAN tags
	vni    [2]uint32 // of a VXLAN tunnel around a frame without tags; 0: none
	gre    [2]uint32 // the key of a GRE tunnel around it
	pairs  bool      // the second tenant is behind the second pair of ports
	scopes [2]packet.Scope
}

// inTags is the scope of one or two VLAN tags.
func inTags(tags ...string) packet.Scope {
	var t [2]packet.Tag
	for i, tag := range tags {
		t[i] = packet.MakeTag(binary.BigEndian.Uint16([]byte(tag)), binary.BigEndian.Uint16([]byte(tag)[2:]))
	}
	return packet.ScopeInVLAN(0, t[0], t[1])
}

const (
	cTag10, cTag20, sTag10 = "\x81\x00\x00\x0a", "\x81\x00\x00\x14", "\x88\xa8\x00\x0a"
)

func vniScope(id uint32) packet.Scope {
	return packet.ScopeInTunnel(0, packet.Tunnel{Kind: packet.VXLAN, ID: id}, 0)
}

var allPlaces = []places{
	{name: "VLANs", tags: [2]string{cTag10, cTag20}, scopes: [2]packet.Scope{inTags(cTag10), inTags(cTag20)}},
	{name: "VNIs", vni: [2]uint32{10, 20}, scopes: [2]packet.Scope{vniScope(10), vniScope(20)}},
	{name: "a VLAN, and two tags", tags: [2]string{cTag10, sTag10 + cTag10}, scopes: [2]packet.Scope{inTags(cTag10), inTags(sTag10, cTag10)}},
	{name: "C-VLANs of an S-VLAN", tags: [2]string{sTag10 + cTag10, sTag10 + cTag20}, scopes: [2]packet.Scope{inTags(sTag10, cTag10), inTags(sTag10, cTag20)}},
	{name: "C-VLAN and S-VLAN", tags: [2]string{cTag10, sTag10}, scopes: [2]packet.Scope{inTags(cTag10), inTags(sTag10)}},
	{name: "a VLAN and a VNI", tags: [2]string{cTag10, ""}, vni: [2]uint32{0, 10}, scopes: [2]packet.Scope{inTags(cTag10), vniScope(10)}},
	{name: "a VLAN, and the same in VXLAN", tags: [2]string{cTag10, cTag10}, vni: [2]uint32{0, 10}, scopes: [2]packet.Scope{inTags(cTag10), vniScope(10)}},
	{name: "VXLAN and GRE", vni: [2]uint32{10, 0}, gre: [2]uint32{0, 10}, scopes: [2]packet.Scope{vniScope(10), packet.ScopeInTunnel(0, packet.Tunnel{Kind: packet.GRE, ID: 10}, 0)}},
	{name: "pairs of ports", tags: [2]string{cTag10, cTag10}, pairs: true, scopes: [2]packet.Scope{inTags(cTag10), inTags(cTag10)}},
	{name: "pairs of ports, no tags", pairs: true},
}

// tenant draws the actions of a tenant.
type tenant struct {
	t      *testing.T
	second bool
	in     *places
	random splitmix.Rand
	psn    [2][10]uint32 // of the data that a flow sends, by direction
	policy *dataplane.Policy
}

// number is the tenant's, 0 or 1.
func (x *tenant) number() int {
	if x.second {
		return 1
	}
	return 0
}

// owners are the fifth bytes of the MAC addresses of the tenants' hosts and tunnels.
var owners = [2]byte{0xa1, 0xa2}

// wrap puts a frame into the tenant's VLAN or tunnel.
func (x *tenant) wrap(frame []byte, port int) []byte {
	n, dscp := x.number(), uint8(tenantDSCP)
	if x.second {
		dscp = 0
	}
	b := append(append(bytes.Clone(frame[:12]), x.in.tags[n]...), frame[12:]...)
	if vni, key := x.in.vni[n], x.in.gre[n]; vni != 0 || key != 0 {
		if b = testkit.VXLAN(b, vni, 0, port == wan); key != 0 {
			b = inGRE(b, key)
		}
		b[packet.EthernetLen+1] = dscp << 2
		testkit.SetECN(b, packet.EthernetLen, packet.ECT0)
	}
	b[4], b[10] = owners[n], owners[n]
	return b
}

// inGRE makes a VXLAN frame one of GRE.
func inGRE(b []byte, key uint32) []byte {
	const l3, l4 = packet.EthernetLen, packet.EthernetLen + packet.IPv4Len
	gre := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b[:l4:l4], 0x2000_6558), key)
	b = append(gre, b[l4+packet.UDPLen+8:]...)
	b[l3+9] = packet.ProtoGRE
	binary.BigEndian.PutUint16(b[l3+2:], uint16(len(b)-l3))
	return b
}

// ofFirst reports whether a frame that left is of the first tenant.
func ofFirst(frame []byte) bool { return frame[4] == owners[0] }

func (x *tenant) below(n int) int { return int(x.random.Below(uint64(n))) }

// flow is a packet of a flow, from the fabric or the WAN. Flows 7 to 9 have a sender behind a proxy; 5 and 6 have the UDP ports of Linux, and no
// map has their QPs.
func (x *tenant) flow(port int, v6 bool, n int) testkit.RoCE {
	f := data(v6, uint32(n))
	f.DSCP = tenantDSCP
	if x.second {
		f.DSCP = 0
	}
	if n >= 7 {
		f.Src = "198.18.9.1"
		if v6 {
			f.Src = "fd00:18:9::1"
		}
	}
	if n == 5 || n == 6 {
		product := uint64(100+n) * uint64(sourceQP+n)
		f.SrcPort = uint16(product&0x3fff^product>>14) | 0xc000
	}
	if port == wan {
		f.Src, f.Dst, f.DestQP = f.Dst, f.Src, sourceQP+uint32(n)
	}
	return f
}

// act draws an action: frames that come in by a port, and the worker that receives them.
func (x *tenant) act() (worker, port int, frames [][]byte) {
	worker = x.below(2)
	v6, n := x.below(2) == 0, x.below(10)
	port = x.below(2)
	kind := x.below(20)
	if kind < 8 {
		for range 1 + x.below(12) {
			f := x.flow(port, v6, n)
			f.PSN, f.Size = x.psn[port][n], 1000
			x.psn[port][n]++
			frames = append(frames, f.Frame())
		}
	} else {
		var frame []byte
		port, frame = x.single(kind, port, v6, n)
		frames = append(frames, frame)
	}
	if x.second && x.below(3) == 0 {
		port, frames = x.forged(port, frames)
	}
	for i := range frames {
		frames[i] = x.wrap(frames[i], port)
	}
	return worker, port, frames
}

// single is one frame of a kind.
func (x *tenant) single(kind, port int, v6 bool, n int) (from int, frame []byte) {
	switch f := x.flow(port, v6, n); kind {
	case 8, 9, 10:
		f.Opcode, f.PSN, f.Size = packet.RCAcknowledge, x.psn[1-port][n]-1, 0
		return port, f.Frame()
	case 11, 12:
		f.Opcode, f.Size = packet.CNP, 0
		return port, f.Frame()
	case 13:
		return port, x.manage(port, v6, n)
	}
	cause := x.flow(fabric, v6, n).Frame()
	var p packet.Parsed
	packet.Parse(cause, uint32(len(cause)), &p)
	target, _ := cnpgen.TargetOf(cause, &p)
	out := make([]byte, cnpgen.MaxLen)
	size := 0
	l := cnpgen.LongHaul{SourceQP: sourceQP + uint32(n), Level: 100, Action: cnpgen.Action(x.below(3)), Parameter: uint16(20 + x.below(20))}
	if l.Action == cnpgen.Notify {
		l.Parameter = 0
	}
	switch kind {
	case 14:
		if v6 {
			size, _ = cnpgen.FastCNP(out, &target, &far, packet.IOAMTrace{})
		} else {
			size = cnpgen.LongHaulCNP(out, &target, &far, &l, nil)
		}
	case 15:
		size = cnpgen.LongHaulCNP(out, &target, &far, &l, nil)
	case 16:
		size = cnpgen.PPFCNotification(out, &target, &far, &cnpgen.PPFC{Duration: 20})
	case 17:
		return wan, asking(x.t, cause, ownOf(v6), uint8(x.below(8)))
	case 18:
		size = toProxy(out, &target, cause, &p)
	case 19:
		if !v6 {
			return wan, asking(x.t, cause, ownOf(v6), 7)
		}
		size, _ = cnpgen.FastCNP(out, &target, &x.policy.Build, packet.IOAMTrace{})
		return fabric, refusalOf(out[:size])
	}
	return wan, out[:size]
}

// manage is a message of RDMA-CM.
func (x *tenant) manage(port int, v6 bool, n int) []byte {
	f := x.flow(port, v6, n)
	m := packet.CM{Attribute: []packet.CMAttribute{packet.CMREQ, packet.CMREP, packet.CMDREQ, packet.CMREJ}[x.below(4)], LocalComm: uint32(1 + n), RemoteComm: uint32(1 + n),
		QPN: []uint32{sourceQP, 100}[port] + uint32(n), PSN: x.psn[1-port][n], LocalGID: address(f.Src), RemoteGID: address(f.Dst)}
	f.Opcode, f.DestQP, f.SourceQP, f.Size = packet.UDSendOnly, packet.GSIQP, packet.GSIQP, 0
	f.Size = len(f.Frame()) + packet.MADLen
	b := f.Frame()
	var p packet.Parsed
	packet.Parse(b, uint32(len(b)), &p)
	m.Put(b[p.Payload:])
	packet.PutICRC(b, int(p.L3), int(p.BTH), int(p.ICRC), true)
	return b
}

// forged changes frames, or the port that they come in by. None gets the first tenant's class.
func (x *tenant) forged(port int, frames [][]byte) (int, [][]byte) {
	if x.below(3) == 0 {
		return 1 - port, frames
	}
	for i, f := range frames {
		b := bytes.Clone(f)
		for range 1 + x.below(3) {
			b[packet.EthernetLen+x.below(min(len(b)-packet.EthernetLen, 100))] = byte(x.below(256))
		}
		var p packet.Parsed
		packet.Parse(b, uint32(len(b)), &p)
		if p.BTH != 0 && x.below(2) == 0 {
			packet.PutICRC(b, int(p.L3), int(p.BTH), int(p.ICRC), true)
		}
		if p.DSCP != tenantDSCP {
			frames[i] = b
		}
	}
	return port, frames
}

// tenantPolicy has all features on.
func tenantPolicy(t *testing.T, in *places) *dataplane.Policy {
	p := proxying(notifying(grant("fd00:18::/32", packet.FastCNP, packet.StandardCNP, packet.LongHaulCNP),
		grant("198.18.0.0/16", packet.LongHaulCNP, packet.StandardCNP)))
	for f := range p.Who.Enabled {
		p.Who.Enabled[f] = true
	}
	p.Proxy = host.NewProxy(netip.MustParseAddr(own4), netip.MustParseAddr(own6), netip.Addr{}, prefixes(congested4+"/32", congested6+"/128"), 5000, 0)
	p.Proxies = behind(t, "198.18.9.0/24", "198.18.250.9", "fd00:18:9::/48", "fd00:18::9:9")
	if in.vni[0] != 0 {
		p.Proxies = behind(t, "198.18.0.0/16", "198.18.250.9", "fd00:18::/32", "fd00:18::9:9")
	}
	p.PerDestination, p.PerProxy = perSecond(300), perSecond(300)
	p.Domain = stage.NewDomain(prefixes("0.0.0.0/0", "::/0"), prefixes("192.0.2.77/32", "2001:db8::77/128", congested4+"/32", congested6+"/128"), false)
	for port := range p.Ports {
		p.Ports[port].Pacing = &congestion.Pacing{HostRate: 10e9, Floor: 1e9, Keep: 20, Interval: 50_000, Recovery: 100_000_000_000_000}
		p.Ports[port].PerFlow, p.Ports[port].RTT = 30_000, 1e9
	}
	p.Ports[fabric].Thresholds = congestion.Thresholds{KMin: 1 << 40, KMax: 1 << 41}
	p.Ports[wan].Enforce = senders("198.18.0.0/15", "fd00:18::/32")
	if in.pairs {
		p.Ports = append(p.Ports, p.Ports...)
	}
	return p
}

// scoped gives the flows below n their source QPs, in the scopes of both tenants.
func scoped(t *testing.T, in *places, from, to int) *pairing.QPMap {
	var pairs []pairing.QPPair
	for i, scope := range in.scopes {
		if i > 0 && scope == in.scopes[0] {
			break
		}
		for n := from; n < to; n++ {
			for _, v6 := range []bool{false, true} {
				f := (&tenant{}).flow(fabric, v6, n)
				pairs = append(pairs, pairing.QPPair{InScope: true, Scope: scope, Source: address(f.Src), Destination: address(f.Dst), SourceQP: sourceQP + uint32(n), DestinationQP: f.DestQP})
			}
		}
	}
	m, err := pairing.NewQPMap(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// left is a frame of the first tenant that left.
type left struct {
	worker, port int
	built        bool
	now          int64
	octets       string
}

// tenantsRun makes one run, without learning which scopes belong together if they are stated, and returns the first tenant's frames that left, and the number of actions of the second one.
func tenantsRun(t *testing.T, seed uint64, in *places, stated, acts bool) (out []left, actions int) {
	p := tenantPolicy(t, in)
	r := testkit.New(t, testkit.Setup{Workers: 2, Rate: 1e18, Capacity: 1e9, Pairs: len(p.Ports) / 2, Frames: 1 << 14, Buffers: 1 << 13, Flows: 4096, Policy: p, Static: scoped(t, in, 0, 3), Change: func(c *dataplane.Config) {
		c.Paired, c.StatedScopes = 4096, stated
		for i := range c.Ports {
			c.Ports[i].Paced, c.Ports[i].Classes = 8e6, 2
			for dscp := range c.Ports[i].ClassOf {
				c.Ports[i].ClassOf[dscp] = 1
			}
			c.Ports[i].ClassOf[tenantDSCP] = 0
		}
	}})
	r.Plane.Pairing().SetHints(scoped(t, in, 3, 5))
	first := &tenant{t: t, in: in, random: splitmix.New(seed, 1), policy: p}
	second := &tenant{t: t, in: in, random: splitmix.New(seed, 2), policy: p, second: true}
	for tick := range tenantTicks + 100 {
		for _, x := range []*tenant{first, second} {
			if tick < tenantTicks && (acts || !x.second) {
				worker, port, frames := x.act()
				for _, f := range frames {
					if x.second && in.pairs {
						r.InjectAt(t, worker, port+2, f)
					} else {
						r.InjectAt(t, worker, port, f)
					}
				}
				if x.second {
					actions++
				}
			}
			r.Advance(pollTime)
			r.Plane.Worker(0).Step()
			r.Plane.Worker(1).Step()
		}
	}
	for worker, sent := range r.Sent {
		for _, s := range sent {
			if ofFirst(s.Octets) {
				out = append(out, left{worker, s.Port, s.Built, s.Now, string(s.Octets)})
			}
		}
	}
	tenantsUsed.add(r)
	r.Drain()
	r.Close(t)
	return out, actions
}

// tenantRuns is how many runs TestTenants makes of each pair of places.
const tenantRuns = 2*effort.Short + effort.Race + 200*effort.Long

// TestTenants: whatever the second tenant does, the first one's frames leave at the same times, with the same bytes, and so do the notifications about them.
func TestTenants(t *testing.T) { independent(t, false) }

// TestTenantsStated: the same with pairing.learn_scopes: never, which is for tenants with the same addresses.
func TestTenantsStated(t *testing.T) { independent(t, true) }

func independent(t *testing.T, stated bool) {
	for i := range allPlaces {
		in := &allPlaces[i]
		t.Run(in.name, func(t *testing.T) {
			tenantsUsed = used{}
			all, frames, built := 0, 0, 0
			for seed := range uint64(tenantRuns) {
				alone, _ := tenantsRun(t, seed, in, stated, false)
				with, actions := tenantsRun(t, seed, in, stated, true)
				all, frames = all+actions, frames+len(alone)
				for i := range max(len(alone), len(with)) {
					if i >= len(alone) || i >= len(with) || alone[i] != with[i] {
						t.Fatalf("seed %d: %d frames left, %d while the other tenant acted; frame %d differs:\n%v\n%v", seed, len(alone), len(with), i, describe(alone, i), describe(with, i))
					}
					if alone[i].built {
						built++
					}
				}
			}
			t.Logf("%d actions; %d frames left, %d of them notifications; %v", all, frames, built, tenantsUsed)
			tenantsUsed.check(t, in.vni[0] != 0)
		})
	}
}

func describe(all []left, i int) string {
	if i >= len(all) {
		return "none"
	}
	f := &all[i]
	return fmt.Sprintf("worker %d, port %d, built %v, at %d: % x", f.worker, f.port, f.built, f.now, f.octets[:min(len(f.octets), 120)])
}

// used counts what happened in the runs, by metric and label: a test in which nothing is paced or refused would prove nothing.
type used map[string]uint64

var tenantsUsed used

func (u used) add(r *testkit.Rig) {
	for port := range 2 {
		for n := range counters.Counters {
			if v := r.Count(port, n); v > 0 {
				u[counters.Catalogue[n].Name+"{"+counters.Catalogue[n].Value+"}"] += v
			}
		}
	}
}

func (u used) check(t *testing.T, inVNI bool) {
	names := []string{"paced_packets_total{}", "pace_reductions_total{}", "notifications_fast_cnp_refused_total{}", "notifications_suppressed_total{destination-limit}",
		"notifications_sent_total{fast-cnp}", "notifications_sent_total{standard-cnp}", "notifications_sent_total{long-haul-cnp}", "notifications_enforced_total{slow-down}",
		"notifications_enforced_total{pause}", "proxy_notifications_accepted_total{}", "notifications_sent_total{proxy-notification}"}
	if inVNI {
		names = names[len(names)-1:]
	}
	for _, name := range names {
		if u[name] == 0 {
			t.Errorf("%s is 0: not what was to be tested", name)
		}
	}
}
