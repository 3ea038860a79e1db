package replay

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/health/dissect"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// account counts what was examined of a capture, and what was not, by reason.
type account struct {
	examined uint64
	other    uint64 // frames that were not examined
	unread   map[unreadKey]*health.Unread
}

type unreadKey struct {
	reason dissect.Reason
	detail string
}

// mostUnread bounds the kinds of frames that are counted one by one; the others count for their reason alone.
const mostUnread = 64

// note counts a frame; number is from 1.
func (a *account) note(o *dissect.Packet, number uint64) {
	reason := o.Reason
	switch {
	case reason != dissect.None:
		a.other++
	case o.Cut && o.Parsed.Opcode.Headers()&packet.HasAETH != 0 && o.Parsed.Ext()+o.Parsed.Opcode.Offset(packet.HasAETH) >= len(o.Real):
		reason = dissect.HeadersCut // whether it is an ACK or a NAK isn't known
	default:
		a.examined++
		return
	}
	named := *o
	named.Reason = reason
	key := unreadKey{reason: reason}
	if reason != dissect.HeadersCut {
		key.detail = dissect.Detail(&named)
	}
	a.add(key, health.Unread{Reason: reason.String(), First: number, RDMA: reason.RDMA(), Detail: dissect.Detail(&named), Advice: reason.Advice()})
}

// add counts a frame of a kind, of which first says what it is if it is the first one.
func (a *account) add(key unreadKey, first health.Unread) {
	if a.unread == nil {
		a.unread = map[unreadKey]*health.Unread{}
	}
	if len(a.unread) >= mostUnread && a.unread[key] == nil {
		key.detail = ""
	}
	u := a.unread[key]
	if u == nil {
		u = &first
		a.unread[key] = u
	}
	u.Frames++
}

// frames is the account of all frames: those with RDMA first.
func (a *account) frames(total uint64) *health.Frames {
	f := &health.Frames{Total: total, Examined: a.examined, Unread: []health.Unread{}}
	for _, u := range slices.Collect(maps.Values(a.unread)) {
		f.Unread = append(f.Unread, *u)
	}
	slices.SortFunc(f.Unread, func(x, y health.Unread) int {
		if x.RDMA != y.RDMA {
			return map[bool]int{true: -1, false: 1}[x.RDMA]
		}
		return cmp.Or(cmp.Compare(y.Frames, x.Frames), cmp.Compare(x.First, y.First))
	})
	return f
}

// copy counts a copy of a packet.
func (a *account) copy(number uint64) {
	a.other++
	const reason = "captured-twice"
	a.add(unreadKey{detail: reason}, health.Unread{Reason: reason, First: number, Detail: "copies of packets that are examined", Advice: "see the notes"})
}

// link counts a frame of a link type that isn't read.
func (a *account) link(name string, number uint64) {
	a.other++
	a.add(unreadKey{detail: name}, health.Unread{Reason: health.ReasonLinkType, First: number, Detail: name, Advice: "capture at an Ethernet interface"})
}
