package capturefile_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

func zstandard(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// TestCutAnywhere: whatever is left of a capture, its whole frames are read, and the error says that the rest is missing, or that there is no frame.
func TestCutAnywhere(t *testing.T) {
	for name, stream := range map[string][]byte{
		"pcap": three(), "pcapng": threeNg(t), "gzip": gzipped(t, three()), "zstd": zstandard(t, three()), "gzip of pcapng": gzipped(t, threeNg(t)),
		"two files": append(three(), threeNg(t)...),
	} {
		before := 0
		for n := 0; n < len(stream); n += 1 + 6*effort.Race {
			lengths, err := all(bytes.NewReader(stream[:n]))
			if len(lengths) < before {
				t.Fatalf("%s: %d of %d bytes have %d frames, and one byte less has %d", name, n, len(stream), len(lengths), before)
			}
			before = len(lengths)
			cut := (*capturefile.Cut)(nil)
			switch {
			case errors.Is(err, io.EOF) && !errors.As(err, &cut):
			case len(lengths) > 0 && !capturefile.Ends(err):
				t.Fatalf("%s: of %d bytes of %d the frames don't count: %v", name, n, len(stream), err)
			case !strings.HasPrefix(err.Error(), "capture in.pcap: ") || strings.Contains(err.Error(), "EOF"):
				t.Fatalf("%s: of %d bytes of %d: %v", name, n, len(stream), err)
			}
		}
		if before < 2 && name != "zstd" {
			t.Errorf("%s: without its last bytes it has %d frames", name, before)
		}
	}
}

// TestBehindCompressed: what stands behind compressed data, or is wrong within it, doesn't make what came before worthless.
func TestBehindCompressed(t *testing.T) {
	const damaged = " data is damaged, or something else follows it"
	zeros, text := make([]byte, 4096), []byte("something else that follows")
	changed := zstandard(t, three())
	changed[len(changed)-1] ^= 1 // of its checksum
	for _, c := range []struct {
		name   string
		stream []byte
		want   string
	}{
		{"zeros behind gzip", append(gzipped(t, three()), zeros...), "its gzip" + damaged},
		{"text behind gzip", append(gzipped(t, three()), text...), "its gzip" + damaged},
		{"few bytes behind gzip", append(gzipped(t, three()), 1, 2, 3), "its compressed data is not whole, or something else follows it"},
		{"text behind zstd", append(zstandard(t, three()), text...), "its zstd" + damaged},
		{"gzip behind zstd", append(zstandard(t, three()), gzipped(t, three())...), "its zstd" + damaged},
		{"wrong checksum of zstd", append(zstandard(t, three()), changed...), "its zstd" + damaged},
	} {
		lengths, err := all(bytes.NewReader(c.stream))
		if !capturefile.Ends(err) || len(lengths) < 3 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d frames and %v, want 3 and %q", c.name, len(lengths), err, c.want)
		}
	}
}

// TestForeign: what isn't read is named, with what to do.
func TestForeign(t *testing.T) {
	tar := make([]byte, 1024)
	copy(tar, "a.pcap")
	copy(tar[257:], "ustar\x0000")
	trace := make([]byte, 1024)
	trace[2], trace[72+32+2] = 1, 1 // buffers of 64 KiB
	for _, c := range []struct {
		name, want string
		stream     []byte
	}{
		{"xz", "xz -dc", []byte("\xfd7zXZ\x00rest")},
		{"lz4", "lz4 -dc", []byte("\x04\x22\x4d\x18rest")},
		{"zip", "unzip -p", []byte("PK\x03\x04rest")},
		{"tar", "tar -xOf", tar},
		{"tar in gzip", "uncompressed by gzip: it is a tar archive", gzipped(t, tar)},
		{"zstd in gzip", "it is compressed twice", gzipped(t, zstandard(t, three()))},
		{"snoop", "editcap -F pcapng", []byte("snoop\x00\x00\x00rest")},
		{"Arkime", "let Arkime export it", []byte("\xd5\xc3\xb2\xa1\x02\x00\x04\x00rest")},
		{"netsniff-ng", "-T 0xa1b23c4d", []byte("\x12\xcb\xe2\xa1\x02\x00\x04\x00rest")},
		{"text", "it is text", []byte("12:00:01.0 IP 10.0.0.1.49152 > 10.0.0.2.4791: UDP, length 1024\n")},
		{"text of tshark", "it is text", []byte("    1   0.000000     10.1.0.1 → 10.2.0.1     RRoCE 1122 RC RDMA Write First QP=0x000222\n")},
		{"text that is cut in a character", "it is text", []byte("10.1.0.1 \xe2\x86")},
		{"text of PowerShell", "it is text", []byte("\xff\xfeN\x00o\x00.\x00")},
		{"binary", "it begins with 61626380", []byte("abc\x80defghi")},
		{"7-Zip", "7z x -so", []byte("7z\xbc\xaf\x27\x1c\x00\x04")},
		{"event trace of Windows", "etl2pcapng", trace},
		{"nothing", "it has 0 bytes", nil},
		{"one byte", "it has 1 bytes", []byte{0xd4}},
		{"another", "it begins with 00010203; editcap", []byte{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		_, err := all(bytes.NewReader(c.stream))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestJoined: files behind each other are read as one, also if one of them has no frames.
func TestJoined(t *testing.T) {
	header := three()[:24]
	for name, stream := range map[string][]byte{
		"pcap":             append(three(), three()...),
		"pcapng":           append(threeNg(t), threeNg(t)...),
		"pcapng, pcap":     append(threeNg(t), three()...),
		"empty first":      append(bytes.Clone(header), append(three(), three()...)...),
		"empty between":    append(append(three(), header...), threeNg(t)...),
		"empty last":       append(append(three(), three()...), header...),
		"gzip":             append(gzipped(t, three()), gzipped(t, threeNg(t))...),
		"many empty first": append(bytes.Repeat(header, 100_000), append(three(), three()...)...),
	} {
		if lengths, err := all(bytes.NewReader(stream)); !errors.Is(err, io.EOF) || len(lengths) != 6 {
			t.Errorf("%s: %d frames, %v; want 6", name, len(lengths), err)
		}
	}
}
