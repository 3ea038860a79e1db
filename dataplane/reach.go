package dataplane

import (
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// This file makes the gateway's addresses reachable while it is a proxy: it answers ARP, Neighbor Discovery and echo requests on each port,
// and drops what is for nobody. Without a ProxyNode nothing of this happens.

// answerKind is a kind of answers with a limit of its own, so that echo requests can't make the gateway unreachable.
type answerKind uint8

const (
	neighborAnswer answerKind = iota // to ARP requests and Neighbor Solicitations
	echoAnswer
	stampAnswer
	answerKinds
)

// Answers of a kind a second, to one scope and by a port: so a tenant's flood of requests leaves the others their answers.
const (
	scopeAnswers = 1000
	portAnswers  = 16 * scopeAnswers
)

var scopeAnswerRate, portAnswerRate = ratelimit.PerSecond(scopeAnswers), ratelimit.PerSecond(portAnswers)

// answeredScopes is the number of scopes whose limits are kept at once.
const answeredScopes = 1024

// mayAnswer reports whether the limits allow an answer to a packet that came in by a port, and counts it.
func (w *Worker) mayAnswer(port int, kind answerKind, p *packet.Parsed) bool {
	scope := packet.Host{Addr: packet.Addr{Lo: uint64(kind)}, Scope: packet.ScopeOf(uint16(port), p)}
	return w.plane.toScope.Allow(scopeAnswerRate, scope, w.now) == ratelimit.Allowed && portAnswerRate.Allow(&w.plane.paths[port].answers[kind], w.now)
}

// answerTTL is the TTL or hop limit of echo replies, as of the gateway's notifications.
const answerTTL = 64

// minFrame is the length of the shortest Ethernet frame without FCS (IEEE 802.3 3.2.8); some devices don't pad.
const minFrame = 60

// localAddress is the MAC address of a port whose device has none: locally administered (IEEE 802 8.4), and another one for each port.
func localAddress(port int) packet.MAC { return packet.MAC{0x02, 'c', 'n', 'p', 0, uint8(port)} }

// reached ends a frame for one of the gateway's addresses, and answers it if it has an answer. It returns false for all other frames, which are
// forwarded, other hosts' ARP and Neighbor Discovery among them.
func (w *Worker) reached(b *batch, i int, node *ProxyNode) bool {
	data, p := w.frame(b, i)
	f := b.frames[i]
	switch {
	case p.EtherType == packet.EtherTypeARP:
		return w.takesARP(b.port, f, data, p, node)
	case p.Family == 0 || impostor(p):
		return false
	case p.Proto == packet.ProtoICMPv6 && w.takesNeighbor(b.port, f, data, p, node):
		return true
	case !node.owns(p.Dst):
		return false
	case packet.Classify(data, p, &w.policy.Build.Code) == packet.ProxyNotification:
		w.takesNotification(b.port, f, data, p, node)
	case w.takesEcho(b.port, f, data, p):
	default:
		w.drop(b.port, DroppedToGateway, f)
	}
	return true
}

// takesEcho consumes a valid echo request and answers it. A source that is no host's gets no answer.
func (w *Worker) takesEcho(port int, f burst.Frame, data []byte, p *packet.Parsed) bool {
	request := packet.EchoRequest(data, p)
	if request == nil || !p.Src.Unicast() || p.Src == p.Dst || packet.SourceRouted(data, p) {
		return false
	}
	w.drop(port, ConsumedEcho, f)
	l3 := int(p.L3)
	size := l3 + packet.IPHeaderLen(p.Dst) + len(request)
	if out := w.answerPlace(port, size, echoAnswer, data, p); out != nil {
		packet.PutEthernet(out, data, p, w.address(port), packet.SourceMAC(data))
		packet.PutEchoReply(out, l3, request, p, answerTTL)
		w.originate(port, len(out), tagEcho)
	}
	return true
}

// answerPlace returns the place for an answer of so many bytes to a received frame, padded to the shortest frame, in the last spare buffer; nil, and
// counted, if there is no buffer or place in the queue, or the limit is reached. originate sends it. A frame from a group address gets no answer.
func (w *Worker) answerPlace(port, size int, kind answerKind, received []byte, p *packet.Parsed) []byte {
	spares, padded := len(w.batch.Spare), max(size, minFrame)
	if spares == 0 || w.egress[port].notifications.full() {
		w.counters.add(port, AnswersNoPlace, 1)
		return nil
	}
	out := w.batch.Bytes(w.batch.Spare[spares-1])
	if padded > len(out) || !packet.SourceMAC(received).Unicast() {
		w.counters.add(port, AnswersNoPlace, 1)
		return nil
	}
	if !w.mayAnswer(port, kind, p) {
		w.counters.add(port, AnswersLimited, 1)
		return nil
	}
	clear(out[min(size, padded):padded])
	return out[:padded]
}

// address is a port's MAC address.
func (w *Worker) address(port int) packet.MAC { return w.ports[port].Address }
