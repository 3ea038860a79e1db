package capturefile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/control/capturefile"
)

// records is a file's header, and the records of frames of which each holds its number only.
func records(ng bool, order binary.AppendByteOrder, frames int, size func(n int) int) (header []byte, all [][]byte) {
	content := func(n int) []byte { return bytes.Repeat([]byte{0xee, byte(n)}, size(n)/2) }
	if ng {
		for n := range frames {
			all = append(all, enhanced(order, 0, uint64(1.7e15)+uint64(n), content(n)))
		}
		return append(section(order), described(order, 1)...), all
	}
	header = append(words(order, 0xa1b2c3d4), order.AppendUint16(order.AppendUint16(nil, 2), 4)...)
	header = append(header, words(order, 0, 0, 65535, 1)...)
	for n := range frames {
		b := content(n)
		all = append(all, append(words(order, 1.7e9, uint32(n), uint32(len(b)), uint32(len(b))), b...))
	}
	return header, all
}

var leftOut = regexp.MustCompile(`bytes left out: ([0-9]+)`)

// TestResume: whatever replaces some records of a capture, all others are read, none is invented, and each byte was read or counts as left out.
func TestResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ng := rapid.Bool().Draw(t, "pcapng")
		order := rapid.SampledFrom([]binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}).Draw(t, "order")
		const frames = 40
		sizes := rapid.SliceOfN(rapid.IntRange(14, 1500), frames, frames).Draw(t, "sizes")
		header, all := records(ng, order, frames, func(n int) int { return sizes[n] &^ 1 })
		first := rapid.IntRange(1, frames-6).Draw(t, "first")
		behind := first + rapid.IntRange(1, 5).Draw(t, "damaged")
		middle := slices.Concat(all[first:behind]...)
		kept := append(slices.Clone(all[:first]), all[behind:]...)
		most := 1 // frames that the length of a damaged record reaches into
		switch rapid.SampledFrom([]string{"zeros", "noise", "other length", "begin cut", "end cut", "inserted"}).Draw(t, "damage") {
		case "zeros":
			middle = make([]byte, rapid.SampledFrom([]int{16, len(middle), 4096, 3 << 18}).Draw(t, "zeros"))
		case "noise":
			middle = append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, rapid.SliceOfN(rapid.Byte(), 1, 3000).Draw(t, "noise")...)
		case "other length":
			at := 8
			if ng {
				at = 4
			}
			copy(middle[at:], words(order, rapid.Uint32Range(300_000, 1<<32-1).Draw(t, "length")))
		case "begin cut":
			middle = middle[rapid.IntRange(1, 13).Draw(t, "cut"):]
		case "end cut":
			most = 1 + len(all[behind-1])/30
			kept = append(slices.Clone(all[:behind-1]), all[behind:]...)
			middle = append(slices.Concat(all[first:behind-1]...), all[behind-1][:rapid.IntRange(1, len(all[behind-1])-1).Draw(t, "whole")]...)
		case "inserted":
			kept = all
			middle = append(bytes.Repeat([]byte{0xff}, rapid.IntRange(1, 200_000).Draw(t, "inserted")), middle...)
		}
		file := slices.Concat(header, slices.Concat(all[:first]...), middle, slices.Concat(all[behind:]...))
		r, err := capturefile.NewReader("in", bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		var got [][]byte
		size := len(header)
		for {
			f, err := r.Next()
			if err == io.EOF {
				break
			}
			if capturefile.Ends(err) { // too few records follow the damage
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, bytes.Clone(f.Octets))
		}
		missing := 0
		for _, b := range kept {
			if b = b[16:]; ng {
				b = b[12:]
			}
			if !slices.ContainsFunc(got, func(f []byte) bool { return bytes.HasPrefix(b, f) && f[1] == b[1] }) {
				missing++
			}
		}
		if missing > most {
			t.Errorf("%d of %d frames are missing; %d were read", missing, len(kept), len(got))
		}
		for _, f := range got {
			if ng {
				size += len(enhanced(order, 0, 0, f))
			} else {
				size += 16 + len(f)
			}
		}
		out, warnings := 0, strings.Join(r.Warnings(), "\n")
		if m := leftOut.FindStringSubmatch(warnings); m != nil {
			out, _ = strconv.Atoi(m[1])
		}
		if size+out != len(file) {
			t.Errorf("%d bytes read, %d left out, of %d: %s", size, out, len(file), warnings)
		}
	})
}

// TestResumeSays: what is said of several damaged places, and of a record whose length reaches beyond the end.
func TestResumeSays(t *testing.T) {
	for _, ng := range []bool{false, true} {
		order := binary.LittleEndian
		header, all := records(ng, order, 20, func(int) int { return 100 })
		lengthAt := 8
		if ng {
			lengthAt = 4
		}
		copy(all[3][lengthAt:], words(order, 1<<31))
		copy(all[12][lengthAt:], words(order, 60_000))
		r, err := capturefile.NewReader("in", bytes.NewReader(slices.Concat(header, slices.Concat(all...))))
		frames := 0
		for ; err == nil; frames++ {
			_, err = r.Next()
		}
		want := fmt.Sprintf("damaged places: 2, the first at frame 4, near byte %d: ", len(header)+3*len(all[0]))
		if warnings := strings.Join(r.Warnings(), "\n"); err != io.EOF || frames != 19 || !r.Resumed() || !strings.Contains(warnings, want) ||
			!strings.Contains(warnings, fmt.Sprintf("bytes left out: %d;", 2*len(all[0]))) {
			t.Errorf("%d frames, %v, %q; want %q", frames-1, err, warnings, want)
		}
	}
}
