package replay

import (
	"fmt"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// setups are the requests for connections (IBTA 12.6.5) by who asks whom for what.
type setups struct {
	all  map[service]*setup
	open map[request]*setup // those that aren't decided
}

type service struct {
	from, to packet.Addr
	id       uint64
}

// request is one that may come several times.
type request struct {
	from, to packet.Addr
	comm     uint32
}

// setup is what became of requests for a service.
type setup struct {
	sent     uint64 // requests without an answer, with repetitions; 0 once one is answered
	repeated uint64 // most transmissions of the present request
	latest   uint32 // its communication ID
	replied  bool   // to it
	unheard  uint64 // its transmissions after that
	heard    bool   // the requester is ready (RTU)
	replies  uint64 // to it, since the requester was last heard
	again    uint64 // replies after it was ready
	rejected uint64 // since the latest one that was accepted
	refused  uint64 // replies that the requester has rejected since
	reason   uint16
}

// mostSetups bounds the services, and the requests that aren't decided.
const mostSetups = 1 << 14

// note reads a management datagram in the first pass.
func (s *setups) note(b []byte, p *packet.Parsed) {
	m, ok := packet.CMMessage(b, p)
	if !ok {
		return
	}
	if m.Attribute == packet.CMREQ {
		s.ask(service{p.Src, p.Dst, m.ServiceID}, m.LocalComm)
		return
	}
	key := request{p.Dst, p.Src, m.RemoteComm}
	o := s.open[key]
	answers := o != nil
	if !answers { // it is the requester's
		key = request{p.Src, p.Dst, m.LocalComm}
		o = s.open[key]
	}
	switch {
	case o == nil:
		return
	case !answers: // it has heard the reply
		o.replied, o.unheard, o.replies = false, 0, 0
	}
	latest := key.comm == o.latest
	switch o.sent = 0; {
	case m.Attribute == packet.CMREP && latest && o.heard:
		o.again++
		return
	case m.Attribute == packet.CMREP:
		if latest {
			o.replied = true
			o.replies++
		}
		o.rejected = 0
		return
	case m.Attribute == packet.CMMRA: // the answer is to come
		return
	case m.Attribute == packet.CMREJ && answers:
		o.rejected++
		o.reason = m.Reason
	case m.Attribute == packet.CMREJ:
		o.refused++
		o.reason = m.Reason
	case m.Attribute == packet.CMRTU:
		if o.refused = 0; latest {
			o.heard = true
			return
		}
	}
	delete(s.open, key)
}

func (s *setups) ask(to service, comm uint32) {
	if s.all == nil {
		s.all, s.open = map[service]*setup{}, map[request]*setup{}
	}
	o := s.all[to]
	if o == nil {
		if len(s.all) == mostSetups {
			return
		}
		o = &setup{}
		s.all[to] = o
	}
	switch {
	case o.latest != comm:
		if o.heard {
			delete(s.open, request{to.from, to.to, o.latest})
		}
		o.repeated, o.latest, o.replied, o.unheard, o.heard, o.replies, o.again = 0, comm, false, 0, false, 0, 0
	case o.replied:
		o.unheard++
		fallthrough
	case o.sent == 0:
		o.repeated = 0
	}
	o.sent++
	o.repeated++
	if len(s.open) < mostSetups {
		s.open[request{to.from, to.to, comm}] = o
	}
}

// verdicts are those about requests that were rejected, or, as replies, sent three times without an answer that was heard.
func (s *setups) verdicts() (all []health.Verdict) {
	const enough = 3
	for to, o := range s.all {
		v, back := health.Verdict{Subject: fmt.Sprintf("%v -> %v", to.from.Netip(), to.to.Netip())}, fmt.Sprintf("%v -> %v", to.to.Netip(), to.from.Netip())
		switch {
		case o.unheard+1 >= enough:
			v.Name, v.Weight = health.AckLoss, o.unheard
			v.Evidence = fmt.Sprintf("a request for a connection to %s was sent %d times more after its reply had passed here: lost between here and %v", serviceName(to.id), o.unheard, to.from.Netip())
			v.Advice = fmt.Sprintf("look for drops and filters between here and %v", to.from.Netip())
		case o.again+1 >= enough:
			v.Name, v.Weight, v.Subject = health.AckLoss, o.again, back
			v.Evidence = fmt.Sprintf("a reply to a request for a connection to %s was sent %d times more after its RTU had passed here: lost between here and %v", serviceName(to.id), o.again, to.to.Netip())
			v.Advice = fmt.Sprintf("look for drops and filters between here and %v", to.to.Netip())
		case o.replies >= enough:
			v.Name, v.Weight, v.Subject = health.NoAnswer, o.replies, back
			v.Evidence = fmt.Sprintf("a reply to a request for a connection to %s was sent %d times without an RTU", serviceName(to.id), o.replies)
			v.Advice = fmt.Sprintf("check that the application at %v still runs and reads the events of its connections, and that no filter or route drops UDP port 4791 on the way there or back", to.from.Netip())
			v.Commands = typed(to.to, to.from, fmt.Sprintf("dst-addr %v   # at %v: is the application still there?", to.to.Netip(), to.from.Netip()))
		case o.sent > 0 && o.repeated >= enough:
			v.Name, v.Weight = health.NoAnswer, o.sent
			v.Evidence = fmt.Sprintf("a request for a connection to %s was sent %d times without an answer", serviceName(to.id), o.sent)
			v.Advice = "check that the peer is up and has this address on an RDMA device, and that no filter or route drops UDP port 4791 on the way there or back"
			v.Commands = typed(to.from, to.to, fmt.Sprintf("  # at %v: does it listen?", to.to.Netip()))
		case o.rejected > 0:
			v.Name, v.Weight = health.Refused, o.rejected
			v.Evidence = fmt.Sprintf("%d requests for a connection to %s were rejected: %s", o.rejected, serviceName(to.id), packet.CMReason(o.reason))
			v.Advice = fmt.Sprintf("look at the application at %v: whether it listens at this address and port, and its log", to.to.Netip())
		case o.refused > 0:
			v.Name, v.Weight = health.Refused, o.refused
			v.Evidence = fmt.Sprintf("%d replies to requests for a connection to %s were rejected by %v: %s", o.refused, serviceName(to.id), to.from.Netip(), packet.CMReason(o.reason))
			v.Advice = fmt.Sprintf("look at the log of the application at %v", to.from.Netip())
		default:
			continue
		}
		all = append(all, v)
	}
	return all
}

// typed are the commands for a host that isn't heard: nobody has a QP yet.
func typed(from, to packet.Addr, which string) []string {
	return []string{fmt.Sprintf("ping -c 3 %v   # at %v", to.Netip(), from.Netip()), "rdma resource show cm_id " + which}
}

// serviceName is such as "port 4420", or "service 0x10000000".
func serviceName(id uint64) string {
	if port := uint16(id); id == packet.ServiceID(packet.ProtoTCP, port) {
		return fmt.Sprintf("port %d", port)
	}
	return fmt.Sprintf("service %#x", id)
}
