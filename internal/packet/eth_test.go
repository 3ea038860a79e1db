package packet

import (
	"bytes"
	"testing"
)

func TestReplyEthernet(t *testing.T) {
	for _, c := range []struct {
		name string
		tags []tag
		want string
	}{
		{"untagged", nil,
			"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01" + "\x86\xdd"},
		{"802.1Q, priority 3, VLAN 100", []tag{{0x8100, 3<<13 | 100}},
			"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01" + "\x81\x00\x60\x64" + "\x86\xdd"},
		{"802.1ad", []tag{{0x88a8, 5<<13 | 4094}, {0x8100, 7}},
			"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01" + "\x88\xa8\xaf\xfe" + "\x81\x00\x00\x07" + "\x86\xdd"},
	} {
		frame, _ := stack{family: 6, tags: c.tags, opcode: RCSendOnly}.build()
		before := bytes.Clone(frame)
		var p Parsed
		Parse(frame, uint32(len(frame)), &p)
		out := make([]byte, 64)
		n := ReplyEthernet(out, frame, &p)
		if string(out[:n]) != c.want {
			t.Errorf("%s: % x, want % x", c.name, out[:n], c.want)
		}
		if !bytes.Equal(frame, before) || !bytes.Equal(out[n:], make([]byte, 64-n)) {
			t.Errorf("%s: wrote elsewhere", c.name)
		}
	}
}
