package replay

import (
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/health/dissect"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// icrcs counts packets whose invariant CRC is wrong, by the hosts that they go from and to. Their receiver drops them without a word.
type icrcs map[[2]packet.Addr]*icrcCount

// icrcCount are the packets of one direction; seen counts those, too, that the capture has cut. Of responses, answers counts one for each packet that caused them.
type icrcCount struct {
	seen, whole, wrong, answers, requests uint64
	qp, first, next                       uint32 // of the requests of one QP
	starts                                bool   // it goes back to its first request, or before
}

// mostICRCs bounds the pairs of hosts.
const mostICRCs = 1 << 16

// wrong reports whether a packet is whole and has a wrong ICRC. 0 is what a capture has that was made before the NIC writes the ICRC.
func wrong(o *dissect.Packet) (whole, wrong bool) {
	p, end := o.Parsed, int(o.Parsed.ICRC)
	const plain = 0x45 // IPv4 options: there is no rule how they count
	if p.Family == 4 && o.Frame[p.L3] != plain {
		return false, false
	}
	if !o.Whole || len(o.Wire) < end+packet.ICRCLen {
		return false, false
	}
	icrc := o.Wire[end:]
	sum := binary.LittleEndian.Uint32(icrc)
	if sum == 0 {
		return false, false
	}
	for _, withExtensionHeaders := range [...]bool{true, false} {
		packet.PutICRC(o.Wire, int(p.L3), int(p.BTH), end, withExtensionHeaders) // in place it is much faster
		right := binary.LittleEndian.Uint32(icrc) == sum
		if binary.LittleEndian.PutUint32(icrc, sum); right {
			return true, false
		}
	}
	return true, true
}

// note verifies a packet in the first pass.
func (s *icrcs) note(o *dissect.Packet) {
	whole, bad := wrong(o)
	if *s == nil {
		*s = icrcs{}
	}
	key := [2]packet.Addr{o.Parsed.Src, o.Parsed.Dst}
	c := (*s)[key]
	if c == nil {
		if len(*s) >= mostICRCs {
			return
		}
		c = &icrcCount{}
		(*s)[key] = c
	}
	c.seen++
	switch o.Parsed.Opcode.Role() {
	case packet.Request, packet.ReadRequest:
		c.request(o.Parsed.DestQP, o.Parsed.PSN)
	}
	switch o.Parsed.Opcode & 31 {
	case packet.RCAcknowledge, packet.RCAtomicAcknowledge, packet.RCReadRespFirst, packet.RCReadRespOnly:
		c.answers++
	}
	if whole {
		c.whole++
	}
	if bad {
		c.wrong++
	}
}

func (c *icrcCount) request(qp, psn uint32) {
	if c.requests++; c.requests == 1 {
		c.qp, c.first, c.next = qp, psn, psn
	}
	switch {
	case qp != c.qp:
	case ahead(psn, c.next) >= 0:
		c.next = (psn + 1) & packet.PSNMask
	case ahead(psn, c.first) <= 0:
		c.starts = true
	}
}

// rewritten reports whether the capture has other ICRCs than the wire: nearly all are wrong, as it was changed after it was made, or made before the NIC writes
// them. Then they are wrong both ways, and yet the hosts answer each other; or there are more answers than packets that a receiver can have accepted; or it has
// answers only, and their receiver doesn't go back to its first request, as one must that gets no answer (IBTA 9.7.6.1.3). If the
// other direction has answers of which none is whole, nothing tells this from corruption, and it is taken for it, too.
func (s icrcs) rewritten(from, to packet.Addr) bool {
	there, back := s[[2]packet.Addr{from, to}], s[[2]packet.Addr{to, from}]
	return there != nil && back != nil && there.wrong*10 > there.whole*9 &&
		(back.whole == 0 && back.seen > 0 || back.wrong*10 > back.whole*9 || back.answers > there.seen-there.wrong || there.requests == 0 && back.requests > 0 && !back.starts)
}

// corrupting are the pairs of hosts of which the receiver drops packets.
func (s icrcs) corrupting() map[[2]packet.Addr]bool {
	all := map[[2]packet.Addr]bool{}
	for key, c := range s {
		if c.wrong > 0 && !s.rewritten(key[0], key[1]) {
			all[key] = true
		}
	}
	return all
}

// verdicts are those about wrong ICRCs. If the file is damaged, they say so: that may be why.
func (s icrcs) verdicts(damaged bool) (all []health.Verdict) {
	why := "corrupted before here; their receiver drops them without an answer"
	advice := "find what changes covered fields on the way here (a NAT, a tunnel, a middlebox), or a link with bit errors; a capture whose addresses were " +
		"changed afterwards shows this, too"
	if damaged {
		why, advice = "corrupted before here, or with the file, which is damaged", "copy the capture again, and judge it again; if this stays, "+advice
	}
	for key := range s.corrupting() {
		c := s[key]
		all = append(all, health.Verdict{
			Name: health.WrongICRC, Subject: fmt.Sprintf("%v -> %v", key[0].Netip(), key[1].Netip()), Connections: 1, Weight: c.wrong,
			Evidence: fmt.Sprintf("%d of %d packets have a wrong ICRC here: %s", c.wrong, c.whole, why), Advice: advice,
		})
	}
	return all
}
