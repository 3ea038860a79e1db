package endpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/transport"
)

// This file implements the exchange by which librdmacm's rping tests a connection. The client advertises a buffer by SEND; the server fetches its content by
// READ, and answers by SEND. Then the client advertises a second buffer, the server returns the content by WRITE, and answers by SEND. That is a round.
// An advertisement is 16 octets: address, RKey and length of the buffer, in network byte order. Only one message is under way at a time.

const (
	advertLen = 16
	// MaxPing is the largest buffer of a round, in bytes. It is rping's, and tells an advertisement from other messages of 16 bytes.
	MaxPing = 1<<16 - 1
	// RpingPort is rping's default port of RDMA-CM.
	RpingPort = 7174
)

// Region is memory of the peer, for READ and WRITE.
type Region struct {
	Address uint64
	RKey    uint32
}

// ping is the state of a QP's exchange.
type ping struct {
	q         *qp
	client    bool
	returning bool // the second half of the round
	failed    bool
	id        uint64 // client: of the completions
	posted    int64  // client: when the round began, ns
	data      []byte // content of the first buffer
	sink      []byte // client: content of the second buffer
	at        uint32 // client: where the next packet of a WRITE goes in sink
	readPSN   uint32 // client: of the first response to the server's READ
	busy      bool   // server: a READ or WRITE is under way
	advert    [advertLen]byte
}

// Ping starts rounds of rping's exchange with the server at the other end of a QP, with buffers of this many bytes, without end. Each round is one completion.
// The payload must be real.
func (h *Host) Ping(now int64, number, size uint32, id uint64) error {
	q := h.byNumber[number]
	switch {
	case q == nil || q.dead:
		return fmt.Errorf("endpoint: there is no QP 0x%06x; open it first", number)
	case h.c.Payload != PayloadReal:
		return fmt.Errorf("endpoint: rping's exchange needs real payload; set Payload to PayloadReal")
	case size < 1 || size > MaxPing:
		return fmt.Errorf("endpoint: rping's buffers have %d bytes; expected 1 to %d", size, MaxPing)
	}
	p := &ping{q: q, client: true, id: id, posted: now, data: make([]byte, size), sink: make([]byte, size)}
	for i := range p.data {
		p.data[i] = 'A' + byte(i%26)
	}
	q.ping = p
	q.ping.advertise(now)
	return nil
}

// advertise sends the address of the client's present buffer. A host has one region; the second buffer follows the first.
func (p *ping) advertise(now int64) {
	address := uint64(regionBase)
	if p.returning {
		address += MaxPing + 1
	}
	binary.BigEndian.PutUint64(p.advert[:], address)
	binary.BigEndian.PutUint32(p.advert[8:], regionKey^p.q.Number)
	binary.BigEndian.PutUint32(p.advert[12:], uint32(len(p.data)))
	p.post(now, Send, advertLen)
}

// post posts the next message of the exchange.
func (p *ping) post(now int64, op Op, size uint32) {
	if err := p.q.h.Start(Stream{QP: p.q.Number, Op: op, Bytes: size, At: now}); err != nil {
		p.fail(now)
	}
}

// fail ends a connection whose peer doesn't follow the exchange.
func (p *ping) fail(now int64) {
	if p.failed {
		return
	}
	p.failed = true
	p.q.h.counters.PingErrors++
	if p.client {
		p.q.h.complete(now, transport.Message{ID: p.id, Posted: p.posted}, true)
	}
	p.q.h.Disconnect(now, p.q.Number)
}

// pingReceived handles a request of the peer that arrived in sequence. A passive end becomes a server if the first message is an advertisement, or
// perftest's version.
func (q *qp) pingReceived(now int64, r *transport.Request, frame []byte, p *packet.Parsed) {
	if q.ping == nil {
		if q.perftest != nil || q.mayServe {
			if q.perftestReceived(now, payload(frame, p), p) {
				q.mayServe = false
				return
			}
		}
		first := q.mayServe
		if q.mayServe = false; !first || p.Opcode != packet.RCSendOnly {
			return
		}
		if _, size, ok := advertised(payload(frame, p)); !ok || size > MaxPing {
			return
		}
		q.ping = &ping{q: q}
	}
	switch {
	case r.Op == transport.Read && q.ping.client:
		q.ping.readPSN = p.PSN
	case (r.Op == transport.Write || r.Op == transport.WriteImm) && q.ping.client: // they begin alike
		q.ping.written(frame, p)
	case p.Opcode == packet.RCSendOnly && q.ping.client:
		q.ping.answered(now)
	case p.Opcode == packet.RCSendOnly:
		q.ping.serve(now, payload(frame, p))
	}
}

// payload is the payload of a packet, without padding.
func payload(frame []byte, p *packet.Parsed) []byte {
	begin, end := int(p.Ext())+p.Opcode.HeadersLen(), int(p.ICRC)-int(frame[p.BTH+1]>>padShift&(wordLen-1))
	if begin >= end {
		return nil
	}
	return frame[begin:end]
}

// advertised reads an advertisement.
func advertised(b []byte) (to Region, size uint32, ok bool) {
	if len(b) != advertLen {
		return to, 0, false
	}
	size = binary.BigEndian.Uint32(b[12:])
	return Region{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}, size, size > 0
}

// serve follows an advertisement of the client.
func (p *ping) serve(now int64, b []byte) {
	to, size, ok := advertised(b)
	if !ok || size > MaxPing || p.busy {
		p.fail(now)
		return
	}
	p.q.remote, p.busy = to, true
	if p.returning {
		p.post(now, Write, min(size, uint32(len(p.data))))
		return
	}
	p.data = slices.Grow(p.data[:0], int(size))[:size]
	p.post(now, Read, size)
}

// answered handles the server's answer to an advertisement.
func (p *ping) answered(now int64) {
	if p.returning {
		if !bytes.Equal(p.data, p.sink) {
			p.fail(now)
			return
		}
		p.q.h.counters.Pings++
		p.q.h.complete(now, transport.Message{ID: p.id, Posted: p.posted, Bytes: uint32(len(p.data))}, false)
		p.posted = now
		clear(p.sink)
	}
	p.returning = !p.returning
	p.advertise(now)
}

// written stores the payload of a WRITE in the client's second buffer.
func (p *ping) written(frame []byte, x *packet.Parsed) {
	if x.Opcode.Headers()&packet.HasRETH != 0 {
		p.at = uint32(packet.DecodeRETH(frame[x.Ext():]).VirtualAddress - regionBase - MaxPing - 1)
	}
	b := payload(frame, x)
	copy(p.sink[min(p.at, uint32(len(p.sink))):], b)
	p.at += uint32(len(b))
}

// read stores the payload of a READ response.
func (p *ping) read(frame []byte, x *packet.Parsed) {
	index, ok := p.q.requester.Awaits(x.PSN)
	if at := uint64(index) * uint64(p.q.h.c.MTU); ok && at < uint64(len(p.data)) {
		copy(p.data[at:], payload(frame, x))
	}
}

// done handles the end of a message of the exchange.
func (p *ping) done(now int64, m transport.Message, failed bool) {
	switch {
	case failed:
		p.fail(now)
	case p.client || m.Op == transport.Send:
	default:
		if m.Op == transport.Write {
			p.q.h.counters.Pings++
		}
		p.returning, p.busy = m.Op == transport.Read, false
		p.post(now, Send, advertLen) // its content doesn't matter
	}
}

// content is what the index-th packet of a message or of a READ response carries.
func (p *ping) content(op transport.Op, index, mtu uint32) []byte {
	b := p.data
	if op == transport.Send {
		b = p.advert[:]
	}
	return b[min(uint64(index)*uint64(mtu), uint64(len(b))):]
}
