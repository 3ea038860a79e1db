package packet

import "testing"

// TestReserved: the reserved octet of a DETH is written as 0, whatever the buffer and the number held, and isn't read.
func TestReserved(t *testing.T) {
	b := []byte("\xff\xff\xff\xff\xff\xff\xff\xff")
	(&DETH{QKey: 0x01020304, SourceQP: 0x5060708}).Put(b)
	if string(b) != "\x01\x02\x03\x04\x00\x06\x07\x08" {
		t.Errorf("% x", b)
	}
	b[4] = 5
	if got := DecodeDETH(b); got != (DETH{QKey: 0x01020304, SourceQP: 0x060708}) {
		t.Errorf("%+v", got)
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
