package health

import (
	"fmt"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// mtus are the path MTUs that the two ends of a half use: all packets of a message but the last have it, and a READ takes as many PSNs as it has responses of
// it (IBTA 9.7.2, 9.7.5.2.3). The ends must agree: a requester takes a response of another length for an error, and its QP ends.
type mtus struct {
	requester uint32 // payload of a full packet of its own; 0: not known
	responder uint32 // and of a READ response
	fits      uint8  // 256 shifted by which bits explains the PSNs of all READs and of what followed them at once
	spaced    uint8  // how many these are
}

const mtuBits = 5 // 256 to 4096

// follows notes how many PSNs a READ takes, by the request behind it.
func (m *mtus) follows(message, psns uint32) {
	fits := uint8(0)
	for i := range mtuBits {
		if responsesTo(message, minimum<<i) == psns {
			fits |= 1 << i
		}
	}
	if m.spaced > 0 {
		fits &= m.fits
	}
	m.fits, m.spaced = fits, min(m.spaced+1, 1<<7)
}

// differ reports whether the ends use different path MTUs, and the requester's. Requests that are missing between READs make these seem to take more PSNs, but not
// all of them equally, nor fewer.
func (m *mtus) differ() (requester uint32, is bool) {
	const several = 4
	if m.responder == 0 || m.responder > maximum {
		return 0, false
	}
	if m.requester != 0 {
		return m.requester, m.requester != m.responder && m.requester <= maximum
	}
	for i := range mtuBits {
		of := uint32(minimum << i)
		if m.fits>>i&1 == 0 {
			continue
		}
		if of == m.responder {
			return 0, false
		}
		requester, is = of, of > m.responder || m.spaced >= several
	}
	return requester, is
}

func mtuDiffers(c *Connection, i int) (Verdict, bool) {
	h := &c.Half[i]
	own, is := h.mtus.differ()
	if !is {
		return Verdict{}, false
	}
	from, to := c.End[i].Addr.Netip(), c.End[i^1].Addr.Netip()
	return Verdict{
		Weight:   h.Messages[ReadOp],
		Evidence: fmt.Sprintf("%v counts with a path MTU of %d bytes, and %v answers its READs with packets of %d bytes: the requester takes them for an error, and its QP ends", from, own, to, h.mtus.responder),
		Advice: fmt.Sprintf("give both QPs the same path MTU, which the smaller active_mtu allows: %d bytes (ibv_modify_qp's path_mtu, perftest's -m; ibv_devinfo lists active_mtu, which follows from the interface's MTU)",
			min(own, h.mtus.responder)),
	}, true
}

// readFollowed notes how many PSNs the last READ takes, if a new request is the one behind it.
func (m *mtus) readFollowed(h *Half, p *Packet) {
	if r := &h.read; !r.Cut && h.next == (r.PSN+h.psnsOf(r))&packet.PSNMask {
		m.follows(r.Message, uint32(ahead(p.PSN, r.PSN)))
	}
}
