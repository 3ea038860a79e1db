package capturefile

import (
	"errors"
	"io"
)

// searchStep is how far a search goes before it gives back what it has passed, bytes.
const searchStep = 64 << 10

// resume goes on behind a record that can't be read, at the next place where several plausible records follow each other to the end of the capture or as far as
// they are looked at, or where another file begins. The search passes each byte once. false: there is none; the search has taken all that follows.
func (c *Reader) resume(damage error) bool {
	start := c.input.position()
	for at := 1; ; at++ {
		b, _ := c.input.Peek(at + 1)
		if len(b) <= at {
			_ = c.input.Discard(int64(len(b))) // it has them
			return false
		}
		if c.follow(at) {
			if c.input.Discard(int64(at)) != nil {
				return false
			}
			break
		}
		if at == searchStep {
			if c.input.Discard(searchStep) != nil {
				return false
			}
			at = 0
		}
	}
	if errors.Is(damage, io.ErrUnexpectedEOF) {
		damage = errors.New("its record is longer than the rest of the capture")
	}
	if c.damages++; c.damages == 1 {
		c.damage = c.place(start, damage).Error()
	}
	c.leftOut += c.input.position() - start
	return true
}

// follow reports whether plausible records follow each other from so many bytes behind here.
func (c *Reader) follow(at int) bool {
	const several = 4
	for n := range several {
		b, _ := c.input.Peek(min(at+blockFrame, mostPeeked))
		if n > 0 && (len(b) == at || at+blockFrame > mostPeeked) || begins(b[min(at, len(b)):]) {
			return true
		}
		size := c.source.plausible(at)
		if size == 0 {
			return false
		}
		at += size
	}
	return true
}
