package transport

import "github.com/cnpgate/cnpgate/internal/packet"

// Op is the operation of a message.
type Op uint8

// Operations of messages. The peer answers READs and atomics with data.
const (
	Write Op = iota // RDMA WRITE
	WriteImm
	Send
	SendImm
	Read   // RDMA READ
	Atomic // FetchAdd
)

// answered reports whether a message is complete only when its own response has arrived.
func (op Op) answered() bool { return op == Read || op == Atomic }

// Service is a transport service: the three high bits of its opcodes (IBTA table 38).
type Service uint8

// Transport services.
const (
	RC  = Service(packet.RCSendFirst)
	UC  = Service(packet.UCSendFirst)
	UD  = Service(packet.UDSendOnly &^ packet.RCSendOnly)
	XRC = Service(packet.XRCSendFirst)
)

// reliable reports whether requests of the service are acknowledged.
func (s Service) reliable() bool { return s == RC || s == XRC }

const operation = 0x1f // of an opcode, the same in all transport services

// row is the opcodes of an operation's packets.
type row struct{ first, middle, last, only packet.Opcode }

var requestOpcodes = [...]row{
	Write:    {packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCWriteLast, packet.RCWriteOnly},
	WriteImm: {packet.RCWriteFirst, packet.RCWriteMiddle, packet.RCWriteLastImm, packet.RCWriteOnlyImm},
	Send:     {packet.RCSendFirst, packet.RCSendMiddle, packet.RCSendLast, packet.RCSendOnly},
	SendImm:  {packet.RCSendFirst, packet.RCSendMiddle, packet.RCSendLastImm, packet.RCSendOnlyImm},
	Read:     {packet.RCReadRequest, packet.RCReadRequest, packet.RCReadRequest, packet.RCReadRequest},
	Atomic:   {packet.RCFetchAdd, packet.RCFetchAdd, packet.RCFetchAdd, packet.RCFetchAdd},
}

var readResponses = row{packet.RCReadRespFirst, packet.RCReadRespMiddle, packet.RCReadRespLast, packet.RCReadRespOnly}

// opcode returns the opcode of the index-th of n packets (IBTA table 38).
func (r *row) opcode(index, n uint32, s Service) packet.Opcode {
	op := r.middle
	switch {
	case n == 1:
		op = r.only
	case index == 0:
		op = r.first
	case index+1 == n:
		op = r.last
	}
	return op | packet.Opcode(s)
}

// requests are the requests that a responder supports, by opcode.
var requests = func() (all [operation + 1]struct {
	Request
	known bool
}) {
	for op, r := range requestOpcodes {
		for _, code := range []packet.Opcode{r.first, r.middle, r.last, r.only} {
			all[code].Request = Request{Op: Op(op), Last: code == r.last || code == r.only}
			all[code].known = true
		}
	}
	return all
}()

// RequestOf begins the description of a request packet with what its opcode determines. ok is false for opcodes that a responder of the
// service doesn't support.
func RequestOf(s Service, code packet.Opcode) (r Request, ok bool) {
	if e := &requests[code&operation]; e.known && code&^operation == packet.Opcode(s) {
		return e.Request, true
	}
	return Request{}, false
}
