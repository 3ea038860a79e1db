package capturefile

import (
	"errors"
	"io"
)

// input is a stream that is read a chunk at a time. Unlike bufio.Reader it always reads to the same place: the kernel copies to one that isn't aligned to a
// page at half the speed. What remains of the chunk before is moved in front of it.
type input struct {
	from    io.Reader
	ended   func() error // of the context of a live stream, of which much may still be buffered, and compressed; nil: there is none
	memory  []byte
	at, end int // of memory, what was read and not yet taken
	read    int // bytes
	err     error
	packed  string // the format that the stream is uncompressed from, such as gzip; "": it isn't
	file    *input // the compressed stream
}

const (
	firstSize  = 1 << 16 // bytes of memory at first: many captures are smaller, and are read several times
	readSize   = 1 << 18 // bytes that are read at a time later
	mostPeeked = 1 << 19 // bytes in front of them
)

func newInput(from io.Reader) *input {
	return &input{from: from, memory: make([]byte, firstSize)}
}

// openInput reads a stream that may be compressed.
func openInput(r io.Reader) (*input, error) {
	i := newInput(r)
	plain, by, err := uncompressed(i)
	if err != nil {
		return nil, err
	}
	if plain != nil {
		file := i
		i = newInput(plain)
		i.packed, i.file = by, file
	}
	if l, ok := r.(*live); ok {
		i.ended = l.ctx.Err
	}
	return i, nil
}

// fill reads a chunk. Before, fewer than mostPeeked bytes are at hand.
func (i *input) fill() {
	if len(i.memory) > firstSize || i.end == firstSize {
		i.makeRoom()
	}
	if i.err = i.interrupted(); i.err != nil {
		return
	}
	const tries = 100
	for range tries {
		var n int
		n, i.err = i.from.Read(i.memory[i.end:])
		i.end += n
		i.read += n
		if n > 0 || i.err != nil {
			return
		}
	}
	i.err = io.ErrNoProgress
}

// makeRoom moves what is at hand in front of a chunk's place.
func (i *input) makeRoom() {
	rest := i.memory[i.at:i.end]
	if len(i.memory) == firstSize {
		i.memory = make([]byte, mostPeeked+readSize)
	}
	i.at, i.end = mostPeeked-len(rest), mostPeeked
	copy(i.memory[i.at:], rest)
}

// Peek returns the next n bytes, at most mostPeeked, without taking them; with an error those that there are. They are valid until more are read.
func (i *input) Peek(n int) ([]byte, error) {
	for i.end-i.at < n {
		if i.err != nil {
			return i.memory[i.at:i.end], i.err
		}
		i.fill()
	}
	return i.memory[i.at : i.at+n], nil
}

// Discard takes n bytes.
func (i *input) Discard(n int64) error {
	for {
		done := min(n, int64(i.end-i.at))
		i.at += int(done)
		if n -= done; n == 0 {
			return nil
		}
		if i.err != nil {
			return i.err
		}
		i.fill()
	}
}

// Read implements io.Reader.
func (i *input) Read(b []byte) (int, error) {
	if i.at == i.end {
		if i.err != nil {
			return 0, i.err
		}
		i.fill()
	}
	n := copy(b, i.memory[i.at:i.end])
	if i.at += n; n == 0 && len(b) > 0 {
		return 0, i.err
	}
	return n, nil
}

// ReadByte implements io.ByteReader, so that what uncompresses the stream needs no buffer of its own.
func (i *input) ReadByte() (byte, error) {
	if i.at == i.end {
		if _, err := i.Peek(1); err != nil {
			return 0, err
		}
	}
	i.at++
	return i.memory[i.at-1], nil
}

// position is how many bytes were taken.
func (i *input) position() int { return i.read - (i.end - i.at) }

// failed is the error that ended the stream, nil after a regular end.
func (i *input) failed() error {
	if !errors.Is(i.err, io.EOF) && !errors.Is(i.err, io.ErrUnexpectedEOF) {
		return i.err
	}
	return nil
}

// interrupted is the error of the context, once it has ended.
func (i *input) interrupted() error {
	if i.ended == nil {
		return nil
	}
	return i.ended()
}

// damaged reports whether the stream failed although all that it is uncompressed from could be read.
func (i *input) damaged() bool {
	return i.packed != "" && i.file.failed() == nil && i.interrupted() == nil
}
