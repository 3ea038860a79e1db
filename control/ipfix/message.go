// Package ipfix exports the health of RDMA connections as flow records (IPFIX, RFC 7011) over UDP. It has its own encoder, of two templates: the libraries
// for Go bring Kafka, DTLS and Protocol Buffers with them.
package ipfix

import (
	"encoding/binary"
	"net/netip"

	"github.com/cnpgate/cnpgate/health"
)

// Enterprise is the private enterprise number of the elements that IANA doesn't have: that of examples (RFC 5612), as the project has none.
const Enterprise = 32473

// element is an information element of a template: the value that a record has for it.
type element struct {
	id, length uint16
	enterprise bool
	value      func(r *record) uint64
}

// record is one direction of a connection: the requests of an end. Counts are since the last export.
type record struct {
	src, dst             netip.Addr
	srcQP, dstQP         uint32
	packets, bytes       uint64
	start, end           int64 // Unix time, ns
	resent               map[string]uint64
	lostUp, lostDown     uint64
	rtt                  uint64 // ns
	naks, rnr, ce, cnps  uint64
	outOfOrder, verdicts uint64
}

const (
	udp      = 17
	rocePort = 4791
	million  = 1_000_000
)

func cause(c health.Cause) func(*record) uint64 {
	name := c.String()
	return func(r *record) uint64 { return r.resent[name] }
}

// elements follow the two addresses.
var elements = []element{
	{4, 1, false, func(*record) uint64 { return udp }},                           // protocolIdentifier
	{11, 2, false, func(*record) uint64 { return rocePort }},                     // destinationTransportPort
	{2, 8, false, func(r *record) uint64 { return r.packets }},                   // packetDeltaCount
	{1, 8, false, func(r *record) uint64 { return r.bytes }},                     // octetDeltaCount
	{152, 8, false, func(r *record) uint64 { return uint64(r.start / million) }}, // flowStartMilliseconds
	{153, 8, false, func(r *record) uint64 { return uint64(r.end / million) }},   // flowEndMilliseconds
	{1, 4, true, func(r *record) uint64 { return uint64(r.srcQP) }},              // the requester's QP
	{2, 4, true, func(r *record) uint64 { return uint64(r.dstQP) }},              // the responder's QP
	{3, 8, true, cause(health.NAKSequence)},                                      // packets sent again, by cause
	{4, 8, true, cause(health.RNR)},                                              //
	{5, 8, true, cause(health.Implied)},                                          //
	{6, 8, true, cause(health.TimeOut)},                                          //
	{7, 8, true, cause(health.Spurious)},                                         //
	{8, 8, true, func(r *record) uint64 { return r.lostUp }},                     // packets lost before the gateway
	{9, 8, true, func(r *record) uint64 { return r.lostDown }},                   // and behind it
	{10, 8, true, func(r *record) uint64 { return r.rtt }},                       // half of the ACKs take at most so long, ns
	{11, 8, true, func(r *record) uint64 { return r.naks }},                      //
	{12, 8, true, func(r *record) uint64 { return r.rnr }},                       //
	{13, 8, true, func(r *record) uint64 { return r.ce }},                        //
	{14, 8, true, func(r *record) uint64 { return r.cnps }},                      //
	{15, 8, true, func(r *record) uint64 { return r.outOfOrder }},                //
	{16, 2, true, func(r *record) uint64 { return r.verdicts }},                  // number of verdicts
}

const (
	version      = 10
	headerLen    = 16
	setHeaderLen = 4
	templateSet  = 2
	template4    = 256 // of IPv4; that of IPv6 follows
	largest      = 1400
)

// addresses are the elements of the addresses: source and destination, of IPv4 and IPv6.
var addresses = [2][2]element{{{id: 8, length: 4}, {id: 12, length: 4}}, {{id: 27, length: 16}, {id: 28, length: 16}}}

var be = binary.BigEndian

// appendTemplates appends the set of both templates.
func appendTemplates(b []byte) []byte {
	at := len(b)
	b = be.AppendUint16(be.AppendUint16(b, templateSet), 0)
	for family, ends := range addresses {
		b = be.AppendUint16(be.AppendUint16(b, uint16(template4+family)), uint16(len(ends)+len(elements)))
		for _, e := range append(ends[:], elements...) {
			if !e.enterprise {
				b = be.AppendUint16(be.AppendUint16(b, e.id), e.length)
				continue
			}
			b = be.AppendUint32(be.AppendUint16(be.AppendUint16(b, e.id|0x8000), e.length), Enterprise)
		}
	}
	be.PutUint16(b[at+2:], uint16(len(b)-at))
	return b
}

// appendRecord appends a set with one record.
func appendRecord(b []byte, r *record) []byte {
	at, family := len(b), 0
	if r.src.Is6() {
		family = 1
	}
	b = be.AppendUint16(be.AppendUint16(b, uint16(template4+family)), 0)
	b = append(append(b, r.src.AsSlice()...), r.dst.AsSlice()...)
	for _, e := range elements {
		var v [8]byte
		be.PutUint64(v[:], e.value(r))
		b = append(b, v[8-e.length:]...)
	}
	be.PutUint16(b[at+2:], uint16(len(b)-at))
	return b
}

// messages are the records in messages of at most largest bytes, each with the templates: UDP may lose any. sequence is the number of records sent before.
func messages(all []record, now uint32, domain uint32, sequence uint32) (out [][]byte) {
	var b []byte
	begun := 0
	for i := range all {
		if b != nil && len(b)+setHeaderLen+recordLen > largest {
			out, b = append(out, finish(b)), nil
		}
		if b == nil {
			b = make([]byte, headerLen, largest)
			be.PutUint16(b, version)
			be.PutUint32(b[4:], now)
			be.PutUint32(b[8:], sequence+uint32(begun))
			be.PutUint32(b[12:], domain)
			b = appendTemplates(b)
		}
		b = appendRecord(b, &all[i])
		begun++
	}
	if b != nil {
		out = append(out, finish(b))
	}
	return out
}

func finish(b []byte) []byte {
	be.PutUint16(b[2:], uint16(len(b)))
	return b
}

// recordLen bounds the length of a record.
var recordLen = func() (n int) {
	for _, e := range elements {
		n += int(e.length)
	}
	return n + 2*16
}()
