package packet

import "fmt"

// Headers is a set of extended transport headers. Its bits are in the order the headers have on the wire.
type Headers uint16

// The extended transport headers (IBTA 9.3, Annexes A14 and A19).
const (
	HasRDETH        Headers = 1 << iota // reliable datagram
	HasDETH                             // datagram
	HasXRCETH                           // extended reliable connection
	HasFETH                             // flush
	HasRETH                             // RDMA
	HasAtomicETH                        // atomic request
	HasAETH                             // acknowledgement
	HasAtomicAckETH                     // atomic acknowledgement
	HasImmDt                            // immediate data
	HasIETH                             // invalidate
	headerKinds     = iota
)

// headerLens are the lengths in octets, by bit of Headers.
var headerLens = [headerKinds]uint8{
	RDETHLen, DETHLen, XRCETHLen, FETHLen, RETHLen, AtomicETHLen, AETHLen, AtomicAckETHLen, ImmDtLen, IETHLen,
}

// operation is the meaning of the five low bits of an opcode in most transport services (IBTA table 38).
type operation struct {
	name     string
	ext      Headers
	response bool // from responder to requester
	data     bool
}

var operations = [32]operation{
	0x00: {name: "SEND First", data: true},
	0x01: {name: "SEND Middle", data: true},
	0x02: {name: "SEND Last", data: true},
	0x03: {name: "SEND Last with Immediate", ext: HasImmDt, data: true},
	0x04: {name: "SEND Only", data: true},
	0x05: {name: "SEND Only with Immediate", ext: HasImmDt, data: true},
	0x06: {name: "RDMA WRITE First", ext: HasRETH, data: true},
	0x07: {name: "RDMA WRITE Middle", data: true},
	0x08: {name: "RDMA WRITE Last", data: true},
	0x09: {name: "RDMA WRITE Last with Immediate", ext: HasImmDt, data: true},
	0x0a: {name: "RDMA WRITE Only", ext: HasRETH, data: true},
	0x0b: {name: "RDMA WRITE Only with Immediate", ext: HasRETH | HasImmDt, data: true},
	0x0c: {name: "RDMA READ Request", ext: HasRETH},
	0x0d: {name: "RDMA READ response First", ext: HasAETH, response: true, data: true},
	0x0e: {name: "RDMA READ response Middle", response: true, data: true},
	0x0f: {name: "RDMA READ response Last", ext: HasAETH, response: true, data: true},
	0x10: {name: "RDMA READ response Only", ext: HasAETH, response: true, data: true},
	0x11: {name: "Acknowledge", ext: HasAETH, response: true},
	0x12: {name: "ATOMIC Acknowledge", ext: HasAETH | HasAtomicAckETH, response: true},
	0x13: {name: "CmpSwap", ext: HasAtomicETH},
	0x14: {name: "FetchAdd", ext: HasAtomicETH},
	0x15: {name: "RESYNC"},
	0x16: {name: "SEND Last with Invalidate", ext: HasIETH, data: true},
	0x17: {name: "SEND Only with Invalidate", ext: HasIETH, data: true},
	0x1c: {name: "FLUSH", ext: HasFETH | HasRETH},
	0x1d: {name: "ATOMIC WRITE", ext: HasRETH, data: true},
}

// service is the meaning of the three high bits of an opcode.
type service struct {
	name         string
	operations   uint32 // by bit: those it has
	all, request Headers
}

const (
	sendAndWrite = 0x00000fff
	readToAtomic = 0x001ff000
	resync       = 0x00200000
	invalidate   = 0x00c00000
	placement    = 0x30000000
	sendOnly     = 0x00000030
)

var services = [8]service{
	0: {name: "RC", operations: sendAndWrite | readToAtomic | invalidate | placement},
	1: {name: "UC", operations: sendAndWrite},
	2: {name: "RD", operations: sendAndWrite | readToAtomic | resync, all: HasRDETH, request: HasDETH},
	3: {name: "UD", operations: sendOnly, all: HasDETH},
	5: {name: "XRC", operations: sendAndWrite | readToAtomic | invalidate, request: HasXRCETH},
}

// opcodeInfo has the properties of an opcode that Parse needs, in four bytes.
type opcodeInfo struct {
	ext   Headers
	len   uint8 // of the extended transport headers, octets
	flags uint8
}

const (
	opcodeKnown = 1 << iota
	opcodeData
)

var opcodes, opcodeNames = opcodeTables()

func opcodeTables() (infos [256]opcodeInfo, names [256]string) {
	for i := range infos {
		s, o := &services[i>>5], &operations[i&31]
		if s.operations>>(i&31)&1 == 0 {
			continue
		}
		ext := s.all | o.ext
		if !o.response {
			ext |= s.request
		}
		infos[i] = opcodeInfo{ext: ext, len: uint8(headersLen(ext)), flags: opcodeKnown}
		if o.data {
			infos[i].flags |= opcodeData
		}
		names[i] = s.name + " " + o.name
	}
	infos[CNP].flags, names[CNP] = opcodeKnown, "CNP"
	return infos, names
}

func headersLen(h Headers) (n int) {
	for i, l := range headerLens {
		if h>>i&1 != 0 {
			n += int(l)
		}
	}
	return n
}

// Known reports whether IBTA defines the opcode.
func (o Opcode) Known() bool { return opcodes[o].flags&opcodeKnown != 0 }

// Headers returns the extended transport headers that follow the BTH.
func (o Opcode) Headers() Headers { return opcodes[o].ext }

// HeadersLen is the length of all extended transport headers in octets.
func (o Opcode) HeadersLen() int { return int(opcodes[o].len) }

// Offset is the distance in octets from Parsed.Ext() to the header h, one bit of Headers(), which the opcode must have.
func (o Opcode) Offset(h Headers) int { return headersLen(opcodes[o].ext & (h - 1)) }

// HasPayload reports whether the packet carries data: SEND, RDMA WRITE, RDMA READ response and ATOMIC WRITE.
func (o Opcode) HasPayload() bool { return opcodes[o].flags&opcodeData != 0 }

// Transport is the transport service, "RC", "UC", "RD", "UD" or "XRC", or "CNP"; "" for an unknown opcode.
func (o Opcode) Transport() string {
	switch {
	case o == CNP:
		return "CNP"
	case !o.Known():
		return ""
	}
	return services[o>>5].name
}

// String is IBTA's name with the transport service in front, such as "RC RDMA WRITE First".
func (o Opcode) String() string {
	if !o.Known() {
		return fmt.Sprintf("opcode 0x%02x", uint8(o))
	}
	return opcodeNames[o]
}

// Role is the side of a connection that sends packets of an opcode, and so whose PSNs they carry (IBTA 9.7.2): a request carries its
// sender's PSN, a response that of the request that it answers.
type Role uint8

const (
	// NoRole is for datagrams and CNPs, which belong to no connection.
	NoRole Role = iota
	Request
	// ReadRequest is a request that uses as many PSNs as its response has packets.
	ReadRequest
	Response
)

// Role is the role of a connection's packets (RC, UC and XRC).
func (o Opcode) Role() Role { return roles[o] }

// Roles are the roles of all opcodes, for assembly. Nobody may change them.
func Roles() *[256]Role { return &roles }

var roles = func() (r [256]Role) {
	for i := range r {
		name := services[i>>5].name
		if !Opcode(i).Known() || name != "RC" && name != "UC" && name != "XRC" {
			continue
		}
		switch {
		case operations[i&31].response:
			r[i] = Response
		case i&31 == int(RCReadRequest):
			r[i] = ReadRequest
		default:
			r[i] = Request
		}
	}
	return r
}()
