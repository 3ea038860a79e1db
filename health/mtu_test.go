package health

import "testing"

// TestMTUsDiffer: what the PSNs of READs of 16,384 bytes tell of the requester's path MTU, when the responses have 1,024 bytes.
func TestMTUsDiffer(t *testing.T) {
	const length, responder = 16384, 1024
	for _, c := range []struct {
		name      string
		psns      []uint32 // that the READs take
		requester uint32   // 0: no other one is proven
	}{
		{"none", nil, 0},
		{"alike", []uint32{16, 16, 16}, 0},
		{"larger", []uint32{4}, 4096},
		{"smaller, or a READ is missing", []uint32{32}, 0},
		{"smaller", []uint32{32, 32, 32, 32}, 512},
		{"a READ is missing", []uint32{16, 32, 16, 16, 16}, 0},
		{"no MTU explains them", []uint32{4, 8}, 0},
	} {
		m := mtus{responder: responder}
		for _, n := range c.psns {
			m.follows(length, n)
		}
		if got, is := m.differ(); is != (c.requester != 0) || is && got != c.requester {
			t.Errorf("%s: %d, %v, want %d", c.name, got, is, c.requester)
		}
	}
	for _, c := range []struct {
		m  mtus
		is bool
	}{{mtus{requester: 4096, responder: 1024}, true}, {mtus{requester: 1024, responder: 1024}, false}, {mtus{requester: 4096}, false}, {mtus{requester: 1024, responder: 8192}, false}} {
		if _, is := c.m.differ(); is != c.is {
			t.Errorf("%+v: %v", c.m, is)
		}
	}
}
