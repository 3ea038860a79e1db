// Package decode prints the notifications of a capture: for people as text, for programs as a JSON object a line. It reads the capture,
// lets cnpdec judge each frame, and puts what cnpdec says into words. It judges nothing itself, keeps nothing between frames, and
// skips what isn't a notification but for counting it.
package decode

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Format is what the output is for.
type Format uint8

// People read Text, programs JSON.
const (
	Text Format = iota
	JSON
)

// Record is a notification of a capture, accepted or refused.
type Record struct {
	Frame  int           // 1 is the capture's first
	Time   time.Time     // of the frame, UTC
	Since  time.Duration // of the frame, since the capture's first one
	Kind   cnpdec.Kind   // of a refused one, as far as it can be told
	Reason cnpdec.Reason
	// Source and Destination are addresses of the IP header, or MAC addresses of a PAUSE or PFC frame.
	Source, Destination string
	Layers              []Layer // from the outside in
}

// Summary counts the frames of a capture.
type Summary struct {
	Frames, Accepted, Refused, Other int
	ByReason                         [cnpdec.Reasons]int // of Refused, by cnpdec.Reason
}

// Run prints the notifications of capture to w, then the summary, which it returns too. r says what is expected of them.
func Run(capture *replay.Capture, r *cnpdec.Receiver, format Format, w io.Writer) (Summary, error) {
	var s Summary
	out := bufio.NewWriter(w)
	printRecord, printSummary := textRecord, textSummary
	if format == JSON {
		printRecord, printSummary = jsonRecord, jsonSummary
	}
	for {
		f, err := capture.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, errors.Join(fmt.Errorf("frame %d: %w", s.Frames+1, err), out.Flush())
		}
		s.Frames++
		record, is := read(&f, r)
		if !is {
			s.Other++
			continue
		}
		if record.Reason == cnpdec.Accepted {
			s.Accepted++
		} else {
			s.Refused++
			s.ByReason[record.Reason]++
		}
		record.Frame, record.Time, record.Since = s.Frames, capture.First.Add(time.Duration(f.Time)).UTC(), time.Duration(f.Time)
		if err := printRecord(out, &record); err != nil {
			return s, err
		}
	}
	if err := printSummary(out, s); err != nil {
		return s, err
	}
	return s, out.Flush()
}

// read says what a frame is, and false if it isn't a notification.
func read(f *replay.Frame, r *cnpdec.Receiver) (Record, bool) {
	var p packet.Parsed
	var n cnpdec.Notification
	packet.Parse(f.Octets, f.Length, &p)
	reason := r.Decode(f.Octets, &p, &n)
	if n.Kind == cnpdec.None {
		return Record{}, false
	}
	record := Record{Kind: n.Kind, Reason: reason, Source: address(n.Family, n.Src), Destination: address(n.Family, n.Dst)}
	if n.Kind == cnpdec.Pause || n.Kind == cnpdec.PFC {
		record.Source, record.Destination = mac(f.Octets[6:]), mac(f.Octets)
	}
	if reason == cnpdec.Accepted {
		record.Layers = Describe(f.Octets, &p, &n, &r.Code)
	} else {
		record.Layers = refused(f.Octets, &p)
	}
	return record, true
}
