package packet

import "testing"

// opcodeTruth lists every opcode (IBTA 9.2.1 table 38, Annexes A14, A17, A19): name, octets of extended transport headers, where in
// these DETH's source QP is (0: nowhere) and whether data follows.
var opcodeTruth = map[Opcode]struct {
	name     string
	ext      int
	sourceQP int
	data     bool
}{
	0x00: {"RC SEND First", 0, 0, true},
	0x01: {"RC SEND Middle", 0, 0, true},
	0x02: {"RC SEND Last", 0, 0, true},
	0x03: {"RC SEND Last with Immediate", 4, 0, true},
	0x04: {"RC SEND Only", 0, 0, true},
	0x05: {"RC SEND Only with Immediate", 4, 0, true},
	0x06: {"RC RDMA WRITE First", 16, 0, true},
	0x07: {"RC RDMA WRITE Middle", 0, 0, true},
	0x08: {"RC RDMA WRITE Last", 0, 0, true},
	0x09: {"RC RDMA WRITE Last with Immediate", 4, 0, true},
	0x0a: {"RC RDMA WRITE Only", 16, 0, true},
	0x0b: {"RC RDMA WRITE Only with Immediate", 20, 0, true},
	0x0c: {"RC RDMA READ Request", 16, 0, false},
	0x0d: {"RC RDMA READ response First", 4, 0, true},
	0x0e: {"RC RDMA READ response Middle", 0, 0, true},
	0x0f: {"RC RDMA READ response Last", 4, 0, true},
	0x10: {"RC RDMA READ response Only", 4, 0, true},
	0x11: {"RC Acknowledge", 4, 0, false},
	0x12: {"RC ATOMIC Acknowledge", 12, 0, false},
	0x13: {"RC CmpSwap", 28, 0, false},
	0x14: {"RC FetchAdd", 28, 0, false},
	0x16: {"RC SEND Last with Invalidate", 4, 0, true},
	0x17: {"RC SEND Only with Invalidate", 4, 0, true},
	0x1c: {"RC FLUSH", 20, 0, false},
	0x1d: {"RC ATOMIC WRITE", 16, 0, true},

	0x20: {"UC SEND First", 0, 0, true},
	0x21: {"UC SEND Middle", 0, 0, true},
	0x22: {"UC SEND Last", 0, 0, true},
	0x23: {"UC SEND Last with Immediate", 4, 0, true},
	0x24: {"UC SEND Only", 0, 0, true},
	0x25: {"UC SEND Only with Immediate", 4, 0, true},
	0x26: {"UC RDMA WRITE First", 16, 0, true},
	0x27: {"UC RDMA WRITE Middle", 0, 0, true},
	0x28: {"UC RDMA WRITE Last", 0, 0, true},
	0x29: {"UC RDMA WRITE Last with Immediate", 4, 0, true},
	0x2a: {"UC RDMA WRITE Only", 16, 0, true},
	0x2b: {"UC RDMA WRITE Only with Immediate", 20, 0, true},

	0x40: {"RD SEND First", 12, 8, true},
	0x41: {"RD SEND Middle", 12, 8, true},
	0x42: {"RD SEND Last", 12, 8, true},
	0x43: {"RD SEND Last with Immediate", 16, 8, true},
	0x44: {"RD SEND Only", 12, 8, true},
	0x45: {"RD SEND Only with Immediate", 16, 8, true},
	0x46: {"RD RDMA WRITE First", 28, 8, true},
	0x47: {"RD RDMA WRITE Middle", 12, 8, true},
	0x48: {"RD RDMA WRITE Last", 12, 8, true},
	0x49: {"RD RDMA WRITE Last with Immediate", 16, 8, true},
	0x4a: {"RD RDMA WRITE Only", 28, 8, true},
	0x4b: {"RD RDMA WRITE Only with Immediate", 32, 8, true},
	0x4c: {"RD RDMA READ Request", 28, 8, false},
	0x4d: {"RD RDMA READ response First", 8, 0, true},
	0x4e: {"RD RDMA READ response Middle", 4, 0, true},
	0x4f: {"RD RDMA READ response Last", 8, 0, true},
	0x50: {"RD RDMA READ response Only", 8, 0, true},
	0x51: {"RD Acknowledge", 8, 0, false},
	0x52: {"RD ATOMIC Acknowledge", 16, 0, false},
	0x53: {"RD CmpSwap", 40, 8, false},
	0x54: {"RD FetchAdd", 40, 8, false},
	0x55: {"RD RESYNC", 12, 8, false},

	0x64: {"UD SEND Only", 8, 4, true},
	0x65: {"UD SEND Only with Immediate", 12, 4, true},

	0x81: {"CNP", 0, 0, false},

	0xa0: {"XRC SEND First", 4, 0, true},
	0xa1: {"XRC SEND Middle", 4, 0, true},
	0xa2: {"XRC SEND Last", 4, 0, true},
	0xa3: {"XRC SEND Last with Immediate", 8, 0, true},
	0xa4: {"XRC SEND Only", 4, 0, true},
	0xa5: {"XRC SEND Only with Immediate", 8, 0, true},
	0xa6: {"XRC RDMA WRITE First", 20, 0, true},
	0xa7: {"XRC RDMA WRITE Middle", 4, 0, true},
	0xa8: {"XRC RDMA WRITE Last", 4, 0, true},
	0xa9: {"XRC RDMA WRITE Last with Immediate", 8, 0, true},
	0xaa: {"XRC RDMA WRITE Only", 20, 0, true},
	0xab: {"XRC RDMA WRITE Only with Immediate", 24, 0, true},
	0xac: {"XRC RDMA READ Request", 20, 0, false},
	0xad: {"XRC RDMA READ response First", 4, 0, true},
	0xae: {"XRC RDMA READ response Middle", 0, 0, true},
	0xaf: {"XRC RDMA READ response Last", 4, 0, true},
	0xb0: {"XRC RDMA READ response Only", 4, 0, true},
	0xb1: {"XRC Acknowledge", 4, 0, false},
	0xb2: {"XRC ATOMIC Acknowledge", 12, 0, false},
	0xb3: {"XRC CmpSwap", 32, 0, false},
	0xb4: {"XRC FetchAdd", 32, 0, false},
	0xb6: {"XRC SEND Last with Invalidate", 8, 0, true},
	0xb7: {"XRC SEND Only with Invalidate", 8, 0, true},
}

func TestOpcodes(t *testing.T) {
	for i := range 256 {
		o := Opcode(i)
		want, known := opcodeTruth[o]
		if o.Known() != known || o.HasPayload() != want.data || o.HeadersLen() != want.ext {
			t.Errorf("0x%02x: known %v, data %v, %d octets of headers; want %v, %v, %d",
				i, o.Known(), o.HasPayload(), o.HeadersLen(), known, want.data, want.ext)
		}
		if known && o.String() != want.name {
			t.Errorf("0x%02x: %q, want %q", i, o, want.name)
		}
		if o.Headers()&HasDETH != 0 != (want.sourceQP != 0) {
			t.Errorf("%v: headers %b", o, o.Headers())
		} else if want.sourceQP != 0 && o.Offset(HasDETH)+4 != want.sourceQP {
			t.Errorf("%v: DETH at %d, want %d", o, o.Offset(HasDETH), want.sourceQP-4)
		}
	}
}

func TestOpcodeTransport(t *testing.T) {
	for o, want := range map[Opcode]string{
		RCSendFirst: "RC", RCAtomicWrite: "RC", UC | RCWriteOnlyImm: "UC", 0x55: "RD", UDSendOnly: "UD", CNP: "CNP", XRC | RCFetchAdd: "XRC",
		0x15: "", 0x60: "", 0x80: "", 0x82: "", 0xc0: "", 0xff: "",
	} {
		if got := o.Transport(); got != want {
			t.Errorf("0x%02x: transport %q, want %q", uint8(o), got, want)
		}
	}
	if got := Opcode(0x99).String(); got != "opcode 0x99" {
		t.Errorf("unknown opcode is %q", got)
	}
}

func TestOpcodeHeaderOrder(t *testing.T) {
	for _, c := range []struct {
		o    Opcode
		h    Headers
		want int
	}{
		{RD | RCWriteOnlyImm, HasRDETH, 0}, {RD | RCWriteOnlyImm, HasDETH, 4}, {RD | RCWriteOnlyImm, HasRETH, 12}, {RD | RCWriteOnlyImm, HasImmDt, 28},
		{XRC | RCWriteOnlyImm, HasXRCETH, 0}, {XRC | RCWriteOnlyImm, HasRETH, 4}, {XRC | RCWriteOnlyImm, HasImmDt, 20},
		{RCAtomicAcknowledge, HasAETH, 0}, {RCAtomicAcknowledge, HasAtomicAckETH, 4},
		{UD | RCSendOnlyImm, HasDETH, 0}, {UD | RCSendOnlyImm, HasImmDt, 8},
		{RCFlush, HasFETH, 0}, {RCFlush, HasRETH, 4},
		{RCSendOnlyInvalidate, HasIETH, 0}, {RCCmpSwap, HasAtomicETH, 0},
	} {
		if c.o.Headers()&c.h == 0 || c.o.Offset(c.h) != c.want {
			t.Errorf("%v: header %b of %b at %d, want %d", c.o, c.h, c.o.Headers(), c.o.Offset(c.h), c.want)
		}
	}
}
