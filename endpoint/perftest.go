package endpoint

import "github.com/cnpgate/cnpgate/internal/packet"

// This file serves clients of perftest that exchange their parameters by RDMA-CM (ib_write_bw -R). Such a client opens a connection of its own for
// them. On it, client and server send each other messages in turn by SEND: versions of 16 octets, then other parameters, and keys, which are QPN, PSN,
// address and RKey. The server agrees with whatever the client asks for by returning each message as it is: the address and RKey to which the client then
// writes are its own, which a Host accepts. The client writes on further connections. When it has ended, it sends its keys, its results, and its keys
// again, and waits until the server ends the connections on which it wrote.

const (
	// PerftestPort is perftest's default port of RDMA-CM.
	PerftestPort = 18515

	perftestVersion = 16  // octets of the first message
	mostExchanged   = 512 // of any
)

// perftest is the state of a connection on which parameters are exchanged.
type perftest struct {
	q        *qp
	message  []byte // being returned
	keys     int    // length of the longest message: the keys
	messages uint64
	before   uint64 // requests that the host had accepted when the exchange began
	ended    int    // messages with keys since data came
}

// version reports whether a message has perftest's version, such as 6.05.
func version(b []byte) bool {
	return len(b) == perftestVersion && b[0] >= '0' && b[0] <= '9' && b[1] == '.' && b[perftestVersion-1] == 0
}

// exchange returns a message of the client.
func (p *perftest) exchange(now int64, b []byte) {
	if len(b) == 0 || len(b) > mostExchanged {
		return
	}
	h := p.q.h
	p.messages++
	p.keys = max(p.keys, len(b))
	p.message = append(p.message[:0], b...)
	if err := h.Start(Stream{QP: p.q.Number, Op: Send, Bytes: uint32(len(b)), At: now}); err != nil {
		return // the QP has failed
	}
	if h.counted.InSequence-p.before > p.messages && len(b) == p.keys {
		p.ended++
	}
}

// returned ends the client's other connections once it has its last message.
func (p *perftest) returned(now int64) {
	if p.ended < 2 {
		return
	}
	h := p.q.h
	for _, c := range h.manager.InUse() {
		if c.Peer.Addr == p.q.Peer.Addr && c.Local.Number != p.q.Number {
			h.Disconnect(now, c.Local.Number)
		}
	}
}

// perftestReceived handles a message on a connection for parameters, or the first one on any connection. It returns false if the connection isn't one.
func (q *qp) perftestReceived(now int64, b []byte, p *packet.Parsed) bool {
	if q.perftest == nil {
		if p.Opcode != packet.RCSendOnly || !version(b) {
			return false
		}
		q.perftest = &perftest{q: q, before: q.h.counted.InSequence - 1}
	}
	if p.Opcode == packet.RCSendOnly {
		q.perftest.exchange(now, b)
	}
	return true
}
