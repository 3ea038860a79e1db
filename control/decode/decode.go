// Package decode prints the notifications of a capture, the packets of the IGPs that advertise proxies, and packets with a comment: as text for
// people, or as one JSON object per line for programs. It reads the capture, lets cnpdec decode and validate each frame, and prints the result. It validates nothing
// itself and has no state between frames. It only counts other frames.
package decode

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Format is the format of the output.
type Format uint8

// People read Text, programs JSON.
const (
	Text Format = iota
	JSON
)

// Record is a notification of a capture, accepted or refused, or a packet of an IGP.
type Record struct {
	Frame  int                 // 1 is the capture's first
	Time   time.Time           // of the frame, UTC
	Since  time.Duration       // of the frame, since the capture's first one
	Kind   packet.Notification // of a refused one, if it is known
	Reason cnpdec.Reason
	// Source and Destination are addresses of the IP header, or MAC addresses of a PAUSE or PFC frame.
	Source, Destination string
	Layers              []Layer // from the outside in
	// IGP is the name of a packet of IS-IS or OSPF, such as isis-l2-lsp; Kind and Reason mean nothing then. Malformed says why it can't be
	// read to its end, "" if it can.
	IGP, Malformed string
	// Packet describes any other packet, which is printed only for its comments; "" for those above.
	Packet   string
	Comments []string // of the frame in the capture
}

// Summary counts the frames of a capture.
type Summary struct {
	Frames, Accepted, Refused, IGP, Other int
	ByReason                              [cnpdec.Reasons]int // of Refused, by cnpdec.Reason
}

// Run prints the notifications and IGP packets of capture to w, then the summary, which it also returns. r has the receiver's settings. If the capture is cut short or
// ended by a context, Run still prints the summary, and returns that error.
func Run(capture *capturefile.Reader, r *cnpdec.Receiver, format Format, out *bufio.Writer) (Summary, error) {
	var s Summary
	printRecord, printSummary := textRecord, textSummary
	if format == JSON {
		printRecord, printSummary = jsonRecord, jsonSummary
	}
	var ended error
	for {
		f, err := capture.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if capturefile.Ends(err) || errors.Is(err, context.Canceled) {
			ended = err
			break
		}
		if err != nil {
			return s, errors.Join(err, out.Flush())
		}
		record, is := Read(f.Octets, f.Length, r)
		if s.count(&record, is); !is && len(f.Comments) == 0 {
			continue
		}
		record.Comments = f.Comments
		record.Frame, record.Time, record.Since = s.Frames, capture.First.Add(time.Duration(f.Time)).UTC(), time.Duration(f.Time)
		if err := printRecord(out, &record); err != nil {
			return s, err
		}
	}
	if err := printSummary(out, &s); err != nil {
		return s, err
	}
	return s, errors.Join(out.Flush(), ended)
}

// count counts a frame, which may be a notification or a packet of an IGP.
func (s *Summary) count(r *Record, is bool) {
	s.Frames++
	switch {
	case !is:
		s.Other++
	case r.IGP != "":
		s.IGP++
	case r.Reason == cnpdec.Accepted:
		s.Accepted++
	default:
		s.Refused++
		s.ByReason[r.Reason]++
	}
}

// Read decodes a frame, of which octets were captured; false if it is neither a notification nor a packet of an IGP.
func Read(octets []byte, length uint32, r *cnpdec.Receiver) (Record, bool) {
	var p packet.Parsed
	var n cnpdec.Notification
	packet.Parse(octets, length, &p)
	reason := r.Decode(octets, &p, &n)
	if n.Kind == packet.NotANotification {
		if record, is := igp(octets, &p); is {
			return record, true
		}
		return other(octets, &p), false
	}
	record := Record{Kind: n.Kind, Reason: reason, Source: address(n.Family, n.Src), Destination: address(n.Family, n.Dst)}
	if n.Kind == packet.LinkPause || n.Kind == packet.LinkPFC {
		record.Source, record.Destination = mac(octets[6:]), mac(octets)
	}
	if reason == cnpdec.Accepted {
		record.Layers = Describe(octets, &p, &n, &r.Code)
	} else {
		record.Layers = refused(octets, &p)
	}
	return record, true
}

// other describes a packet that decode doesn't know: its operation, if it is one of RoCEv2, and its addresses.
func other(frame []byte, p *packet.Parsed) Record {
	r := Record{Packet: "packet"}
	if p.Kind == packet.RoCEv2 {
		r.Packet = p.Opcode.String()
	}
	switch {
	case p.Family != 0:
		r.Source, r.Destination = address(p.Family, p.Src), address(p.Family, p.Dst)
	case len(frame) >= packet.EthernetLen:
		r.Source, r.Destination = mac(frame[6:]), mac(frame)
	}
	return r
}
