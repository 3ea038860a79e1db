package synth

import (
	"encoding/binary"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// qpIn reads a QPN or PSN at an offset behind the MAD header.
func qpIn(b *[packet.MADLen]byte, offset int) uint32 {
	return binary.BigEndian.Uint32(b[packet.MADHeaderLen+offset:]) >> 8
}

func idIn(b *[packet.MADLen]byte, offset int) uint32 {
	return binary.BigEndian.Uint32(b[packet.MADHeaderLen+offset:])
}

// mads counts the MADs of each attribute that are and aren't forged.
func mads(events []Event) (genuine, forged map[packet.CMAttribute]int) {
	genuine, forged = map[packet.CMAttribute]int{}, map[packet.CMAttribute]int{}
	for i := range events {
		switch e := &events[i]; {
		case e.MAD == nil:
		case e.Forged:
			forged[attrOf(e.MAD)]++
		default:
			genuine[attrOf(e.MAD)]++
		}
	}
	return genuine, forged
}

// TestShare: RDMA-CM sets up its share of the connections; QPs pass from one kind to the other, with another port near the same PSNs.
func TestShare(t *testing.T) {
	events, conns := run(Config{CM: true, NoDREQ: true, Managers: Managers{Share: .5}, Generations: 3, Messages: 4, Connections: 100, Ports: PortsFlowLabel,
		StartPSN: PSNNear, Near: [2]uint32{0, 1 << 16}})
	byCM := make([]bool, len(conns))
	for i := range events {
		if e := &events[i]; e.MAD != nil {
			byCM[e.Conn] = true
		}
	}
	share, stale := 0.0, 0
	for i := range conns {
		c := &conns[i]
		if c.ByCM != byCM[i] {
			t.Fatalf("MADs: %v, of %+v", byCM[i], c)
		}
		if port := endpoint.SourcePort(endpoint.RC, c.QP[Fabric], c.QP[WAN]); !c.ByCM && c.Port != [2]uint16{port, port} {
			t.Errorf("ports %v without RDMA-CM, want %d", c.Port, port)
		}
		if c.ByCM {
			share++
		} else if b := c.Before; b >= 0 && conns[b].ByCM {
			stale++
			old := &conns[b]
			if ahead := (c.StartPSN[Fabric] - old.NextPSN[Fabric]) & 0xffffff; ahead > 1<<16 || c.Port == old.Port || c.QP == old.QP {
				t.Errorf("after %+v comes %+v", old, c)
			}
		}
	}
	within(t, "connections by RDMA-CM", share/float64(len(conns)), .5, .08)
	if stale < 40 {
		t.Errorf("%d connections without RDMA-CM follow one with it", stale)
	}
}

// TestMRA: a passive side that answers by an MRA sends its REP later, and the active side doesn't repeat its REQ meanwhile.
func TestMRA(t *testing.T) {
	events, _ := run(Config{CM: true, Managers: Managers{MRA: .5, MRADelay: 50_000_000}, Connections: 100, Messages: 1})
	asked, promised := map[int32]int64{}, map[int32]bool{}
	for i := range events {
		e := &events[i]
		if e.MAD == nil {
			continue
		}
		switch attrOf(e.MAD) {
		case packet.CMREQ:
			asked[e.Conn] = e.Time
		case packet.CMMRA:
			promised[e.Conn] = true
		case packet.CMREP:
			if late := e.Time - asked[e.Conn]; promised[e.Conn] != (late > 50_000_000) {
				t.Errorf("REP after %d ns, MRA: %v", late, promised[e.Conn])
			}
		}
	}
	within(t, "connections with an MRA", float64(len(promised))/100, .5, .15)
	if genuine, _ := mads(events); genuine[packet.CMREQ] != 100 {
		t.Errorf("%d REQs of 100 connections: %v", genuine[packet.CMREQ], genuine)
	}
}

// TestStaleMADs: MADs pass again, of connections that have long ended, too.
func TestStaleMADs(t *testing.T) {
	c := Config{CM: true, Managers: Managers{Stale: .3, StaleDelay: 100_000_000}, Connections: 50, Messages: 2, Generations: 2, Mix: Mix{Read: 1}}
	counts := map[string]int{}
	if err := checkRun(c, counts); err != nil {
		t.Fatal(err)
	}
	events, conns := run(c)
	late := map[packet.CMAttribute]int{}
	for i := range events {
		if e := &events[i]; e.MAD != nil && e.Time > conns[e.Conn].End+1_000_000 {
			late[attrOf(e.MAD)]++
		}
	}
	if late[packet.CMREQ] < 20 || late[packet.CMREP] < 20 || late[packet.CMDREQ] < 20 {
		t.Errorf("MADs after their connection's end: %v", late)
	}
}

// TestTwoTags: two tenants have the same VID, addresses and QPNs, but tags of different protocols and other pairs of QPs.
func TestTwoTags(t *testing.T) {
	for _, numbers := range []QPNs{QPRandom, QPSequential} {
		events, conns := run(Config{Tenants: 4, TwoTags: true, QPNs: numbers, Connections: 64, Messages: 2})
		type flow struct {
			vid    uint16
			destQP uint32
		}
		source := map[flow]map[uint16]uint32{} // by TPID
		for i := range conns {
			c := &conns[i]
			key := flow{c.VID, c.QP[WAN]}
			if source[key] == nil {
				source[key] = map[uint16]uint32{}
			}
			source[key][c.TPID] = c.QP[Fabric]
		}
		for key, by := range source {
			if len(by) != 2 || by[packet.EtherTypeCTag] == by[packet.EtherTypeSTag] || key.vid > firstVID+1 {
				t.Errorf("%+v comes from %v", key, by)
			}
		}
		for i := range events {
			e := &events[i]
			if b, tpid := Frame(e), e.Packet.OuterTag.TPID(); tpid == 0 || binary.BigEndian.Uint16(b[12:]) != tpid {
				t.Fatalf("TPID %x in frame %x", tpid, b[:18])
			}
		}
	}
}

// TestForgedConnect: a forged REQ with a live QPN is answered by a genuine REP with a new QPN, which the WAN host ignores or refuses.
func TestForgedConnect(t *testing.T) {
	for _, refused := range []float64{0, 1} {
		events, conns := run(Config{CM: true, Connections: 100, Messages: 200, Hosts: [2]int{2, 1}, QPNs: QPSequential,
			Attack: Attack{Interval: 50_000, KnowsQPs: true, Managers: ForgedCM{Connect: true, Refused: refused}}})
		used := map[uint32]bool{}
		for i := range conns {
			used[conns[i].QP[Fabric]] = true
		}
		reqs, reps, rejs := map[uint32]*Event{}, map[uint32]int{}, 0
		for i := range events {
			e := &events[i]
			switch {
			case e.Forged:
				reqs[idIn(e.MAD, 0)] = e
				live := false
				for j := range conns {
					c := &conns[j]
					live = live || c.QP[WAN] == qpIn(e.MAD, 32) && c.Start <= e.Time && e.Time < c.End
				}
				if e.From != WAN || attrOf(e.MAD) != packet.CMREQ || !live {
					t.Fatalf("%+v with QP %d", e, qpIn(e.MAD, 32))
				}
			case e.Conn >= 0:
			case e.From == Fabric:
				req := reqs[idIn(e.MAD, 4)]
				reps[idIn(e.MAD, 4)]++
				if attrOf(e.MAD) != packet.CMREP || req == nil || req.Packet.Dst != e.Packet.Src || req.Packet.Src != e.Packet.Dst || e.Time <= req.Time {
					t.Fatalf("%+v answers %+v", e, req)
				}
				if refused == 0 && used[qpIn(e.MAD, 12)] {
					t.Fatalf("the listener's QP %d is a connection's", qpIn(e.MAD, 12))
				}
			default:
				rejs++
				if attrOf(e.MAD) != packet.CMREJ || reps[idIn(e.MAD, 0)] == 0 {
					t.Fatalf("%+v", e)
				}
			}
		}
		want := len(reqs) * 8
		if refused > 0 {
			want = len(reqs)
		}
		if got := sum(reps); len(reqs) < 30 || got != want || rejs != int(refused)*len(reqs) {
			t.Errorf("%d REQs, %d REPs, want %d, %d REJs", len(reqs), got, want, rejs)
		}
	}
}

func sum(of map[uint32]int) (n int) {
	for _, v := range of {
		n += v
	}
	return n
}

// TestForesee: some time before a connection begins, one REQ has the QPN of its WAN end, and some forged REPs that of its fabric end, for first
// connections and for those that follow; a listener's QPN comes to be used.
func TestForesee(t *testing.T) {
	const ahead = 30_000_000_000
	c := Config{Connections: 50, Messages: 2, Spread: 60_000_000_000, Generations: 1, ReuseGap: 40_000_000_000, QPNs: QPSequential,
		QPBase: [2]uint32{0x1000, 0x8000}, Attack: Attack{KnowsQPs: true, Managers: ForgedCM{Ahead: ahead, Recycle: true}}}
	events, conns := run(c)
	req, rep, listeners := map[uint32]int64{}, map[uint32]bool{}, map[uint32]uint32{}
	for i := range events {
		e := &events[i]
		switch {
		case e.MAD == nil:
		case e.Forged && attrOf(e.MAD) == packet.CMREQ:
			if at, again := req[qpIn(e.MAD, 32)]; !again || at > e.Time {
				req[qpIn(e.MAD, 32)] = e.Time
			}
		case e.Forged:
			rep[qpIn(e.MAD, 12)] = true
		default:
			qp, id := qpIn(e.MAD, 12), idIn(e.MAD, 4)
			if first, again := listeners[qp]; again && first != id {
				t.Errorf("two REQs are answered by QP %d", qp)
			}
			listeners[qp] = id
		}
	}
	known, both, recycled := 0, 0, 0
	for i := range conns {
		c := &conns[i]
		if at, ok := req[c.QP[WAN]]; ok && at <= c.Start-ahead {
			known++
		} else if c.Start > ahead+1_000_000 {
			t.Errorf("no REQ 30 s ahead of %+v, but %v at %d", c, ok, at)
		}
		if rep[c.QP[Fabric]] {
			both++
		}
		if listeners[c.QP[Fabric]] != 0 {
			recycled++
		}
	}
	if known < 60 || both < 20 || recycled < 5 {
		t.Errorf("of %d connections %d are foreseen, %d at both ends, %d use a listener's QP", len(conns), known, both, recycled)
	}
}

// TestForgedREP: a genuine REQ from the fabric gets a forged REP with another QP, before or after the genuine one.
func TestForgedREP(t *testing.T) {
	events, conns := run(Config{CM: true, Connections: 200, Messages: 2, Attack: Attack{KnowsQPs: true, Managers: ForgedCM{REP: 1, KnowsIDs: true}}})
	conn, genuine := map[uint32]int32{}, map[int32]bool{}
	before, after := 0, 0
	for i := range events {
		e := &events[i]
		switch {
		case e.MAD == nil:
		case e.Forged:
			c, ok := conn[idIn(e.MAD, 4)]
			if !ok || attrOf(e.MAD) != packet.CMREP || e.From != WAN {
				t.Fatalf("%+v answers nothing", e)
			}
			if qpIn(e.MAD, 12) == conns[c].QP[WAN] {
				continue
			}
			if genuine[c] {
				after++
			} else {
				before++
			}
		case attrOf(e.MAD) == packet.CMREQ && e.From == Fabric:
			conn[idIn(e.MAD, 0)] = e.Conn
		case attrOf(e.MAD) == packet.CMREP:
			genuine[e.Conn] = true
		}
	}
	if before < 30 || after < 15 {
		t.Errorf("%d forged REPs come before the genuine one, %d after it", before, after)
	}
}

// TestForgedMessages: the attacker off the path forges each kind of message, with the victim's communication IDs if it knows them.
func TestForgedMessages(t *testing.T) {
	for _, knows := range []bool{false, true} {
		events, _ := run(Config{CM: true, Connections: 50, Messages: 200, Attack: Attack{Interval: 10_000, KnowsQPs: true, CM: true,
			Managers: ForgedCM{All: true, KnowsIDs: knows}}})
		ids, right := map[uint32]bool{}, map[packet.CMAttribute]int{}
		for i := range events {
			if e := &events[i]; e.MAD != nil && !e.Forged {
				ids[idIn(e.MAD, 0)] = true
			} else if e.Forged && ids[idIn(e.MAD, 0)] {
				right[attrOf(e.MAD)]++
			}
		}
		_, forged := mads(events)
		for attr := packet.CMREQ; attr <= packet.CMAPR; attr++ {
			if attr != packet.CMSIDRREQ && (forged[attr] < 20 || knows != (right[attr] > 10)) {
				t.Errorf("MAD 0x%x: %d forged, %d with IDs of a connection; knows them: %v", attr, forged[attr], right[attr], knows)
			}
		}
	}
}

// TestForgedRequests: an attacker that knows QPs and PSNs forges WRITEs with what is in flight.
func TestForgedRequests(t *testing.T) {
	c := Config{Connections: 50, Messages: 50, Requesters: FromWAN, Attack: Attack{Interval: 10_000, KnowsQPs: true, KnowsPSNs: true, Request: true}}
	tr := New(c)
	forged, near := 0, 0
	for e, ok := tr.Next(); ok; e, ok = tr.Next() {
		if !e.Forged {
			continue
		}
		forged++
		if e.From != WAN || e.Packet.Opcode != packet.RCWriteOnly || len(Frame(&e)) != int(e.Length()) {
			t.Fatalf("%+v", e)
		}
		for _, l := range tr.live {
			if l == nil {
				continue
			}
			if una, n := l.sides[WAN].requester.InFlight(); (e.Packet.PSN-una)&0xffffff <= n {
				near++
				break
			}
		}
	}
	if forged < 200 || near < forged*3/4 {
		t.Errorf("%d forged requests, %d with PSNs in flight", forged, near)
	}
}
