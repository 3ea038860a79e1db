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

	"github.com/gopacket/gopacket/pcapgo"
)

var gzipMagic = []byte{0x1f, 0x8b}

// uncompressed reads a stream that may be compressed by gzip or bzip2, which begin with a magic number.
func uncompressed(b *bufio.Reader) (io.Reader, error) {
	magic, err := b.Peek(3)
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("not a valid gzip file: %w", headless(err))
		}
		return z, nil
	case bytes.Equal(magic, []byte("BZh")):
		return bzip2.NewReader(b), nil
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	return b, nil
}

// format is the layout of records.
type format struct {
	order binary.ByteOrder
	ng    bool // pcapng
}

const (
	recordHeader = 16 // bytes of the header of a classic pcap's record
	blockHeader  = 8  // bytes of a pcapng block's type and length
)

// recordSize is the size of the next record, in bytes; 0 if it isn't known. A pcapng file may have other blocks before the frame's.
func (f format) recordSize(b *bufio.Reader) int {
	if f.ng {
		if header, _ := b.Peek(blockHeader); len(header) == blockHeader {
			return int(f.order.Uint32(header[4:]))
		}
		return blockHeader
	}
	if header, _ := b.Peek(recordHeader); len(header) == recordHeader {
		return recordHeader + int(f.order.Uint32(header[8:]))
	}
	return recordHeader
}

// open distinguishes pcap from pcapng by the first word.
func open(b *bufio.Reader) (format, source, error) {
	magic, err := b.Peek(12)
	if len(magic) < 4 {
		if err != nil && !errors.Is(err, io.EOF) {
			return format{}, nil, err
		}
		return format{}, nil, fmt.Errorf("it has %d bytes; expected a pcap or pcapng file", len(magic))
	}
	f := format{order: binary.LittleEndian}
	if binary.BigEndian.Uint32(magic) == sectionHeader {
		if f.ng = true; len(magic) == 12 && magic[8] == 0x1a { // the byte-order magic of the section header
			f.order = binary.BigEndian
		}
		r, err := newPcapng(b)
		if err != nil {
			return f, nil, fmt.Errorf("not a valid pcapng file: %w", headless(err))
		}
		return f, r, nil
	}
	if bytes.HasPrefix(magic, gzipMagic) { // pcapgo would read it
		return f, nil, errors.New("it is compressed twice; expected a pcap or pcapng file that is compressed once")
	}
	if magic[0] == 0xa1 {
		f.order = binary.BigEndian
	}
	r, err := pcapgo.NewReader(b)
	if err != nil {
		return f, nil, fmt.Errorf("not a pcap or pcapng file: %w", headless(err))
	}
	r.SetSnaplen(MaxFrame)
	return f, r, nil
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
