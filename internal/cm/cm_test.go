package cm

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

const (
	req  = packet.CMREQ
	mra  = packet.CMMRA
	rej  = packet.CMREJ
	rep  = packet.CMREP
	rtu  = packet.CMRTU
	dreq = packet.CMDREQ
	drep = packet.CMDREP
)

// TestExchange: REQ, REP, RTU, DREQ, DREP, each once; the QPs and PSNs are what the other end chose.
func TestExchange(t *testing.T) {
	for ending := range 2 { // by which end
		p := newPair(t)
		a := p.connect()
		p.run(testWait)
		if len(p.hosts[0].up) != 1 || len(p.hosts[1].up) != 1 {
			t.Fatalf("up: %d, %d", len(p.hosts[0].up), len(p.hosts[1].up))
		}
		b := p.hosts[1].all[0]
		if a.Remote != b.Local || b.Remote != a.Local || a.FlowLabel != b.FlowLabel || a.FlowLabel == 0 || !a.Active || b.Active || a.ID != 77 || b.Peer != p.hosts[0].addr {
			t.Errorf("the ends are %+v and %+v", a, b)
		}
		p.hosts[ending].Disconnect(p.now, []*Conn{a, b}[ending])
		p.run(2 * testWait)
		if want := []packet.CMAttribute{req, rep, rtu, dreq, drep}; !slices.Equal(p.attributes(), want) {
			t.Errorf("messages %x, want %x", p.attributes(), want)
		}
		for i, c := range []*Conn{a, b} {
			if o, ended := p.hosts[i].ended[c]; !ended || o != Closed {
				t.Errorf("end %d: %v, %v", i, ended, o)
			}
			if n := p.hosts[i].Counters(); n.Established != 1 || n.Ended[Closed] != 1 || n.Repeated != 0 || len(p.hosts[i].InUse()) != 0 {
				t.Errorf("end %d counts %+v", i, n)
			}
		}
		p.run(never - 1)
		p.hosts[0].checkForgotten()
		p.hosts[1].checkForgotten()
	}
}

// TestUnanswered: a message that nobody answers is repeated Retries times at the same distance, and then the connection is over.
func TestUnanswered(t *testing.T) {
	for _, c := range []struct {
		name  string
		loses packet.CMAttribute // the answer
		want  []packet.CMAttribute
		ended [2]Outcome
	}{
		{"REQ", rep, slices.Concat(slices.Repeat([]packet.CMAttribute{req, rep}, testRetries+1), []packet.CMAttribute{rej}), [2]Outcome{Unanswered, Unanswered}},
		{"DREQ", drep, slices.Concat([]packet.CMAttribute{req, rep, rtu}, slices.Repeat([]packet.CMAttribute{dreq, drep}, testRetries+1)), [2]Outcome{Unanswered, Closed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			p.lose = func() bool { return p.sent[len(p.sent)-1].Attribute == c.loses }
			a := p.connect()
			p.run(testWait / 2)
			if c.loses == drep {
				p.hosts[0].Disconnect(p.now, a)
			}
			begin := p.now
			p.run(never - 1)
			got := p.attributes()
			if c.loses == rep { // both ends repeat, so the REPs are more than the REQs ask for
				got = slices.CompactFunc(got, func(a, b packet.CMAttribute) bool { return a == rep && b == rep })
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("messages %x, want %x", p.attributes(), c.want)
			}
			b := p.hosts[1].all[0]
			if p.hosts[0].ended[a] != c.ended[0] || p.hosts[1].ended[b] != c.ended[1] {
				t.Errorf("ended by %v and %v, want %v", p.hosts[0].ended[a], p.hosts[1].ended[b], c.ended)
			}
			if took := p.now - begin; took < (testRetries+1)*testWait || took > 3*(testRetries+1)*testWait {
				t.Errorf("it took %d ns", took)
			}
			if n := p.hosts[0].Counters().Repeated; n != testRetries {
				t.Errorf("repeated %d times, want %d", n, testRetries)
			}
			p.hosts[0].checkForgotten()
			p.hosts[1].checkForgotten()
		})
	}
}

// TestRefused: the reasons to refuse a REQ or REP, and that the requesting end learns the reason.
func TestRefused(t *testing.T) {
	request := func(change func(x *packet.CM)) func(*pair) {
		return func(p *pair) { change(&p.hosts[0].out.At(0).CM) }
	}
	for _, c := range []struct {
		name   string
		change func(*pair)
		reason uint16
	}{
		{"unknown service", request(func(x *packet.CM) { x.ServiceID++ }), packet.CMInvalidServiceID},
		{"a service of datagrams", request(func(x *packet.CM) { x.ServiceID = packet.ServiceID(packet.ProtoUDP, testPort) }), packet.CMInvalidServiceID},
		{"nobody listens", func(p *pair) {
			p.hosts[1].c.Port = 0
			p.hosts[0].out.At(0).ServiceID = packet.ServiceID(packet.ProtoTCP, 0)
		}, packet.CMInvalidServiceID},
		{"UC", request(func(x *packet.CM) { x.Transport = packet.CMUC }), packet.CMInvalidTransport},
		{"path MTU", request(func(x *packet.CM) { x.MTU = 5 }), packet.CMInvalidMTU},
		{"another sender's address", request(func(x *packet.CM) { x.LocalGID.Lo++ }), packet.CMInvalidGID},
		{"another host's address", request(func(x *packet.CM) { x.RemoteGID.Lo++ }), packet.CMInvalidGID},
		{"no QP", func(p *pair) { p.hosts[1].refuse = packet.CMNoQP }, packet.CMNoQP},
		{"no place", func(p *pair) { p.hosts[1].c.Connections = 0 }, packet.CMNoResources},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			a := p.connect()
			if c.change(p); c.name == "no place" {
				p.hosts[1].byComm[1] = &Conn{}
				p.hosts[1].c.Connections = 1
			}
			p.run(testWait / 2)
			delete(p.hosts[1].byComm, 1)
			if o, ended := p.hosts[0].ended[a]; !ended || o != Refused || a.Reason != c.reason {
				t.Errorf("ended %v by %v, reason %d, want %d", ended, o, a.Reason, c.reason)
			}
			if n := p.hosts[1].Counters(); n.Received[Rejected] != 1 || len(p.hosts[1].all) != 0 {
				t.Errorf("counted %+v", n)
			}
			p.run(never - 1)
			p.hosts[0].checkForgotten()
			p.hosts[1].checkForgotten()
		})
	}
	t.Run("the REP", func(t *testing.T) {
		p := newPair(t)
		a := p.connect()
		p.hosts[0].refuse = packet.CMNoResources
		p.run(testWait / 2)
		b := p.hosts[1].all[0]
		if p.hosts[0].ended[a] != OpenFailed || p.hosts[1].ended[b] != Refused || b.Reason != packet.CMNoResources {
			t.Errorf("ended by %v and %v, reason %d", p.hosts[0].ended[a], p.hosts[1].ended[b], b.Reason)
		}
	})
}

// TestMRA: the other end's MRA puts off the repetition by its time, once for each time that the message is sent, and by no more than maxDelay.
func TestMRA(t *testing.T) {
	for _, c := range []struct {
		timeout uint8
		delay   int64
	}{{10, timeUnit << 10}, {31, maxDelay}} {
		p := newPair(t)
		a := p.connect()
		p.collect()
		x := packet.CM{Attribute: mra, RemoteComm: a.comm[0], LocalComm: 5, Timeout: c.timeout}
		h := p.hosts[0]
		for _, want := range []Verdict{Taken, Duplicate} {
			if v := h.Receive(100, p.hosts[1].addr, &x); v != want {
				t.Errorf("%v, want %v", v, want)
			}
		}
		again := 100 + c.delay + testWait
		h.Expire(again - 1)
		if h.Pending() {
			t.Error("the REQ is repeated early")
		}
		if h.Expire(again); !h.Pending() || h.Next().Attribute != req {
			t.Error("the REQ isn't repeated")
		}
		if v := h.Receive(again, p.hosts[1].addr, &x); v != Taken {
			t.Errorf("%v after the repetition, want %v", v, Taken)
		}
	}
}

// atState makes a pair whose ends are in a state: active reqSent, passive repSent, both established, active dreqSent, passive timeWait.
func atState(t *testing.T, s state) (p *pair, h *host, c *Conn) {
	t.Helper()
	p = newPair(t)
	a := p.connect()
	switch s {
	case reqSent:
		p.collect()
		return p, p.hosts[0], a
	case repSent:
		p.lose = func() bool { return p.sent[len(p.sent)-1].Attribute == rep }
		p.run(testWait / 2)
		return p, p.hosts[1], p.hosts[1].all[0]
	}
	p.run(testWait / 2)
	if s == dreqSent {
		p.hosts[0].Disconnect(p.now, a)
		p.collect()
		return p, p.hosts[0], a
	}
	b := p.hosts[1].all[0]
	if s == timeWait {
		p.hosts[0].Disconnect(p.now, a)
		p.run(testWait)
	}
	return p, p.hosts[1], b
}

// TestVerdicts: the effect of each message in each state, with right IDs and with wrong ones. Refused messages change nothing.
func TestVerdicts(t *testing.T) {
	all := []packet.CMAttribute{req, mra, rej, rep, rtu, dreq, drep}
	names := map[packet.CMAttribute]string{req: "REQ", mra: "MRA", rej: "REJ", rep: "REP", rtu: "RTU", dreq: "DREQ", drep: "DREP"}
	for _, c := range []struct {
		state state
		name  string
		want  []Verdict // in the order of all
	}{
		{reqSent, "reqSent, active", []Verdict{Taken, Taken, Taken, Taken, OutOfState, OutOfState, OutOfState}}, // the REQ makes another connection
		{repSent, "repSent, passive", []Verdict{Duplicate, Taken, Taken, OutOfState, Taken, Taken, OutOfState}},
		{established, "established, passive", []Verdict{Duplicate, OutOfState, Taken, OutOfState, Duplicate, Taken, OutOfState}},
		{dreqSent, "dreqSent, active", []Verdict{Taken, OutOfState, Taken, OutOfState, OutOfState, Taken, Taken}},
		{timeWait, "timeWait, passive", []Verdict{Duplicate, OutOfState, Duplicate, OutOfState, OutOfState, Duplicate, Duplicate}},
	} {
		for i, attribute := range all {
			p, h, conn := atState(t, c.state)
			from := p.hosts[0]
			if h == from {
				from = p.hosts[1]
			}
			answers := uint8(packet.CMAnswersREQ)
			if c.state == repSent {
				answers = packet.CMAnswersREP
			}
			x := packet.CM{Attribute: attribute, RemoteComm: conn.comm[0], LocalComm: conn.comm[1], QPN: conn.Local.Number, PSN: conn.Local.PSN, Answers: answers}
			if attribute == req || attribute == rep {
				x.QPN, x.PSN = conn.Remote.Number, conn.Remote.PSN
			}
			if conn.state == reqSent {
				x.LocalComm, x.QPN = 5, 0x999
			}
			if attribute == req {
				if conn.Active {
					x.LocalComm, x.QPN = 6, 0x888
				}
				x.ServiceID, x.MTU, x.LocalGID, x.RemoteGID = packet.ServiceID(packet.ProtoTCP, testPort), 3, from.addr.Addr, h.addr.Addr
			}
			if attribute != req {
				h.checkWrong(conn, from.addr, x)
			}
			if v := h.Receive(p.now, from.addr, &x); v != c.want[i] {
				t.Errorf("%s: %s is %v, want %v", c.name, names[attribute], v, c.want[i])
			}
		}
	}
}

// checkWrong checks that a message with something wrong in it is refused for that, and changes nothing.
func (h *host) checkWrong(conn *Conn, from Peer, x packet.CM) {
	h.t.Helper()
	for _, w := range []struct {
		name   string
		change func(from *Peer, x *packet.CM)
		want   Verdict
		not    bool // it isn't wrong here
	}{
		{"address", func(from *Peer, _ *packet.CM) { from.Addr.Lo++ }, WrongPeer, false},
		{"own ID", func(_ *Peer, x *packet.CM) { x.RemoteComm++ }, UnknownID, false},
		{"peer's ID", func(_ *Peer, x *packet.CM) { x.LocalComm++ }, WrongPeer, conn.state == reqSent},
		{"DREQ's QPN", func(_ *Peer, x *packet.CM) { x.QPN++ }, WrongPeer, x.Attribute != dreq || conn.state == reqSent},
		{"REP's QPN", func(_ *Peer, x *packet.CM) { x.QPN = packet.GSIQP }, Malformed, x.Attribute != rep},
		{"attribute", func(_ *Peer, x *packet.CM) { x.Attribute = packet.CMLAP }, Unsupported, false},
	} {
		if w.not {
			continue
		}
		before, wrong, peer, queued := *conn, x, from, h.out.Len()
		w.change(&peer, &wrong)
		if v := h.Receive(0, peer, &wrong); v != w.want || *conn != before || h.out.Len() != queued {
			h.t.Errorf("attribute %#x in state %d with a wrong %s: %v, want %v; %d answers", x.Attribute, before.state, w.name, v, w.want, h.out.Len()-queued)
		}
	}
}

// TestActiveEnd: what an active end does with messages once it uses the connection.
func TestActiveEnd(t *testing.T) {
	p := newPair(t)
	a := p.connect()
	p.run(testWait / 2)
	h, from := p.hosts[0], p.hosts[1].addr
	x := packet.CM{Attribute: rep, RemoteComm: a.comm[0], LocalComm: a.comm[1], QPN: a.Remote.Number, PSN: a.Remote.PSN}
	if v := h.Receive(p.now, from, &x); v != Duplicate || h.out.Len() != 1 || h.Next().Attribute != rtu {
		t.Errorf("REP again: %v", v)
	}
	x.QPN++
	if v := h.Receive(p.now, from, &x); v != WrongPeer || h.Pending() || a.Remote.Number == x.QPN {
		t.Errorf("REP with another QP: %v", v)
	}
	if v := h.Receive(p.now, from, nil); v != Malformed {
		t.Errorf("no message: %v", v)
	}
	if v := h.Receive(p.now, from, &packet.CM{Attribute: req, QPN: 1}); v != Malformed || h.Pending() {
		t.Errorf("a REQ for QP 1: %v", v)
	}
}

// TestStaleConnection: a REQ from a QP that a connection has already ends that connection and is refused (IBTA 12.9); one with a communication
// ID in use is refused and ends nothing.
func TestStaleConnection(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *packet.CM)
		reason uint16
		ends   bool
	}{
		{"QP in use", func(x *packet.CM) { x.LocalComm++ }, packet.CMStaleConnection, true},
		{"communication ID in use", func(x *packet.CM) { x.QPN++ }, packet.CMDuplicateLocalComm, false},
	} {
		p := newPair(t)
		p.connect()
		p.run(testWait / 2)
		h := p.hosts[1]
		x := p.sent[0]
		c.change(&x)
		if v := h.Receive(p.now, p.hosts[0].addr, &x); v != Rejected || h.all[0].Established() == c.ends {
			t.Errorf("%s: %v, the old connection goes on: %v", c.name, v, h.all[0].Established())
		}
		var sent []packet.CMAttribute
		for h.Pending() {
			m := h.Next()
			if sent = append(sent, m.Attribute); m.Attribute == rej && m.Reason != c.reason {
				t.Errorf("%s: reason %d, want %d", c.name, m.Reason, c.reason)
			}
		}
		want := []packet.CMAttribute{rej}
		if c.ends {
			want = []packet.CMAttribute{dreq, rej}
		}
		if !slices.Equal(sent, want) {
			t.Errorf("%s: answers %x, want %x", c.name, sent, want)
		}
	}
}

// TestFlood: a flood of REQs fills at most the table and a bounded queue, and its connections end when nobody confirms them.
func TestFlood(t *testing.T) {
	h := newHost(t, 2, nil)
	x := packet.CM{Attribute: req, QPN: 0x99, ServiceID: packet.ServiceID(packet.ProtoTCP, testPort), MTU: 3, RemoteGID: h.addr.Addr}
	for i := range 10_000 {
		from := Peer{Addr: packet.Addr{Lo: uint64(i)}}
		x.LocalComm, x.LocalGID = uint32(i), from.Addr
		h.Receive(0, from, &x)
	}
	c := h.Counters()
	if c.Received[Taken] != 8 || c.Received[Rejected] != 9992 || len(h.conns) != 8 || h.out.Len() != 32 || c.Dropped != 10_000-32 {
		t.Errorf("%d connections, %d messages queued, counted %+v", len(h.conns), h.out.Len(), c)
	}
	for h.Due() != never {
		h.Expire(h.Due())
		for h.Pending() {
			h.Next()
		}
	}
	h.checkForgotten()
}

// TestPlaces: a connection that is over gives its place to a new one; without one, Connect says what is wrong.
func TestPlaces(t *testing.T) {
	p := newPair(t)
	p.hosts[0].c.Connections = 1
	a := p.connect()
	p.run(testWait / 2)
	if _, err := p.hosts[0].Connect(p.now, p.hosts[1].addr, testPort, QP{}, 0); err == nil || !strings.Contains(err.Error(), "all 1 connections are in use") {
		t.Errorf("%v", err)
	}
	p.hosts[0].Disconnect(p.now, a)
	p.run(testWait)
	b := p.connect()
	p.run(p.now + testWait)
	if !b.Established() || len(p.hosts[0].byComm) != 1 {
		t.Errorf("established: %v, %d connections", b.Established(), len(p.hosts[0].byComm))
	}
	p.hosts[0].Forget(b)
	p.hosts[0].Expire(p.now)
	if len(p.hosts[0].conns) != 0 || p.hosts[0].Pending() {
		t.Error("something is left of a forgotten connection")
	}
}

// TestConfirm: a packet on the QP takes the place of the RTU, and changes nothing in any other state.
func TestConfirm(t *testing.T) {
	for _, s := range []state{reqSent, repSent, established, dreqSent, timeWait} {
		p, h, c := atState(t, s)
		up := len(h.up)
		if s == repSent {
			up++
		}
		h.Confirm(p.now, c)
		if changed := c.state != s; changed != (s == repSent) || len(h.up) != up {
			t.Errorf("state %d becomes %d, %d are up", s, c.state, len(h.up))
		}
	}
}

// TestWithdraw: a connection that is ended before it is established leaves nothing at either end.
func TestWithdraw(t *testing.T) {
	for _, s := range []state{reqSent, repSent} {
		p, h, c := atState(t, s)
		p.lose = nil
		h.Disconnect(p.now, c)
		if o, ended := h.ended[c]; !ended || o != Closed {
			t.Errorf("ended: %v, %v", ended, o)
		}
		h.Disconnect(p.now, c)
		p.run(never - 1)
		p.hosts[0].checkForgotten()
		p.hosts[1].checkForgotten()
	}
}

func TestNewRefuses(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"the code of the path MTU is 6": func(c *Config) { c.MTU = 6 },
		"after 4.096 us * 2^25":         func(c *Config) { c.Timeout = 25 },
		"repeated 16 times":             func(c *Config) { c.Retries = 16 },
		"a table for 0 connections":     func(c *Config) { c.Connections = 0 },
	} {
		c := Config{MTU: 3, Connections: 1}
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// TestLinux has vectors from Soft-RoCE's captures (cm_rping_v4).
func TestLinux(t *testing.T) {
	if got := FlowLabel(0x943e, 0x48a9); got != 146475 {
		t.Errorf("flow label %d, want 146475", got)
	}
	if got := Transaction(0x28ebfd11); got != 0x211fdeb28 {
		t.Errorf("transaction ID %#x, want 0x211fdeb28", got)
	}
}
