package replay_test

import (
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/testkit/rdmanet"
)

// causesIn are the true causes, of all connections that the QPs of one serve.
func causesIn(c *rdmanet.Capture, h *rdmanet.Half) map[string]uint64 {
	all := map[string]uint64{}
	for _, conn := range c.Network.Conns {
		if conn == h.Conn || conn.Again(h.Conn) {
			for cause, n := range c.Causes(conn.Half[h.End]) {
				all[cause] += n
			}
		}
	}
	return all
}

// causesOf are the causes that a report gives for a half's retransmissions.
func causesOf(h *rdmanet.Half, r *health.Report) map[string]uint64 {
	all := map[string]uint64{}
	end := h.End
	addr := func(e int) netip.Addr { return h.Conn.Host[e].Addr }
	for i := range r.Connections {
		c := &r.Connections[i]
		for _, s := range c.Requests {
			from, to := c.Ends[s.Requester], c.Ends[s.Requester^1]
			if from.IP != addr(end) || to.IP != addr(end^1) || to.QP != 0 && to.QP != h.Conn.QP[end^1] || from.QP != 0 && from.QP != h.Conn.QP[end] {
				continue
			}
			for cause, n := range s.Causes {
				all[cause] += n.Packets
			}
		}
	}
	return all
}

func (j *judged) compareCauses(c *rdmanet.Capture, h *rdmanet.Half, r *health.Report) {
	want, got := causesIn(c, h), causesOf(h, r)
	of := func(cause string) *causes {
		if j.causes[cause] == nil {
			j.causes[cause] = &causes{}
		}
		return j.causes[cause]
	}
	unknown := got[health.Unknown.String()]
	for cause := health.Cause(0); cause < health.Unknown; cause++ {
		name := cause.String()
		w, g := want[name], got[name]
		if w+g == 0 {
			continue
		}
		o := of(name)
		o.all += w
		o.right += min(w, g)
		o.wrong += max(g, w) - w
		left := w - min(w, g)
		o.unknown += min(left, unknown)
		o.missed += left - min(left, unknown)
		if g > w {
			j.note(c, h.Conn, "cause "+name+" wrong")
		}
		if left > unknown {
			j.note(c, h.Conn, "cause "+name+" missed")
		}
		unknown -= min(left, unknown)
	}
	if len(want)+len(got) > 0 {
		j.details = append(j.details, fmt.Sprintf("requests of %v to %v, QP %d: causes %v, true ones %v", h.Conn.Host[h.End].Addr, h.Conn.Host[h.End^1].Addr, h.Conn.QP[h.End^1], got, want))
	}
}
