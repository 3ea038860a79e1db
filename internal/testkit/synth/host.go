package synth

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// host is a host with one RNIC.
type host struct {
	addr   packet.Addr
	tag    tag
	next   uint32          // QPN, QPSequential
	used   map[uint32]bool // QPNs, QPRandom
	free   []freeQP        // QPs of connections that ended
	gsiPSN uint32          // of QP 1
	spent  []spentQP       // QPNs that a listener used, oldest first
	cross  bool            // neighbouring QPNs are swapped, see Config.TwoTags
}

// tag is a VLAN tag; zero: none.
type tag struct{ tpid, vid uint16 }

// spentQP is a QPN that may be reused from a time on.
type spentQP struct {
	number uint32
	from   int64 // ns
}

// freeQP is a QP whose connection ended.
type freeQP struct {
	number uint32
	next   uint32 // one past the last PSN sent to it
}

const firstVID = 100

// makeHosts makes the hosts of all tenants: 10.0.0.0/16 and fd00:a::/64 on the fabric side, 10.1.0.0/16 and fd00:b::/64 on the other.
func (t *Traffic) makeHosts() {
	for end := range End(2) {
		for tenant := range max(1, t.c.Tenants) {
			for i := range t.c.Hosts[end] {
				h := host{next: t.c.QPBase[end], used: map[uint32]bool{}, gsiPSN: uint32(t.rng.Below(256))}
				if t.c.Tenants > 0 {
					h.tag = tag{packet.EtherTypeCTag, uint16(firstVID + tenant)}
				}
				if t.c.Tenants > 0 && t.c.TwoTags {
					h.tag.vid = uint16(firstVID + tenant/2)
					if tenant%2 == 1 {
						h.tag.tpid, h.cross = packet.EtherTypeSTag, end == WAN
					}
				}
				n := i + 1
				a := netip.AddrFrom4([4]byte{10, byte(end), byte(n >> 8), byte(n)})
				if t.c.IPv6 {
					a = netip.AddrFrom16([16]byte{0: 0xfd, 3: 0xa + byte(end), 14: byte(n >> 8), 15: byte(n)})
				}
				h.addr = packet.AddrFrom(a)
				t.hosts[end] = append(t.hosts[end], h)
			}
		}
	}
}

// newQP assigns a QP to a host, reused or new.
func (t *Traffic) newQP(end End, place int32) uint32 {
	h := &t.hosts[end][place]
	if len(h.spent) > 0 && h.spent[0].from <= t.now {
		qp := h.spent[0].number
		h.spent = h.spent[1:]
		return qp
	}
	return t.freshQP(end, place)
}

// sameTenant reports whether two connections belong to one tenant.
func (t *Traffic) sameTenant(a, b int32) bool {
	hosts := int32(t.c.Hosts[Fabric])
	return t.conns[a].place[Fabric]/hosts == t.conns[b].place[Fabric]/hosts
}

// freshQP assigns a QP to a host that the host never had.
func (t *Traffic) freshQP(end End, place int32) uint32 {
	h := &t.hosts[end][place]
	swap := uint32(0)
	if h.cross {
		swap = 1
	}
	if t.c.QPNs == QPSequential {
		base := t.c.QPBase[end]
		qp := (base + ((h.next - base) ^ swap)) & packet.MaxQP
		h.next++
		return max(qp, 2) // 0 and 1 are the management QPs
	}
	tenantSeed := splitmix.Mix(uint64(end)<<32 | uint64(int(place)%t.c.Hosts[end])) // tenants have the same QPNs
	for i := uint64(len(h.used)); ; i++ {
		qp := uint32(splitmix.Mix(t.c.Seed^tenantSeed+(i^uint64(swap))*0x9e3779b97f4a7c15) >> 40)
		if qp > 1 && !h.used[qp] {
			h.used[qp] = true
			return qp
		}
	}
}

// succeed makes the connection that replaces an ended one, and starts it at a time.
func (t *Traffic) succeed(id int32, start int64) {
	old := t.conns[id]
	r := newRNG(t.c.Seed ^ splitmix.Mix(uint64(old.slot)+1) ^ splitmix.Mix(uint64(id)<<32|1))
	c := Conn{Transport: old.Transport, QP: old.QP, Before: id, near: old.NextPSN, place: old.place, slot: old.slot, age: old.age + 1}
	keep := End(r.Below(2))
	switch {
	case old.Refused:
		c.age = old.age
		keep = old.Active // the passive side never sent its QPN, and may not have a QP
		c.QP[1-keep] = t.newQP(1-keep, c.place[1-keep])
	case t.c.Reuse == ReusePeerQP:
		c.QP[1-keep] = t.newQP(1-keep, c.place[1-keep])
	case t.c.Reuse == ReusePeerHost:
		hosts := int32(t.c.Hosts[1-keep])
		tenant := c.place[1-keep] / hosts
		c.place[1-keep] = tenant*hosts + (c.place[1-keep]+1)%hosts
		c.QP[1-keep] = t.newQP(1-keep, c.place[1-keep])
	case t.c.Reuse == ReuseShuffled:
		for end := range End(2) {
			qp := t.hosts[end][c.place[end]].takeFree(&r)
			c.QP[end], c.near[1-end] = qp.number, qp.next
		}
	}
	t.add(c, r, start)
}

func (h *host) takeFree(r *rng) freeQP {
	i, last := r.Below(uint64(len(h.free))), len(h.free)-1
	qp := h.free[i]
	h.free[i] = h.free[last]
	h.free = h.free[:last]
	return qp
}

// fail ends a connection that makes no progress: both QPs go to the error state.
func (l *live) fail() {
	l.t.conns[l.id].Failed = true
	l.finish()
}

// finish ends a connection in both hosts; packets still on the path will find no QP.
func (l *live) finish() {
	c := &l.t.conns[l.id]
	c.End = l.t.now
	for end := range End(2) {
		c.NextPSN[end] = l.sides[end].nextPSN()
		if h := &l.t.hosts[end][c.place[end]]; l.t.c.Reuse == ReuseShuffled && !c.Refused {
			h.free = append(h.free, freeQP{c.QP[end], l.sides[1-end].nextPSN()})
		}
	}
	l.t.live[l.id] = nil
	l.t.spare = append(l.t.spare, l)
	if c.Refused && c.Start > l.t.now || int(c.age) < l.t.c.Generations {
		if start := l.t.now + l.t.c.ReuseGap; l.t.c.Attack.Managers.Ahead > 0 { // the attacker knows it as early as possible
			l.t.succeed(l.id, start)
		} else {
			l.t.queue.push(start, taskSucceed, uint32(l.id))
		}
	} else {
		l.t.retired++
	}
}
