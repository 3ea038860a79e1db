package main

import (
	"fmt"
	"io"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// notification is one frame that the gateway sent to the sender's side.
type notification struct {
	captured
	parsed packet.Parsed
	said   cnpdec.Notification
	reason cnpdec.Reason // Accepted, or why the sender refuses it
}

// readNotification decodes a frame as the sender does: the sender trusts the gateway, and knows its own QPs and their peers.
func readNotification(f captured) notification {
	owns := func(qp, first uint32) bool { return qp-first < qps }
	r := &cnpdec.Receiver{
		Code: packet.DefaultCodePoints, Extension: packet.LongHaulCNP,
		Trusted:   func(_ packet.Notification, src packet.Addr) bool { return src == gateway6 },
		KnownQP:   func(qp uint32) bool { return owns(qp, senderFirstQP) },
		KnownFlow: func(dst packet.Addr, qp uint32) bool { return dst == receiver && owns(qp, receiverFirstQP) },
	}
	n := notification{captured: f, parsed: f.parse()}
	n.reason = r.Decode(n.data, &n.parsed, &n.said)
	return n
}

// addressed reports whether the notification is for the sender.
func (n *notification) addressed() bool {
	return n.parsed.Dst == sender && [6]byte(n.data) == senderMAC
}

// showNotifications prints the number of notifications in each run, and the first one decoded.
func showNotifications(w io.Writer, runs []*run) {
	code := packet.DefaultCodePoints
	for _, r := range runs {
		fmt.Fprintf(w, "  %s: %d", r.name, len(r.notifications))
		if len(r.notifications) == 0 {
			fmt.Fprintln(w)
			continue
		}
		n := &r.notifications[0]
		fmt.Fprintf(w, ". The first, %.1f ms after the sender's first frame:\n", float64(n.at-r.start)*1e-6)
		if n.reason != cnpdec.Accepted {
			fmt.Fprintf(w, "    refused: %s\n", n.reason.Explain())
			continue
		}
		decode.WriteText(w, decode.Describe(n.data, &n.parsed, &n.said, &code))
	}
}
