package capturefile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/control/capturefile"
)

// block is a pcapng block.
func block(order binary.AppendByteOrder, kind uint32, body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	for len(all)%4 != 0 {
		all = append(all, 0)
	}
	length := uint32(12 + len(all))
	b := append(order.AppendUint32(order.AppendUint32(nil, kind), length), all...)
	return order.AppendUint32(b, length)
}

func words(order binary.AppendByteOrder, values ...uint32) (b []byte) {
	for _, v := range values {
		b = order.AppendUint32(b, v)
	}
	return b
}

func option(order binary.AppendByteOrder, code uint16, value ...byte) []byte {
	b := append(order.AppendUint16(order.AppendUint16(nil, code), uint16(len(value))), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func section(order binary.AppendByteOrder, body ...[]byte) []byte {
	head := order.AppendUint16(order.AppendUint16(words(order, 0x1a2b3c4d), 1), 0)
	return block(order, 0x0a0d0d0a, append([][]byte{head, words(order, 0xffffffff, 0xffffffff)}, body...)...)
}

func described(order binary.AppendByteOrder, link uint16, options ...[]byte) []byte {
	return block(order, 1, append([][]byte{order.AppendUint16(order.AppendUint16(nil, link), 0), words(order, 65535)}, options...)...)
}

func enhanced(order binary.AppendByteOrder, on uint32, at uint64, frame []byte, options ...[]byte) []byte {
	padded := append(bytes.Clone(frame), make([]byte, -len(frame)&3)...)
	n := uint32(len(frame))
	return block(order, 6, append([][]byte{words(order, on, uint32(at>>32), uint32(at), n, n+7), padded}, options...)...)
}

// TestAgreesWithPcapgo: of valid files of any sections, interfaces, decimal resolutions, options and other blocks, both readers read the same frames.
func TestAgreesWithPcapgo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var file []byte
		bytesOf := rapid.SliceOfN(rapid.Byte(), 0, 40)
		for range rapid.IntRange(1, 3).Draw(t, "sections") {
			order := rapid.SampledFrom([]binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}).Draw(t, "order")
			comment := func() []byte { return option(order, 1, bytesOf.Draw(t, "comment")...) }
			interfaces := uint32(0)
			add := func() {
				options := [][]byte{comment()}
				if rapid.Bool().Draw(t, "has a resolution") {
					options = append(options, option(order, 9, rapid.SampledFrom([]byte{3, 6, 9, 12}).Draw(t, "resolution")))
				}
				if rapid.Bool().Draw(t, "has an offset") {
					options = append(options, option(order, 14, order.AppendUint64(nil, rapid.Uint64Range(0, 1e9).Draw(t, "offset"))...))
				}
				if rapid.Bool().Draw(t, "ends its options") {
					options = append(options, option(order, 0))
				}
				file = append(file, described(order, 1, options...)...)
				interfaces++
			}
			file = append(file, section(order, comment(), option(order, 0))...)
			add()
			for range rapid.IntRange(0, 8).Draw(t, "blocks") {
				on := rapid.Uint32Range(0, interfaces-1).Draw(t, "interface")
				frame := bytesOf.Draw(t, "frame")
				switch rapid.SampledFrom([]string{"enhanced", "simple", "interface", "custom"}).Draw(t, "block") {
				case "enhanced":
					file = append(file, enhanced(order, on, rapid.Uint64Range(0, 1e12).Draw(t, "time"), frame, comment(), comment(), option(order, 0))...)
				case "simple":
					file = append(file, block(order, 3, words(order, uint32(len(frame))), frame)...)
				case "interface":
					add()
				case "custom":
					file = append(file, block(order, 0xbad, frame)...)
				}
			}
		}
		want, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := capturefile.NewReader("in.pcapng", bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		latest := int64(0)
		for {
			data, info, options, wantErr := want.ReadPacketDataWithOptions()
			frame, err := got.Next()
			if wantErr != nil || err != nil {
				if wantErr != io.EOF || err != io.EOF {
					t.Fatalf("%v, pcapgo %v", err, wantErr)
				}
				return
			}
			at := info.Timestamp
			if at.IsZero() {
				at = time.Unix(0, 0)
			}
			latest = max(latest, at.Sub(got.First).Nanoseconds())
			if !bytes.Equal(frame.Octets, data) || int(frame.Length) != max(info.Length, len(data)) || frame.Time != latest {
				t.Fatalf("%d ns, %d octets, length %d; pcapgo: %d ns, %d octets, length %d", frame.Time, len(frame.Octets), frame.Length, latest, len(data), info.Length)
			}
			if !slices.Equal(frame.Comments, options.Comments) {
				t.Fatalf("comments %q; pcapgo: %q", frame.Comments, options.Comments)
			}
		}
	})
}

// TestBinaryResolution: times in powers of 2 are exact to a nanosecond, also near the end of their range.
func TestBinaryResolution(t *testing.T) {
	order := binary.BigEndian
	for _, c := range []struct {
		resolution byte
		at         uint64
		want       time.Time
	}{
		{0x8a, 2, time.Unix(0, 1_953_125)}, {0x80 | 63, 3<<62 + 1, time.Unix(1, 500_000_000)}, {0x9e, 1<<30 + 1<<29, time.Unix(1, 500_000_000)},
		{0, 7, time.Unix(7, 0)}, {19, 15e18, time.Unix(1, 500_000_000)},
	} {
		file := append(append(section(order), described(order, 1, option(order, 9, c.resolution))...), enhanced(order, 0, c.at, nil)...)
		r, err := capturefile.NewReader("in.pcapng", bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err != nil || !r.First.Equal(c.want) {
			t.Errorf("resolution %#x: %v, %v, expected %v", c.resolution, r.First, err, c.want)
		}
	}
	for _, resolution := range []byte{20, 0x80 | 64} {
		file := append(section(order), described(order, 1, option(order, 9, resolution))...)
		if _, err := capturefile.NewReader("in.pcapng", bytes.NewReader(file)); err == nil || !strings.Contains(err.Error(), "resolution") {
			t.Errorf("resolution %#x: %v", resolution, err)
		}
	}
}

// TestDropped: the frames that were dropped while a file was captured count once, whether the frames, the statistics or both have them, by section and interface.
func TestDropped(t *testing.T) {
	order := binary.BigEndian
	count := func(code uint16, n uint64) []byte { return option(order, code, order.AppendUint64(nil, n)...) }
	frame := func(on uint32, dropped uint64) []byte { return enhanced(order, on, 0, []byte{1}, count(4, dropped)) }
	stats := func(on uint32, options ...[]byte) []byte {
		return block(order, 5, append([][]byte{words(order, on, 0, 0)}, options...)...)
	}
	for _, c := range []struct {
		name   string
		blocks [][]byte
		want   uint64
	}{
		{"none", [][]byte{frame(0, 0), stats(0, count(4, 99), count(5, 0), count(6, 99))}, 0},
		{"of frames", [][]byte{frame(0, 2), frame(1, 3), frame(0, 4)}, 9},
		{"of statistics", [][]byte{frame(0, 0), stats(0, count(5, 2), count(7, 5)), stats(1, count(5, 1))}, 8},
		{"of statistics that go on", [][]byte{frame(0, 0), stats(0, count(5, 2)), stats(0, count(5, 6))}, 6},
		{"of both", [][]byte{frame(0, 2), frame(0, 3), stats(0, count(5, 5))}, 5},
		{"of two sections", [][]byte{frame(0, 2), section(order), described(order, 1), frame(0, 2)}, 4},
		{"of no interface", [][]byte{frame(0, 0), stats(7, count(5, 5)), stats(0, option(order, 5, 1))}, 0},
	} {
		file := slices.Concat(append([][]byte{section(order), described(order, 1), described(order, 1)}, c.blocks...)...)
		r, err := capturefile.NewReader("in.pcapng", bytes.NewReader(file))
		for err == nil {
			_, err = r.Next()
		}
		if err != io.EOF || r.Lost != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, r.Lost, err, c.want)
		}
	}
}

// repeated is a stream of a beginning and many copies of a piece.
func repeated(begin, piece []byte, bytesTotal int) io.Reader {
	many := bytes.Repeat(piece, 1+(1<<20)/len(piece))
	readers := []io.Reader{bytes.NewReader(begin)}
	for n := 0; n < bytesTotal; n += len(many) {
		readers = append(readers, bytes.NewReader(many))
	}
	return io.MultiReader(readers...)
}

// TestFloods: whatever blocks a file is full of, it takes little memory; a section of more interfaces than any real one is refused.
func TestFloods(t *testing.T) {
	const total, most = 16 << 20, 12 << 20
	order := binary.LittleEndian
	begin := append(section(order), described(order, 1)...)
	long := make([]byte, 60_000)
	for _, c := range []struct {
		name  string
		piece []byte
		ends  string // "" for io.EOF
	}{
		{"interfaces", described(order, 1), "more than 4096 interfaces"},
		{"interfaces with long names", described(order, 1, option(order, 2, long...), option(order, 1, long...)), ""},
		{"sections", begin, ""},
		{"sections with long comments", append(section(order, option(order, 1, long...)), described(order, 1)...), ""},
		{"name resolution", block(order, 4, words(order, 1|4<<16), long), ""},
		{"decryption secrets", block(order, 10, words(order, 0x544c534b, 60_000), long), ""},
		{"interface statistics", block(order, 5, words(order, 0, 0, 0), option(order, 1, long...)), ""},
		{"options of a frame", enhanced(order, 0, 0, nil, bytes.Repeat(option(order, 1, long[:1000]...), 400)), ""},
		{"more options of a frame than fit", enhanced(order, 0, 0, nil, bytes.Repeat(option(order, 1, long[:1000]...), 1000)), "expected at most 458752"},
		{"an empty option of an interface", described(order, 1, bytes.Repeat(option(order, 1), 10_000)), ""},
		{"a frame of 4 GB", words(order, 6, 32, 0, 0, 0, 0xfffffff0, 0xfffffff0, 32), "expected at most 262144"},
		{"a simple one, which the snapshot length bounds", words(order, 3, 0xffffffff, 0xfffffff0), "expected 12 to 16777216"},
		{"a frame longer than its block", words(order, 6, 32, 0, 0, 0, 200_000, 200_000, 32), "shorter than its fields"},
		{"a block of 4 GB", words(order, 0xbad, 0xffffffff), "expected 12 to 16777216"},
		{"blocks that are skipped", slices.Concat(words(order, 0xbad, 1<<20), make([]byte, 1<<20-12), words(order, 1<<20)), ""},
		{"a block of two lengths", slices.Concat(words(order, 0xbad, 1<<20), make([]byte, 1<<20-12), words(order, 1<<21)), "of 1048576 bytes at its begin, and of 2097152 at its end"},
		{"a block without a length", words(order, 0xbad, 0, 0, 0), "expected 12 to 16777216"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			r, err := capturefile.NewReader("in.pcapng", repeated(begin, c.piece, total))
			peak := uint64(0)
			for n := 0; err == nil; n++ {
				if _, err = r.Next(); n%1000 == 0 || err != nil {
					runtime.ReadMemStats(&now)
					peak = max(peak, now.HeapInuse)
				}
			}
			if c.ends == "" && err != io.EOF || c.ends != "" && !strings.Contains(err.Error(), c.ends) {
				t.Errorf("%v, expected %q", err, c.ends)
			}
			if peak > before.HeapInuse+most {
				t.Errorf("%d MB in use", (peak-before.HeapInuse)>>20)
			}
			runtime.KeepAlive(r)
		})
	}
}

// emptyRecords is a gzip file of so many empty records of a classic pcap.
func emptyRecords(t *testing.T, records int) []byte {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	piece := bytes.Repeat([]byte{0: 1, 15: 0}, 1000) // a second after 1970, without a byte
	if _, err := z.Write(three()[:24]); err != nil {
		t.Fatal(err)
	}
	for range records / 1000 {
		if _, err := z.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEndsWhileMuchIsBuffered: the end of the context ends a live capture soon, although a compressed one that has been received has a million records.
// Progress says how many have been read.
func TestEndsWhileMuchIsBuffered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := capturefile.NewReader("-", capturefile.Live(ctx, bytes.NewReader(emptyRecords(t, 1_000_000)), func() {}))
	if err != nil {
		t.Fatal(err)
	}
	var progress []int
	r.Progress = func(frames int) {
		if progress = append(progress, frames); len(progress) == 3 {
			cancel()
		}
	}
	for err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, context.Canceled) || r.Frames > 400_000 || len(progress) < 3 || progress[0] != 100_000 || progress[2] != 300_000 {
		t.Errorf("%v after %d frames, progress at %v", err, r.Frames, progress)
	}
}

// TestCompressedTwice: no reader behind the first one decompresses.
func TestCompressedTwice(t *testing.T) {
	if _, err := all(bytes.NewReader(gzipped(t, gzipped(t, three())))); err == nil || !strings.Contains(err.Error(), "compressed twice") {
		t.Error(err)
	}
}
