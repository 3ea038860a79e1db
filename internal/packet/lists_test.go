package packet

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// lists are the inputs that FuzzLists starts from.
var lists = [][]byte{
	[]byte("\x00\x01\x00\x9e\x10" + strings.Repeat("A", 16) + "\x31\x0e\x00\x01" + strings.Repeat("B", 12)),
	[]byte("\x9e\x1e\x00\x00" + strings.Repeat("C", 12) + strings.Repeat("D", 16) + "\x01\x02\x00\x00"),
	[]byte("\x00\x0c\xf7\x01ABCDEFGH\x00\x05\xf7\x02A\x00\x00\x00\x00\x04\x01\x01"),
	[]byte("\x45\x11\x00\x00\x12\x34\x12\xb7" + "aaaa" + "bbbb" + "\x45\x00\x00\x1c\x00\x00\x40\x00\x40\x11\x00\x00aaaabbbb\x12\x34\x12\xb7\x00\x08\x00\x00"),
	[]byte("\x65\x11\x00\x00\x12\x34\x12\xb7" + strings.Repeat("a", 16) + strings.Repeat("b", 16)),
}

// FuzzLists: lists of options and of objects of any content are walked in bounded steps and put together again.
func FuzzLists(f *testing.F) {
	for _, b := range lists {
		f.Add(b)
	}
	var w listWork
	f.Fuzz(func(t *testing.T, b []byte) { w.body(t, b) })
}

// listWork is what the body of FuzzLists works in, so that it allocates nothing; and how often it found what.
type listWork struct {
	out                    []byte
	fast, objects, proxied int
}

// space is n octets to encode to.
func (w *listWork) space(n int) []byte {
	w.out = slices.Grow(w.out[:0], n)[:n]
	return w.out
}

func (w *listWork) body(t testing.TB, b []byte) {
	w.options(t, b)
	w.extensions(t, b)
	if x, ok := DecodeProxied(b); ok {
		w.proxied++
		out := w.space(ProxiedLen(x.Version))
		if x.Put(out); !bytes.Equal(out, b[:len(out)]) {
			t.Fatalf("% x encodes to % x", b[:len(out)], out)
		}
	}
	var p Parsed
	ParseIP(b, &p)
}

func (w *listWork) options(t testing.TB, b []byte) {
	for list, steps := b, 0; ; steps++ {
		o, n := NextOption(list)
		if n == 0 {
			return
		}
		if n > len(list) || steps > len(b) || n > 1 && (len(o.Data) != n-2 || o.Type != list[0]) {
			t.Fatalf("option %+v of %d octets in % x", o, n, list)
		}
		if option, ok := DecodeFastCNPOption(o.Data); ok {
			w.fast++
			out := w.space(option.Len())
			if option.Put(out, o.Type); !bytes.Equal(out, list[:n]) {
				t.Fatalf("% x encodes to % x", list[:n], out)
			}
		}
		list = list[n:]
	}
}

func (w *listWork) extensions(t testing.TB, b []byte) {
	for list, steps := b, 0; ; steps++ {
		o, n := NextObject(list)
		if n == 0 {
			return
		}
		w.objects++
		if n > len(list) || steps > len(b) || n != o.Len() {
			t.Fatalf("object %+v of %d octets in % x", o, n, list)
		}
		out := w.space(n)
		if o.Put(out); !bytes.Equal(out[:4+len(o.Payload)], list[:4+len(o.Payload)]) {
			t.Fatalf("% x encodes to % x", list[:n], out)
		}
		list = list[n:]
	}
}
