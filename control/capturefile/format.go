package capturefile

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	xzMagic   = []byte{0xfd, '7', 'z', 'X'}
	lz4Magic  = []byte{0x04, 0x22, 0x4d, 0x18}
)

// zstdWindow bounds the memory for reading zstd, bytes: what zstd -19 needs.
const zstdWindow = 8 << 20

// uncompressed reads a stream that is compressed by gzip, bzip2 or zstd, which begin with a magic number; nil: it isn't compressed.
func uncompressed(b *bufio.Reader) (io.Reader, error) {
	magic, err := b.Peek(4)
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("not a valid gzip file: %w", headless(err))
		}
		return z, nil
	case bytes.HasPrefix(magic, []byte("BZh")):
		return bzip2.NewReader(b), nil
	case bytes.Equal(magic, zstdMagic):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(16*zstdWindow))
		if err != nil {
			return nil, fmt.Errorf("not a valid zstd file: %w", err)
		}
		return z, nil
	case bytes.Equal(magic, xzMagic):
		return nil, errors.New("it is compressed by xz, which isn't read; use xz -dc FILE | cnpgate ... -")
	case bytes.Equal(magic, lz4Magic):
		return nil, errors.New("it is compressed by lz4, which isn't read; use lz4 -dc FILE | cnpgate ... -")
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	return nil, nil
}

const (
	recordHeader = 16 // bytes of the header of a classic pcap's record
	blockHeader  = 8  // bytes of a pcapng block's type and length
)

// open distinguishes pcap from pcapng by the first word.
func open(b *bufio.Reader) (source, error) {
	magic, err := b.Peek(4)
	switch {
	case len(magic) < 4 && err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(magic) < 4:
		return nil, fmt.Errorf("it has %d bytes; expected a pcap or pcapng file", len(magic))
	case binary.BigEndian.Uint32(magic) == sectionHeader:
		r, err := newPcapng(b)
		if err != nil {
			return nil, fmt.Errorf("not a valid pcapng file: %w", headless(err))
		}
		return r, nil
	case bytes.HasPrefix(magic, gzipMagic):
		return nil, errors.New("it is compressed twice; expected a pcap or pcapng file that is compressed once")
	}
	r, err := newClassic(b)
	if err != nil {
		return nil, fmt.Errorf("not a pcap or pcapng file: %w", headless(err))
	}
	return r, nil
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
	return binary.BigEndian.Uint32(b) == sectionHeader || isClassic(b)
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
