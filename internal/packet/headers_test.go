package packet

import "testing"

func TestDecodeExtendedHeaders(t *testing.T) {
	octets := []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c")
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"RETH", DecodeRETH(octets[:RETHLen]), RETH{VirtualAddress: 0x0102030405060708, RKey: 0x090a0b0c, DMALength: 0x0d0e0f10}},
		{"AETH", DecodeAETH(octets[:AETHLen]), AETH{Syndrome: 1, MSN: 0x020304}},
		{"DETH", DecodeDETH(octets[:DETHLen]), DETH{QKey: 0x01020304, SourceQP: 0x060708}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, c.got, c.want)
		}
	}
}

// TestReserved: reserved octets are 0, whatever the buffer and the number held.
func TestReserved(t *testing.T) {
	b := []byte("\xff\xff\xff\xff\xff\xff\xff\xff")
	(&DETH{QKey: 0x01020304, SourceQP: 0x5060708}).Put(b)
	if string(b) != "\x01\x02\x03\x04\x00\x06\x07\x08" {
		t.Errorf("% x", b)
	}
}

func TestAETHSyndrome(t *testing.T) {
	for _, c := range []struct {
		syndrome         uint8
		ack, rnrNAK, nak bool
	}{
		{0x00, true, false, false}, {0x1f, true, false, false},
		{0x20, false, true, false}, {0x3f, false, true, false},
		{0x40, false, false, false}, // reserved
		{0x60, false, false, true}, {0x64, false, false, true},
	} {
		h := AETH{Syndrome: c.syndrome}
		if h.IsACK() != c.ack || h.IsRNRNAK() != c.rnrNAK || h.IsNAK() != c.nak {
			t.Errorf("syndrome %02x: ACK %v, RNR NAK %v, NAK %v", c.syndrome, h.IsACK(), h.IsRNRNAK(), h.IsNAK())
		}
	}
}
