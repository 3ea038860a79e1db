package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	waitingLines = 1024        // of a log that nobody reads
	flushTime    = time.Second // for the lines that still wait at the end
)

// patientLog passes lines on to a log whose reader may stand still: a full journal, a pipe, a stopped terminal. Who logs never waits for it, except for a line of the level
// fatal, which the process ends after. While waitingLines wait, further ones are lost, and counted.
type patientLog struct {
	to    io.Writer
	lines chan line
	lost  atomic.Uint64
}

type line struct {
	text    []byte
	written chan struct{} // closed after it was written; nil: nobody waits for it
}

func newPatientLog(to io.Writer) *patientLog {
	p := &patientLog{to: to, lines: make(chan line, waitingLines)}
	go p.write()
	return p
}

// write writes the lines, until the process ends.
func (p *patientLog) write() {
	said := uint64(0)
	for l := range p.lines {
		_, _ = p.to.Write(l.text) // there is nobody to notify
		if lost := p.lost.Load(); lost > said {
			_, _ = fmt.Fprintf(p.to, `{"level":"warn","lines":%d,"message":"Lines of the log were lost: their reader stood still."}`+"\n", lost-said)
			said = lost
		}
		if l.written != nil {
			close(l.written)
		}
	}
}

func (p *patientLog) Write(text []byte) (int, error) {
	select {
	case p.lines <- line{text: append([]byte{}, text...)}:
	default:
		p.lost.Add(1)
	}
	return len(text), nil
}

// usage is the number of lines that wait, how many can, and how many were lost so far.
func (p *patientLog) usage() (waiting, size int, lost uint64) {
	return len(p.lines), cap(p.lines), p.lost.Load()
}

// WriteLevel is Write, but waits for a line of the level fatal.
func (p *patientLog) WriteLevel(level zerolog.Level, text []byte) (int, error) {
	if level != zerolog.FatalLevel {
		return p.Write(text)
	}
	last := line{append([]byte{}, text...), make(chan struct{})}
	p.lines <- last
	<-last.written
	return len(text), nil
}

// flush waits until all lines so far are written, for flushTime at most.
func (p *patientLog) flush() {
	last, late := line{written: make(chan struct{})}, time.After(flushTime)
	select {
	case p.lines <- last:
	case <-late:
		return
	}
	select {
	case <-last.written:
	case <-late:
	}
}
