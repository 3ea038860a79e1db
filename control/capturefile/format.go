package capturefile

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

const (
	gzipMagic  = "\x1f\x8b"
	bzip2Magic = "BZh"
	zstdMagic  = "\x28\xb5\x2f\xfd"
)

// zstdWindow bounds the memory for reading zstd, bytes: what zstd --long needs.
const zstdWindow = 128 << 20

// uncompressed reads a stream that is compressed by gzip, bzip2 or zstd, which begin with a magic number; nil: it isn't compressed. by is the format's name.
func uncompressed(b *input) (plain io.Reader, by string, err error) {
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	switch m := string(magic); {
	case strings.HasPrefix(m, gzipMagic):
		by = "gzip"
		plain, err = gzip.NewReader(b)
	case strings.HasPrefix(m, bzip2Magic):
		return bzip2.NewReader(b), "bzip2", nil
	case m == zstdMagic:
		by = "zstd"
		plain, err = zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
	default:
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("not a valid %s file: %w", by, headless(err))
	}
	return plain, by, nil
}

// foreign are formats that aren't read, by what they have at an offset, and what to do with them.
var foreign = []struct {
	at        int
	magic, is string
}{
	{0, gzipMagic, twice},
	{0, bzip2Magic, twice},
	{0, zstdMagic, twice},
	{0, "\xfd7zXZ", "it is compressed by xz, which isn't read; use xz -dc FILE | cnpgate ... -"},
	{0, "\x04\x22\x4d\x18", "it is compressed by lz4, which isn't read; use lz4 -dc FILE | cnpgate ... -"},
	{0, "\x1f\x9d", "it is compressed by compress, which isn't read; use gzip -dc FILE | cnpgate ... -"},
	{0, "PK\x03\x04", "it is a zip archive; use unzip -p FILE NAME | cnpgate ... -"},
	{0, "7z\xbc\xaf\x27\x1c", "it is a 7-Zip archive; use 7z x -so FILE | cnpgate ... -"},
	{257, "ustar", "it is a tar archive; use tar -xOf FILE NAME | cnpgate ... -"},
	{0, "snoop\x00", "it is a snoop file; " + convert},
	{0, "\xd5\xc3\xb2\xa1", "it has Arkime's short headers of records (simpleShortHeader), which no other program reads; let Arkime export it as pcap"},
	{0, "\x12\xcb\xe2\xa1", "it has netsniff-ng's own headers of records; netsniff-ng --in FILE --out NEW -T 0xa1b23c4d converts it"},
	{0, "GMBU", "it is a Network Monitor file; " + convert},
	{0, "RTSS", "it is a Network Monitor file; " + convert},
}

const (
	twice    = "it is compressed twice; expected a pcap or pcapng file that is compressed once"
	convert  = "editcap -F pcapng IN OUT converts what Wireshark reads"
	foreseen = 262 // bytes that foreign looks at
)

// unknown is the error for what is neither pcap nor pcapng.
func unknown(b *input) error {
	begin, _ := b.Peek(foreseen)
	for _, f := range foreign {
		if len(begin) >= f.at && bytes.HasPrefix(begin[f.at:], []byte(f.magic)) {
			return errors.New(f.is)
		}
	}
	switch {
	case isText(begin):
		return errors.New("not a pcap or pcapng file: it is text; tcpdump -w writes captures, and text2pcap makes one of a hex dump")
	case isTraceLog(begin):
		return errors.New("it is an event trace of Windows (pktmon, netsh); pktmon etl2pcap or etl2pcapng IN OUT converts it")
	}
	return fmt.Errorf("not a pcap or pcapng file: it begins with %x; %s", begin[:min(len(begin), 4)], convert)
}

// isText reports whether b, the beginning of a file, has nothing but printable characters and white space in UTF-8, or says that it is in UTF-16.
func isText(b []byte) bool {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return true
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			return len(b) < utf8.UTFMax && !utf8.FullRune(b) // the last one is cut
		case unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r':
			return false
		}
		b = b[n:]
	}
	return true
}

// isTraceLog reports whether b begins as an event trace log: behind the headers of a buffer and an event, that of the log has the size of a buffer again.
func isTraceLog(b []byte) bool {
	const again, unit = 72 + 32, 1024
	if len(b) < again+4 {
		return false
	}
	size := binary.LittleEndian.Uint32(b)
	return size != 0 && size%unit == 0 && size == binary.LittleEndian.Uint32(b[again:])
}

const (
	recordHeader = 16 // bytes of the header of a classic pcap's record
	blockHeader  = 8  // bytes of a pcapng block's type and length
)

// open distinguishes pcap from pcapng by the first word.
func open(b *input) (source, error) {
	magic, err := b.Peek(4)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it is cut short in front of the first frame")
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(magic) < 4:
		return nil, fmt.Errorf("it has %d bytes; expected a pcap or pcapng file", len(magic))
	case binary.BigEndian.Uint32(magic) == sectionHeader:
		r, err := newPcapng(b)
		if err != nil {
			return nil, fmt.Errorf("not a valid pcapng file: %w", headless(err))
		}
		return r, nil
	case orderOf(magic) == nil:
		return nil, unknown(b)
	}
	r, err := newClassic(b)
	if err != nil {
		return nil, fmt.Errorf("not a valid pcap file: %w", headless(err))
	}
	return r, nil
}

// CheckName is the error for a name that can't be that of a file with a capture: "", or a directory's.
func CheckName(name string) error {
	if name == "" {
		return errors.New("capture: its name is empty; expected a file, or - for standard input")
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return fmt.Errorf("capture %s: it is a directory; expected a file: cat %[1]s/* | cnpgate ... - reads all of them as one", name)
	}
	return nil
}

// errAnother says that another file begins where a record was expected, as of files that were joined by cat.
var errAnother = errors.New("another file begins")

// begins reports whether b is the begin of a file behind a pcap file.
func begins(b []byte) bool {
	if len(b) < 8 {
		return false
	}
	switch b[0] { // the first byte of any magic number
	case 0x0a, 0xa1, 0xd4, 0x4d, 0x34:
	default:
		return false
	}
	return len(b) >= blockFrame && sectionOrder(b) != nil || isClassic(b)
}

// isClassic reports whether b is the begin of a pcap file of the version that all have.
func isClassic(b []byte) bool {
	order := orderOf(b)
	return order != nil && order.Uint16(b[4:]) == 2 && order.Uint16(b[6:]) == 4
}

// headless is the error for a file that ends within its header.
func headless(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends within its header")
	}
	return err
}

// live reads a stream until a context ends, even while no data arrives.
type live struct {
	ctx    context.Context
	chunks chan chunk
	rest   chunk
	idle   func()
}

type chunk struct {
	data []byte
	err  error
}

const chunkSize = 64 << 10

// Live reads from r until ctx ends; then Read fails with ctx's error. It calls idle, in the reader's goroutine, whenever no data is available.
// If a read from r never returns, its goroutine never ends.
func Live(ctx context.Context, r io.Reader, idle func()) io.Reader {
	l := &live{ctx: ctx, chunks: make(chan chunk), idle: idle}
	go l.pump(r)
	return l
}

// pump has two buffers: the reader uses one until it receives the other.
func (l *live) pump(r io.Reader) {
	var buffers [2][chunkSize]byte
	for i := 0; ; i ^= 1 {
		n, err := r.Read(buffers[i][:])
		select {
		case l.chunks <- chunk{buffers[i][:n], err}:
		case <-l.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (l *live) Read(b []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	if len(l.rest.data) == 0 {
		if l.rest.err != nil {
			return 0, l.rest.err
		}
		if err := l.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(b, l.rest.data)
	l.rest.data = l.rest.data[n:]
	if len(l.rest.data) == 0 {
		return n, l.rest.err
	}
	return n, nil
}

// receive waits for the next chunk.
func (l *live) receive() error {
	select {
	case l.rest = <-l.chunks:
		return nil
	default:
	}
	l.idle()
	select {
	case l.rest = <-l.chunks:
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}
