package capturefile

import (
	"context"
	"io"
)

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
