package capturefile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/capturefile"
)

func octets(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n) }

// threeIn has three frames of 60, 61 and 62 bytes, in a byte order.
func threeIn(order binary.AppendByteOrder) []byte {
	b := order.AppendUint16(order.AppendUint16(order.AppendUint32(nil, 0xa1b2c3d4), 2), 4)
	for _, v := range []uint32{0, 0, 65535, 1} {
		b = order.AppendUint32(b, v)
	}
	for n := uint32(60); n < 63; n++ {
		for _, v := range []uint32{n, 0, n, n} {
			b = order.AppendUint32(b, v)
		}
		b = append(b, octets(int(n))...)
	}
	return b
}

func three() []byte { return threeIn(binary.LittleEndian) }

func threeNg(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for n := 60; n < 63; n++ {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: n, Length: n}, octets(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// all reads a capture to its end.
func all(from io.Reader) (lengths []int, err error) {
	r, err := capturefile.NewReader("in.pcap", from)
	if err != nil {
		return nil, err
	}
	for {
		f, err := r.Next()
		if err != nil {
			return lengths, err
		}
		lengths = append(lengths, len(f.Octets))
	}
}

// TestEnds: what the last frames are, and what is said of one that isn't whole.
func TestEnds(t *testing.T) {
	classic, be, ng := three(), threeIn(binary.BigEndian), threeNg(t)
	last := len(classic) - 62
	for _, c := range []struct {
		name   string
		stream []byte
		frames int
		ends   string // "" for io.EOF
	}{
		{"whole", classic, 3, ""},
		{"big-endian", be, 3, ""},
		{"pcapng", ng, 3, ""},
		{"gzip", gzipped(t, classic), 3, ""},
		{"gzip of pcapng", gzipped(t, ng), 3, ""},
		{"in its data", classic[:len(classic)-5], 2, "the record of frame 3 has 73 of 78 bytes; frames read: 2"},
		{"behind its header", classic[:last], 2, "the record of frame 3 has 16 of 78 bytes; frames read: 2"},
		{"in its header", classic[:last-3], 2, "the record of frame 3 has 13 of 16 bytes; frames read: 2"},
		{"in front of its header", classic[:last-16], 2, ""},
		{"big-endian in its data", be[:len(be)-5], 2, "the record of frame 3 has 73 of 78 bytes; frames read: 2"},
		{"zeros behind", append(bytes.Clone(classic), make([]byte, 4000)...), 3, "frame 4, near byte 255: the header of its record has only zeros"},
		{"the first frame", classic[:24+16+10], 0, "the record of frame 1 has 26 of 76 bytes; frames read: 0"},
		{"pcapng in its data", ng[:len(ng)-5], 2, "the record of frame 3 has 91 of 96 bytes; frames read: 2"},
		{"pcapng in its header", ng[:len(ng)-96+5], 2, "the record of frame 3 has 5 of 8 bytes; frames read: 2"},
		{"gzip in its data", gzipped(t, classic[:len(classic)-5]), 2, "the record of frame 3 has 73 of 78 bytes"},
		{"gzip that is cut", gzipped(t, classic)[:len(gzipped(t, classic))-20], 2, "it is cut short: its compressed data is not whole"},
		{"gzip that is damaged", append(gzipped(t, classic)[:len(gzipped(t, classic))-8], 1, 2, 3, 4, 0, 0, 0, 0), 3, "its gzip data is damaged, or something else follows it: gzip: invalid checksum; frames read: 3"},
	} {
		lengths, err := all(bytes.NewReader(c.stream))
		for i, n := range lengths {
			if n != 60+i {
				t.Errorf("%s: frame %d has %d bytes", c.name, i+1, n)
			}
		}
		if c.ends == "" && err == io.EOF && len(lengths) == c.frames {
			continue
		}
		if len(lengths) != c.frames || c.ends == "" || err == nil || !strings.Contains(err.Error(), c.ends) || !strings.HasPrefix(err.Error(), "capture in.pcap: ") {
			t.Errorf("%s: %d frames, want %d; %v, want %q", c.name, len(lengths), c.frames, err, c.ends)
		}
		if cut := (*capturefile.Cut)(nil); (errors.As(err, &cut) && !cut.Damaged) != (c.frames < 3 && c.ends != "") {
			t.Errorf("%s: %T", c.name, err)
		}
	}
}

// TestBzip2: a capture that bzip2 has compressed, also with something behind it.
func TestBzip2(t *testing.T) {
	stream, err := os.ReadFile("../../testdata/captures/rc_write_congested_v4.pcap.bz2")
	if err != nil {
		t.Fatal(err)
	}
	const frames = 15_000
	if lengths, err := all(bytes.NewReader(stream)); err != io.EOF || len(lengths) < frames {
		t.Errorf("%d frames, %v", len(lengths), err)
	}
	lengths, err := all(bytes.NewReader(append(stream, "something else that follows"...)))
	if !capturefile.Ends(err) || len(lengths) < frames || !strings.Contains(err.Error(), "its bzip2 data is damaged, or something else follows it") {
		t.Errorf("with text behind it: %d frames, %v", len(lengths), err)
	}
}

// TestLive: a frame is read as soon as its last byte has come, the reader is idle once before each that doesn't come yet, and the end of the context
// ends it while it waits.
func TestLive(t *testing.T) {
	for name, capture := range map[string][]byte{"pcap": three(), "pcapng": threeNg(t)} {
		from, to := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		feed := make(chan []byte)
		go func() {
			for b := range feed {
				if _, err := to.Write(b); err != nil {
					return
				}
			}
		}()
		// The writer is woken by idle, which says that nothing is at hand.
		size := map[string]int{"pcap": 16 + 62, "pcapng": 96}[name]
		pieces := [][]byte{capture[:len(capture)-size], capture[len(capture)-size : len(capture)-1], capture[len(capture)-1:]}
		read := 0
		var at []int // frames read when it was idle
		r, err := capturefile.NewReader("-", capturefile.Live(ctx, from, func() {
			at = append(at, read)
			if len(pieces) == 0 {
				cancel()
				return
			}
			feed <- pieces[0]
			pieces = pieces[1:]
		}))
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err = r.Next(); err != nil {
				break
			}
			read++
		}
		if !errors.Is(err, context.Canceled) || read != 3 {
			t.Errorf("%s: %d frames, %v", name, read, err)
		}
		if len(at) != 4 || at[0] != 0 || at[1] != 2 || at[2] != 2 || at[3] != 3 {
			t.Errorf("%s: idle after %v frames", name, at)
		}
		close(feed)
		from.Close()
	}
}

// FuzzReader: whatever the octets, it ends, with frames that are within what was given.
func FuzzReader(f *testing.F) {
	f.Add(three())
	f.Add(three()[:150])
	for _, ng := range []bool{false, true} { // with zeros in the middle
		header, all := records(ng, binary.LittleEndian, 9, func(int) int { return 40 })
		f.Add(slices.Concat(header, slices.Concat(all[:3]...), make([]byte, 100), slices.Concat(all[4:]...)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 2 && b[0] == 0x1f || len(b) > 1<<16 {
			return // what compresses well may be long
		}
		lengths, err := all(bytes.NewReader(b))
		sum := 0
		for _, n := range lengths {
			sum += n
		}
		if err == nil || sum > len(b) && !bytes.HasPrefix(b, []byte("BZh")) {
			t.Errorf("%d bytes of frames in %d, %v", sum, len(b), err)
		}
	})
}

// TestFailureBehindFile: a stream that can't be read on at the header of a second file has failed; it isn't a damaged capture.
func TestFailureBehindFile(t *testing.T) {
	failure := errors.New("input/output error")
	r, err := capturefile.NewReader("in.pcap", io.MultiReader(bytes.NewReader(three()), bytes.NewReader(three()[:20]), iotest.ErrReader(failure)))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, failure) || capturefile.Ends(err) {
		t.Errorf("%v, ends %v; want the failure alone", err, capturefile.Ends(err))
	}
}
