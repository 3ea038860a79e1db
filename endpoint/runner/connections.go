package runner

import (
	"fmt"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// This file handles connections of RDMA-CM. A sender requests one for each of its QPs and starts its messages once the connection is up. A
// receiver accepts as many as it has QPs.

// dial requests the connection of a QP from the peer, and gives the QP the new connection's number.
func (r *Runner) dial(id uint64) (err error) {
	to := endpoint.Peer{Addr: r.peer, MAC: r.c.PeerMAC}
	r.qps[id].number, err = r.host.Dial(r.now, to, r.c.CMPort, id)
	return err
}

// accept decides whether a peer may open another connection.
func (r *Runner) accept(from endpoint.Peer) (reason uint16) {
	switch {
	case r.stopped || r.c.Peer.IsValid() && from.Addr != packet.AddrFrom(r.c.Peer):
		return packet.CMConsumerReject
	case r.host.Connections() >= len(r.qps):
		return packet.CMNoQP
	}
	return 0
}

// changed handles a connection that came up or ended.
func (r *Runner) changed(now int64, c endpoint.Connection) {
	if !r.c.Send {
		r.peer = c.Peer.Addr
		return
	}
	q := &r.qps[c.ID]
	if q.peer = c.Peer.QP; c.Up {
		q.failed = r.start(now, int(c.ID)) != nil
		return
	}
	switch {
	case !r.stopped && c.Outcome == cm.Refused && c.Reason == packet.CMStaleConnection && !q.again:
		q.again = true // the receiver has ended the connection of a sender that was killed
		q.failed = r.dial(c.ID) != nil
	case !r.stopped:
		q.failed, q.outcome, q.reason = true, c.Outcome, c.Reason
	case q.peer == 0: // the load ended first
		q.failed, q.outcome = true, cm.Unanswered
	}
}

// cmError returns an error if the sender has no connection left.
func (r *Runner) cmError() error {
	q, n, peer := r.qps[0], len(r.qps), r.c.Peer
	switch up := r.host.CMCounters().Established > 0; {
	case up && q.outcome == cm.Closed:
		return fmt.Errorf("%v ended the %d connections", peer, n)
	case up:
		return nil // the QPs failed after connecting, which Err reports
	case q.outcome == cm.Refused:
		return fmt.Errorf("%v refused the %d connections: %s", peer, n, packet.CMReason(q.reason))
	}
	return fmt.Errorf("%v answered none of the requests for %d connections; check that the receiver runs with --cm and the same --cm-port, and that the sender has its "+
		"MAC address", peer, n)
}

// endSilent ends connections whose peer doesn't go on with rping's exchange.
func (r *Runner) endSilent() {
	if !r.c.Ping || r.stopped {
		return
	}
	for i := range r.qps {
		q := &r.qps[i]
		if q.failed || q.answeredAt == 0 || r.now-q.answeredAt < mostSilence {
			continue
		}
		q.failed, q.cause = true, fmt.Errorf("did not go on with rping's exchange for %d s; check that rping -s runs there", mostSilence/second)
		r.host.Disconnect(r.now, q.number)
	}
}

// refusals are the syndromes with which a peer refuses a request for good (IBTA 9.7.5.2), and what to check.
var refusals = map[uint8]string{
	0x61: "invalid request; check --verb, and that its receive buffers have --message bytes",
	0x62: "remote access error; check --rkey, --virtual-address, and that its memory there has --message bytes",
	0x63: "remote operational error; check that its receive buffers have --message bytes",
}

// causeOf explains why a QP failed, if the peer's answers show it.
func (r *Runner) causeOf(q *qpState) error {
	switch refusal := r.host.Refusal(q.number); {
	case refusals[refusal] != "":
		return fmt.Errorf("refused a request (NAK: %s)", refusals[refusal])
	case refusal != 0:
		return fmt.Errorf("refused a request (NAK with syndrome %#x)", refusal)
	case r.c.Ping:
		return fmt.Errorf("does not follow rping's exchange, or acknowledges nothing; check that rping -s runs there, with -S of at least --message")
	}
	return nil
}
