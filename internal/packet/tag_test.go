package packet

import "testing"

func TestTag(t *testing.T) {
	for _, c := range []struct {
		tpid, tci, vid uint16
		text           string
	}{
		{0x8100, 0xffff, 0xfff, "0x8100:4095"},
		{0x8100, 0xe000, 0, "0x8100:0"},
		{0x88a8, 100, 100, "0x88a8:100"},
		{0x9100, 0x1064, 100, "0x9100:100"},
	} {
		tag := MakeTag(c.tpid, c.tci)
		if tag == 0 || tag.TPID() != c.tpid || tag.VID() != c.vid || tag.String() != c.text {
			t.Errorf("TPID %#x, TCI %#x: tag %#x, TPID %#x, VID %d, %q", c.tpid, c.tci, uint16(tag), tag.TPID(), tag.VID(), tag)
		}
	}
	for _, none := range []Tag{0, MakeTag(0x0800, 5)} {
		if none != 0 || none.TPID() != 0 || none.VID() != 0 || none.String() != "none" {
			t.Errorf("no tag is %#x, TPID %#x, VID %d, %q", uint16(none), none.TPID(), none.VID(), none)
		}
	}
}
