package replay

import (
	"fmt"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// setups are the requests for connections (IBTA 12.6.5) and for the QPs of services of datagrams (12.11.1), by who asks whom for what, and the QPs of those that were accepted.
type setups struct {
	services map[service]*setup
	open     map[request]*attempt // those that aren't decided
	accepted []accepted
	made     map[request]int // their numbers, until they are released
	releases map[request]release
}

// release is what became of a connection's end (DREQ), by who asks for it.
type release struct {
	tenant packet.Scope
	sent   uint64
}

type service struct {
	from, to packet.Addr
	id       uint64
	tenant   packet.Scope
}

func (s service) subject() string { return health.Subject(s.from, s.to, s.tenant) }

// request is one that may come several times.
type request struct {
	from, to packet.Addr
	comm     uint32
}

// accepted are the QPs of a connection.
type accepted struct {
	from, to     packet.Addr
	fromQP, toQP uint32
	at           int64 // ns, of the reply
	released     int64 // 0: it isn't
	by           packet.Addr
}

// way is a direction to a QP.
type way struct {
	from, to packet.Addr
	qp       uint32
}

// span is a time, ns; until 0: to the end.
type span struct{ from, until int64 }

// attempt is what became of a request.
type attempt struct {
	of           *setup
	key          request
	number       uint64 // among the requests for the service
	failedBefore uint64 // of these
	qp           uint32 // 0: not known
	total        uint64 // transmissions, and the time of the first one
	at           int64
	latest       int64  // of a sum of requests, the time when the latest one was made
	sent         uint64 // those without an answer; 0 once one passed
	replied      bool
	before       uint64 // transmissions before the first reply
	unheard      uint64 // and after one
	heard        bool   // the requester is ready (RTU)
	replies      uint64 // since the requester was last heard
	again        uint64 // after it was ready
}

// setup are the requests for a service. Who is rejected asks again: what failed is forgiven if a request that was made later is accepted.
type setup struct {
	asked    uint64
	latest   *attempt
	good     uint64 // number of the latest request that was accepted
	failed   uint64
	forgiven uint64
	how      failure // of the latest one that failed
	reason   uint16
	sent     uint64 // how often it had been sent
	slow     uint64 // most transmissions before the reply of one that was accepted
}

type failure uint8

const (
	rejected failure = iota
	refused          // the reply, by the requester
	late             // the reply came when the requester had given up
)

const (
	mostSetups  = 1 << 14 // bounds the services, and the requests that aren't decided
	enoughTries = 3       // so many without an answer are no coincidence
	leastMAD    = packet.MADHeaderLen + 16
	patience    = 1e9 // ns: who makes another request so much later has given up the one before
	recorded    = 1e6 // ns, for what was sent before a release and is recorded behind it; what isn't answered is sent again later
)

// cmMessage reads a management datagram of which the capture may have cut the end: what a set-up is about is in its first octets.
func cmMessage(b []byte, p *packet.Parsed) (m packet.CM, ok bool) {
	if p.DestQP != packet.GSIQP || len(b) < int(p.Payload)+leastMAD {
		return m, false
	}
	if whole := int(p.Payload) + packet.MADLen; len(b) < whole {
		b = append(append(make([]byte, 0, whole), b...), make([]byte, whole-len(b))...)
	}
	return packet.CMMessage(b, p)
}

// note reads a management datagram in the first pass.
func (s *setups) note(b []byte, p *packet.Parsed, now int64) {
	m, ok := cmMessage(b, p)
	if !ok {
		return
	}
	if m.Attribute == packet.CMREQ || m.Attribute == packet.CMSIDRREQ {
		s.ask(service{p.Src, p.Dst, m.ServiceID, packet.ScopeOf(0, p).Named().Tenant()}, &m, now)
		return
	}
	key := request{p.Dst, p.Src, m.RemoteComm}
	switch m.Attribute {
	case packet.CMDREQ:
		own := request{p.Src, p.Dst, m.LocalComm}
		s.release(key, p.Src, now)
		s.release(own, p.Src, now)
		s.leaves(own, packet.ScopeOf(0, p).Named().Tenant())
	case packet.CMDREP:
		delete(s.releases, key)
	case packet.CMSIDRREP: // an answer of any kind
		delete(s.open, request{p.Dst, p.Src, m.LocalComm})
	}
	o := s.open[key]
	answers := o != nil
	if !answers { // it is the requester's
		key = request{p.Src, p.Dst, m.LocalComm}
		if o = s.open[key]; o == nil {
			return
		}
		o.replied, o.unheard, o.replies = false, 0, 0 // it has heard the reply
	}
	o.sent = 0
	switch {
	case m.Attribute == packet.CMREP && o.heard:
		o.again++
		return
	case m.Attribute == packet.CMREP:
		s.accept(o, m.QPN, now)
		return
	case m.Attribute == packet.CMMRA: // the answer is to come
		return
	case m.Attribute == packet.CMRTU:
		o.of.forgiven, o.of.slow = max(o.of.forgiven, o.failedBefore), max(o.of.slow, o.before)
		if o.of.latest == o {
			o.heard = true
			return
		}
	case m.Attribute != packet.CMREJ:
	case answers:
		o.fails(rejected, m.Reason)
	case o.before >= enoughTries && m.Reason == packet.CMInvalidCommID:
		o.fails(late, m.Reason)
	default:
		o.fails(refused, m.Reason)
	}
	delete(s.open, key)
}

func (s *setups) ask(to service, m *packet.CM, now int64) {
	if s.services == nil {
		s.services, s.open, s.made = map[service]*setup{}, map[request]*attempt{}, map[request]int{}
	}
	key := request{to.from, to.to, m.LocalComm}
	o := s.open[key]
	if o == nil {
		t := s.services[to]
		if t == nil && len(s.services) == mostSetups || len(s.open) == mostSetups {
			return
		}
		if t == nil {
			t = &setup{}
			s.services[to] = t
		}
		t.asked++
		o = &attempt{of: t, key: key, number: t.asked, failedBefore: t.failed, qp: m.QPN, at: now}
		if t.latest != nil && t.latest.heard {
			delete(s.open, t.latest.key)
		}
		t.latest, s.open[key] = o, o
	}
	if o.replied {
		o.unheard++
	}
	o.sent++
	o.total++
}

// accept notes a reply.
func (s *setups) accept(o *attempt, qp uint32, now int64) {
	if o.before == 0 {
		o.before = o.total
	}
	o.replied = true
	o.replies++
	t := o.of
	if t.good = max(t.good, o.number); t.how == rejected {
		t.forgiven = max(t.forgiven, o.failedBefore)
	}
	if o.replies == 1 && o.qp != 0 && qp != 0 && len(s.accepted) < joinedFlows {
		s.made[o.key] = len(s.accepted)
		s.accepted = append(s.accepted, accepted{from: o.key.from, to: o.key.to, fromQP: o.qp, toQP: qp, at: now})
	}
}

func (s *setups) release(key request, by packet.Addr, now int64) {
	if n, ok := s.made[key]; ok {
		s.accepted[n].released, s.accepted[n].by = now, by
		delete(s.made, key)
	}
}

// leaves notes a DREQ.
func (s *setups) leaves(own request, tenant packet.Scope) {
	if s.releases == nil {
		s.releases = map[request]release{}
	}
	if r, known := s.releases[own]; known || len(s.releases) < mostSetups {
		s.releases[own] = release{tenant, r.sent + 1}
	}
}

// gone are the times when a QP was gone, as its end had released the connection: what was sent to it then wasn't answered, and that is no fault.
func (s *setups) gone() map[way][]span {
	all := map[way][]span{}
	for i := range s.accepted {
		a := &s.accepted[i]
		for _, w := range [...]way{{a.from, a.to, a.toQP}, {a.to, a.from, a.fromQP}} {
			if n := len(all[w]); n > 0 && all[w][n-1].until == 0 { // it serves another connection
				all[w][n-1].until = a.at
			}
			if a.released != 0 && a.by == w.to {
				all[w] = append(all[w], span{from: a.released + recorded})
			}
		}
	}
	return all
}

func (o *attempt) fails(how failure, reason uint16) {
	t := o.of
	t.failed++
	t.how, t.reason, t.sent = how, reason, o.total
}

// verdicts are those about requests that were rejected, or, as replies and releases, sent three times without an answer that was heard.
func (s *setups) verdicts() (all []health.Verdict) {
	for own, r := range s.releases {
		if r.sent < enoughTries {
			continue
		}
		to := own.to.Netip()
		all = append(all, health.Verdict{
			Name: health.NoAnswer, Subject: service{from: own.from, to: own.to, tenant: r.tenant}.subject(), Weight: r.sent,
			Evidence: fmt.Sprintf("the end of a connection (DREQ) was sent %d times without an answer (DREP)", r.sent),
			Advice:   fmt.Sprintf("check that %v is up: also a host that has lost the connection answers; and that no filter or route drops UDP port 4791 on the way there or back", to),
			Commands: typed(own.from, own.to, fmt.Sprintf("  # at %v: is it still there?", to)),
		})
	}
	worst := map[*setup]*attempt{} // sums of the requests that aren't decided
	for _, o := range s.open {
		if o.of.good > o.number {
			continue
		}
		w := worst[o.of]
		if w == nil {
			w = &attempt{}
			worst[o.of] = w
		}
		w.total, w.sent = max(w.total, o.sent), w.sent+o.sent
		if o.sent > 0 {
			w.asked(o.at)
		}
		w.unheard, w.again, w.replies = max(w.unheard, o.unheard), max(w.again, o.again), max(w.replies, o.replies)
		if o.replies >= enoughTries {
			w.before = max(w.before, o.before)
		}
	}
	for to, t := range s.services {
		o := worst[t]
		if o == nil {
			o = &attempt{}
		}
		if v := s.verdict(to, t, o); v.Name != "" {
			all = append(all, v)
		}
	}
	return all
}

// asked notes when a request was made of a sum of those without an answer.
func (o *attempt) asked(at int64) {
	if o.number++; o.number == 1 || at < o.at {
		o.at = at
	}
	o.latest = max(o.latest, at)
}

// unanswered reports whether a request was sent several times, or who asks gave it up and made others, without an answer to any.
func (o *attempt) unanswered() bool {
	return o.total >= enoughTries || o.number >= enoughTries && o.latest-o.at >= patience
}

// notes are those about services that accepted a request late: they had rejected several, or it was sent several times.
func (s *setups) notes() (all []health.Note) {
	for to, t := range s.services {
		if t.forgiven >= enoughTries {
			all = append(all, health.Note{
				Name: health.NoteRejected, Subject: to.subject(),
				Text: fmt.Sprintf("%d requests for a connection to %s failed before one was accepted, at last as %s", t.forgiven, serviceName(to.id), packet.CMReason(t.reason)),
			})
		}
		if t.slow >= enoughTries {
			all = append(all, health.Note{
				Name: health.NoteLate, Subject: to.subject(),
				Text: fmt.Sprintf("a request for a connection to %s was sent %d times before a reply to it passed here: they were lost behind here, or %v accepts late (many at a time, a busy application)",
					serviceName(to.id), t.slow, to.to.Netip()),
			})
		}
	}
	return all
}

// verdict is the one about a service, with the sum of its requests that aren't decided.
func (s *setups) verdict(to service, t *setup, o *attempt) health.Verdict {
	v, back := health.Verdict{Subject: to.subject()}, service{from: to.to, to: to.from, tenant: to.tenant}.subject()
	failed := t.failed - t.forgiven
	switch {
	case o.unheard+1 >= enoughTries:
		v.Name, v.Weight = health.AckLoss, o.unheard
		v.Evidence = fmt.Sprintf("a request for a connection to %s was sent %d times more after its reply had passed here: lost between here and %v", serviceName(to.id), o.unheard, to.from.Netip())
		v.Advice = fmt.Sprintf("look for drops and filters between here and %v", to.from.Netip())
	case o.again+1 >= enoughTries:
		v.Name, v.Weight, v.Subject = health.AckLoss, o.again, back
		v.Evidence = fmt.Sprintf("a reply to a request for a connection to %s was sent %d times more after its RTU had passed here: lost between here and %v", serviceName(to.id), o.again, to.to.Netip())
		v.Advice = fmt.Sprintf("look for drops and filters between here and %v", to.to.Netip())
	case o.before >= enoughTries, failed > 0 && t.how == late:
		sent := max(o.before, t.sent)
		v.Name, v.Weight = health.NoAnswer, sent
		v.Evidence = fmt.Sprintf("a request for a connection to %s was sent %d times before a reply to it passed here, and %v had given up", serviceName(to.id), sent, to.from.Netip())
		v.Advice = fmt.Sprintf("find out why %v accepts connections so late (many at a time, a busy application, full tables of the NIC), and let %v ask for fewer at a time", to.to.Netip(), to.from.Netip())
	case o.replies >= enoughTries:
		v.Name, v.Weight, v.Subject = health.NoAnswer, o.replies, back
		v.Evidence = fmt.Sprintf("a reply to a request for a connection to %s was sent %d times without an RTU", serviceName(to.id), o.replies)
		v.Advice = fmt.Sprintf("check that the application at %v still runs and reads the events of its connections, and that no filter or route drops UDP port 4791 on the way there or back", to.from.Netip())
		v.Commands = typed(to.to, to.from, fmt.Sprintf("dst-addr %v   # at %v: is the application still there?", to.to.Netip(), to.from.Netip()))
	case o.unanswered():
		v.Name, v.Weight = health.NoAnswer, o.sent
		v.Evidence = fmt.Sprintf("a request for a connection to %s was sent %d times without an answer", serviceName(to.id), o.sent)
		if o.number > 1 {
			v.Evidence = fmt.Sprintf("%d requests for a connection to %s were sent %d times in all without an answer", o.number, serviceName(to.id), o.sent)
		}
		v.Advice = "check that the peer is up and has this address on an RDMA device, and that no filter or route drops UDP port 4791 on the way there or back"
		if to.to.Netip().IsLinkLocalUnicast() {
			v.Advice = health.LinkLocal + v.Advice
		}
		v.Commands = typed(to.from, to.to, fmt.Sprintf("  # at %v: does it listen?", to.to.Netip()))
	case failed == 0, t.how == rejected && t.reason == packet.CMConsumerReject && s.meets(to):
	case t.how == rejected:
		v.Name, v.Weight = health.Refused, failed
		v.Evidence = fmt.Sprintf("%d of %d requests for a connection to %s were rejected: %s", failed, t.asked, serviceName(to.id), packet.CMReason(t.reason))
		v.Advice = fmt.Sprintf("look at the application at %v: whether it listens at this address and port, and its log", to.to.Netip())
		if t.reason == packet.CMStaleConnection {
			v.Advice = fmt.Sprintf("if that goes on, end what %v still has of earlier connections (rdma resource show qp); it keeps them if their peer stopped without a word", to.to.Netip())
		}
	default:
		v.Name, v.Weight = health.Refused, failed
		v.Evidence = fmt.Sprintf("%d replies to requests for a connection to %s were rejected by %v: %s", failed, serviceName(to.id), to.from.Netip(), packet.CMReason(t.reason))
		v.Advice = fmt.Sprintf("look at the log of the application at %v", to.from.Netip())
	}
	return v
}

// meets reports whether the peer's own request for the same service was accepted: two hosts that ask each other at the same time need one connection.
func (s *setups) meets(to service) bool {
	other := s.services[service{to.to, to.from, to.id, to.tenant}]
	return other != nil && other.good > 0
}

// typed are the commands for a host that isn't heard: nobody has a QP yet.
func typed(from, to packet.Addr, which string) []string {
	return []string{fmt.Sprintf("ping -c 3 %v   # at %v", to.Netip(), from.Netip()), "rdma resource show cm_id " + which}
}

// serviceName is such as "port 4420", "UDP port 4420" of datagrams, or "service 0x10000000".
func serviceName(id uint64) string {
	switch port := uint16(id); id {
	case packet.ServiceID(packet.ProtoTCP, port):
		return fmt.Sprintf("port %d", port)
	case packet.ServiceID(packet.ProtoUDP, port):
		return fmt.Sprintf("UDP port %d", port)
	}
	return fmt.Sprintf("service %#x", id)
}
