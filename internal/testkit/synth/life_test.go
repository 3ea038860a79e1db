package synth

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

func TestReuse(t *testing.T) {
	for _, c := range []struct {
		reuse      Reuse
		same, host int // QPNs, hosts that a connection has in common with the one before
	}{{ReusePeerQP, 1, 2}, {ReusePeerHost, 1, 1}, {ReusePair, 2, 2}} {
		_, conns := run(Config{Reuse: c.reuse, Generations: 3, Hosts: [2]int{3, 3}, Connections: 30, Messages: 2})
		if len(conns) != 30*4 {
			t.Errorf("%d connections", len(conns))
		}
		for _, conn := range conns[30:] {
			before := conns[conn.Before]
			same, host := 0, 0
			for end := range 2 {
				if before.Host[end] == conn.Host[end] {
					host++
					if before.QP[end] == conn.QP[end] {
						same++
					}
				}
			}
			if same != c.same || host != c.host || conn.Start < before.End+20_000 {
				t.Errorf("reuse %d: after %+v comes %+v", c.reuse, before, conn)
			}
		}
	}
	_, conns := run(Config{Reuse: ReuseShuffled, Generations: 3, Schedule: Lockstep, Connections: 30, Messages: 2})
	qps, other := map[uint32]bool{}, 0
	for _, c := range conns {
		qps[c.QP[0]], qps[c.QP[1]] = true, true
		if c.Before >= 0 && c.QP != conns[c.Before].QP {
			other++
		}
	}
	if len(qps) != 60 || other < 60 {
		t.Errorf("%d QPNs, %d of 90 successors have other pairs", len(qps), other)
	}
	for i, a := range conns { // and no QP is in two connections at a time
		for _, b := range conns[i+1:] {
			if (a.QP[0] == b.QP[0] || a.QP[1] == b.QP[1]) && a.Start < b.End && b.Start < a.End {
				t.Fatalf("%+v and %+v", a, b)
			}
		}
	}
}

func TestLifetime(t *testing.T) {
	events, conns := run(Config{Lifetime: 2e6, Spread: 5e6, Messages: 1e6, Generations: 1, Connections: 20})
	starts := map[bool]int{}
	for _, c := range conns {
		if c.End != c.Start+2e6 {
			t.Errorf("%+v", c)
		}
		starts[c.Start > 2_500_000]++
	}
	late := 0
	for _, e := range events {
		if e.Time > conns[e.Conn].End {
			late++
		}
	}
	if late == 0 || starts[true] == 0 || starts[false] == 0 {
		t.Errorf("%d packets pass after their connection's end; starts %v", late, starts)
	}
}

// TestQuietAfterDREQ: an end that has sent or answered a DREQ sends nothing more on the connection.
func TestQuietAfterDREQ(t *testing.T) {
	events, _ := run(Config{CM: true, Lifetime: 2e6, Messages: 1e6, Connections: 20, Requesters: FromBoth, Sizes: [2]int{64, 64},
		Delay: [2]int64{5000, 100_000}})
	quiet := map[[2]int32]bool{}
	for _, e := range events {
		key := [2]int32{e.Conn, int32(e.From)}
		if e.MAD != nil && (attrOf(e.MAD) == packet.CMDREQ || attrOf(e.MAD) == packet.CMDREP) {
			quiet[key] = true
		} else if quiet[key] {
			t.Fatalf("%+v after the end's DREQ or DREP", e)
		}
	}
	if len(quiet) != 40 {
		t.Errorf("%d ends of 20 connections said DREQ or DREP", len(quiet))
	}
}

// TestCM: the contents and order of MADs, also when some are lost.
func TestCM(t *testing.T) {
	c := Config{CM: true, IPv6: true, CMReject: .2, Connections: 40, Messages: 2, Generations: 1, Mix: Mix{Send: 1},
		LossBefore: [2]float64{.1, .1}, LossAfter: [2]float64{.1, .1}}
	events, conns := run(c)
	said := make([]map[packet.CMAttribute]int, len(conns))
	repeated, refused := 0, 0
	for _, e := range events {
		if e.MAD == nil {
			continue
		}
		if said[e.Conn] == nil {
			said[e.Conn] = map[packet.CMAttribute]int{}
		}
		x, conn, attr := e.MAD[packet.MADHeaderLen:], &conns[e.Conn], attrOf(e.MAD)
		if said[e.Conn][attr]++; said[e.Conn][attr] > 1 {
			repeated++
		}
		qp := func(at int) uint32 { return uint32(x[at])<<16 | uint32(x[at+1])<<8 | uint32(x[at+2]) }
		passive := 1 - conn.Active
		ok := true
		switch attr {
		case packet.CMREQ:
			ok = e.From == conn.Active && qp(32) == conn.QP[conn.Active] && qp(44) == conn.StartPSN[passive] &&
				packet.AddrFrom16(x[56:]) == conn.Host[conn.Active] && packet.AddrFrom16(x[72:]) == conn.Host[passive]
		case packet.CMREP:
			ok = e.From == passive && qp(12) == conn.QP[passive] && qp(20) == conn.StartPSN[conn.Active]
		case packet.CMRTU, packet.CMREJ:
			ok = (e.From == conn.Active) == (attr == packet.CMRTU)
		case packet.CMDREQ:
			ok = qp(8) == conn.QP[1-e.From]
		}
		if !ok {
			t.Fatalf("MAD 0x%x from %v of %+v: %x", attr, e.From, conn, *e.MAD)
		}
	}
	for i, conn := range conns {
		if conn.Refused {
			refused++
			if said[i][packet.CMREJ] == 0 || said[i][packet.CMREP] > 0 {
				t.Errorf("refused connection %d said %v", i, said[i])
			}
			next := 0
			for j := range conns {
				if conns[j].Before == int32(i) {
					next = j
				}
			}
			if next == 0 || conns[next].QP[conn.Active] != conn.QP[conn.Active] {
				t.Errorf("refused connection %d isn't tried again with its QPN", i)
			}
		}
	}
	if repeated < 20 || refused < 5 {
		t.Errorf("%d MADs repeated, %d connections refused", repeated, refused)
	}
	requests, destinations := map[[4]byte]bool{}, map[int32]map[uint32]bool{}
	events, conns = run(Config{CM: true, Transports: Transports{UD: 1}, Messages: 8})
	replies := 0
	for _, e := range events {
		if e.MAD == nil {
			if destinations[e.Conn] == nil {
				destinations[e.Conn] = map[uint32]bool{}
			}
			destinations[e.Conn][e.Packet.DestQP] = true
			continue
		}
		x := e.MAD[packet.MADHeaderLen:]
		switch id := [4]byte(x); attrOf(e.MAD) {
		case packet.CMSIDRREQ:
			requests[id] = true
		case packet.CMSIDRREP:
			replies++
			if qp := conns[e.Conn].QP[e.From]; !requests[id] || uint32(x[8])<<16|uint32(x[9])<<8|uint32(x[10]) != qp {
				t.Fatalf("SIDR REP of QP %d: %x", qp, *e.MAD)
			}
		}
	}
	for conn, to := range destinations {
		if len(to) < 10 {
			t.Errorf("UD QPs %v talk with %d others only", conns[conn].QP, len(to))
		}
	}
	if replies != len(conns) || len(requests) != len(conns) {
		t.Errorf("%d SIDR REQs and %d REPs of %d connections", len(requests), replies, len(conns))
	}
	events, _ = run(Config{CM: true, NoDREQ: true, Messages: 1})
	for _, e := range events {
		if e.MAD != nil && attrOf(e.MAD) >= packet.CMDREQ {
			t.Fatal("DREQ in spite of NoDREQ")
		}
	}
}

func TestAttack(t *testing.T) {
	count := func(a Attack) (events []Event, forged map[packet.Opcode]int) {
		forged = map[packet.Opcode]int{}
		events, conns := run(Config{Messages: 8, CE: .05, Attack: a, CM: true})
		qps := map[uint32]bool{packet.GSIQP: true}
		for _, c := range conns {
			qps[c.QP[0]], qps[c.QP[1]] = true, true
		}
		for _, e := range events {
			if e.Forged {
				forged[e.Packet.Opcode]++
				if a.OnPath == 0 && e.From != WAN || a.KnowsQPs && !qps[e.Packet.DestQP] {
					t.Fatalf("%+v", e)
				}
			}
		}
		return events, forged
	}
	for i, a := range []Attack{{ACK: true}, {CNP: true}, {CM: true}} {
		a.Interval, a.KnowsQPs = 1000, true
		op := []packet.Opcode{packet.RCAcknowledge, packet.CNP, packet.UDSendOnly}[i]
		if _, forged := count(a); forged[op] < 1000 || len(forged) != 1 {
			t.Errorf("%+v: %v", a, forged)
		}
	}
	events, forged := count(Attack{OnPath: .5, KnowsQPs: true})
	if forged[packet.RCAcknowledge] < 500 || forged[packet.CNP] < 100 {
		t.Errorf("on path: %v", forged)
	}
	before := 0
	for i, e := range events {
		if !e.Forged {
			continue
		}
		e.Packet.DestQP = 0
		like := func(o Event) bool {
			to := o.Packet.DestQP
			o.Packet.DestQP = 0
			return !o.Forged && to != events[i].Packet.DestQP && o.Packet == e.Packet && o.MSN == e.MSN && o.Time == e.Time
		}
		// other packets may pass at the same time
		near := events[max(0, i-8):min(len(events), i+9)]
		found := false
		for j := range near {
			found = found || like(near[j])
		}
		if !found {
			t.Fatalf("forged %+v is a copy of nothing", events[i])
		}
		if i+1 < len(events) && like(events[i+1]) {
			before++
		}
	}
	if n := forged[packet.RCAcknowledge]; before < n/4 {
		t.Errorf("only %d of %d copies come before what they copy", before, n)
	}
}
