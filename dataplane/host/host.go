// Package host is the gateway as a host (RFC 1122): what it does with frames to its own addresses. It answers ARP requests, Neighbor
// Solicitations, echo requests and STAMP test packets, matches the replies to its own test packets, and reads what only a gateway gets:
// notifications to a proxy, and the Parameter Problems of hosts that don't know the Fast CNP option.
//
// A worker's stage classify gives it a Frame outside tunnels, with a buffer for a reply, and gets a Result:
//
//	Stage.Receive(*Frame) Result     a Verdict, what to count besides it (Event), the reply in Frame.Out, a round-trip time
//	Stage.Probe(*Frame, ...) Result  the next STAMP test packet
//	Stage.Accept(*Frame, known)      for the verdict Notification: the request that is in it, or why it is refused
//	Refused(*Frame)                  for the verdict ParameterProblem: the flow whose Fast CNP was refused
//	Requests                         a worker's requests of congested nodes, until their flows' next data packets
//	Refusals                         the hosts that get no Fast CNP
//
// The caller alone counts, frees and queues frames, applies the domain filter, and knows flows. Nothing here blocks, allocates or reads a
// clock. Workers share a Stage, whose state is atomic; a Requests is one worker's.
package host

import (
	"sync/atomic"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/keyhash"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// Frame is a received frame, or for Probe none, and what a worker knows besides.
type Frame struct {
	Port     int
	WAN      bool       // the port's role
	Address  packet.MAC // of the port
	Now      int64      // ns
	Ahead    int64      // from Now to Unix time, ns
	Gateway  *cnpgen.Gateway
	Session  *STAMPSession // of the port
	Reflects []packet.Addr // whose STAMP test packets are answered, a few at most
	Proxy    *Proxy        // nil: the gateway is no proxy

	Data   []byte
	Parsed *packet.Parsed

	Out []byte // for the reply, which leaves by the same port; empty: there is no buffer or no place in the queue
}

// Result is what becomes of a frame. The zero Result: it is forwarded.
type Result struct {
	Verdict Verdict
	Event   Event
	Size    int   // bytes of the reply in Out; 0: none
	RTT     int64 // a sample of the path's round-trip time, ns; above 0 if there is one
}

// Verdict is what becomes of a frame. It also says what kind of frame the reply is; a STAMP test packet in Out has the verdict Forward.
type Verdict uint8

// The first one forwards the frame, the last one drops it, all others consume it.
const (
	Forward Verdict = iota
	STAMP
	ARP
	NeighborSolicitation
	Echo
	ParameterProblem // see Refused
	Notification     // to the gateway as a proxy, see Accept
	Unwanted         // to the gateway, which has no use for it

	replies = Echo + 1
)

// Event is something to count besides the verdict.
type Event uint8

const (
	NoEvent       Event = iota
	AnswerLimited       // no answer is sent: the limits don't allow it
	AnswerNoPlace       // no answer is sent: Out is too short, or the frame comes from a group address
	STAMPLimited        // the same, of STAMP
	STAMPNoPlace
	AddressConflict // another host claims an address of the gateway
)

// Stage is the state that all workers share.
type Stage struct {
	Refusals Refusals

	ports      []port
	toScope    *ratelimit.Destinations // limits of answers, by scope and type
	fromSource *ratelimit.Destinations // limits of notifications to the gateway as a proxy, by source
	fromAll    atomic.Int64            // limit of all of them
}

// port is the state of a port.
type port struct {
	session session
	answers [replies]atomic.Int64 // limits

	_ [64]byte // no line shared with the next port
}

// New makes a stage for a number of ports, in zeroed memory from allocate.
func New(ports int, seed uint64, allocate func(bytes int) ([]byte, error)) (*Stage, error) {
	s := &Stage{ports: make([]port, ports)}
	for i := range s.ports {
		const odd, odder = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9 // so that the source port doesn't disclose the seed
		s.ports[i].session.source = dynamicPorts | uint16(keyhash.Fold(seed^odd, odder+2*uint64(i))&(1<<16-1-dynamicPorts))
	}
	keyhash.Spread(s.Refusals.seed[:], seed)
	for i, limits := range []struct {
		of **ratelimit.Destinations
		n  int
	}{{&s.fromSource, proxySources}, {&s.toScope, answeredScopes}} {
		memory, err := allocate(ratelimit.Size(limits.n))
		if err != nil {
			return nil, err
		}
		if *limits.of, err = ratelimit.New(memory, limits.n, seed+uint64(i)+1); err != nil { // each with another seed
			return nil, err
		}
	}
	return s, nil
}

// Receive processes a frame that isn't in a tunnel: a STAMP packet for the gateway, the Parameter Problem of a host that doesn't know the
// Fast CNP option, and for a proxy any frame to one of its addresses but plain RoCEv2 data, which no worker gives it: a check of each data
// packet would cost the fast path. All other frames are forwarded.
func (s *Stage) Receive(f *Frame) (r Result) {
	p := f.Parsed
	switch {
	case p.Proto == packet.ProtoUDP && f.WAN && s.stamp(f, &r):
		r.Verdict = STAMP
	case p.Proto == packet.ProtoICMPv6 && f.Gateway.HasIPv6 && p.Dst == f.Gateway.IPv6 && packet.ParameterProblem(f.Data, p):
		r.Verdict = ParameterProblem
	case f.Proxy != nil:
		r.Verdict = s.reached(f, &r)
	}
	return r
}

// reached is Receive for a proxy, whose addresses are reachable: it answers ARP, Neighbor Discovery and echo requests on each port, and
// drops what is for nobody. Other hosts' ARP and Neighbor Discovery is forwarded.
func (s *Stage) reached(f *Frame, r *Result) Verdict {
	p := f.Parsed
	switch {
	case p.EtherType == packet.EtherTypeARP:
		return s.arp(f, r)
	case p.Family == 0 || p.IPv4Mapped():
		return Forward
	case p.Proto == packet.ProtoICMPv6 && s.solicited(f, r):
		return NeighborSolicitation
	case !f.Proxy.Owns(p.Dst):
		return Forward
	case packet.Classify(f.Data, p, &f.Gateway.Code) == packet.ProxyNotification:
		return Notification
	case s.echo(f, r):
		return Echo
	}
	return Unwanted
}

// Answers of a type a second, to one scope and by a port: so a tenant's flood of requests leaves the others their answers, and echo requests
// can't make the gateway unreachable.
const (
	scopeAnswers = 1000
	portAnswers  = 16 * scopeAnswers
)

var scopeAnswerRate, portAnswerRate = ratelimit.PerSecond(scopeAnswers), ratelimit.PerSecond(portAnswers)

// answeredScopes is the number of scopes whose limits are kept at once.
const answeredScopes = 1024

// minFrame is the length of the shortest Ethernet frame without FCS (IEEE 802.3 3.2.8); some devices don't pad.
const minFrame = 60

// answer returns the place in Out for an answer of so many bytes, padded to the shortest frame; nil, with the Event, if there is none. A frame
// from a group address gets no answer.
func (s *Stage) answer(f *Frame, r *Result, to Verdict, size int) []byte {
	padded := max(size, minFrame)
	if padded > len(f.Out) || !packet.SourceMAC(f.Data).Unicast() {
		r.Event = AnswerNoPlace
		return nil
	}
	limit := to
	if to == NeighborSolicitation {
		limit = ARP // together
	}
	scope := packet.Host{Addr: packet.Addr{Lo: uint64(limit)}, Scope: packet.ScopeOf(uint16(f.Port), f.Parsed)}
	if s.toScope.Allow(scopeAnswerRate, scope, f.Now) != ratelimit.Allowed || !portAnswerRate.Allow(&s.ports[f.Port].answers[limit], f.Now) {
		r.Event = AnswerLimited
		return nil
	}
	clear(f.Out[min(size, padded):padded])
	r.Size = padded
	return f.Out[:padded]
}
