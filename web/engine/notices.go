package engine

import (
	"fmt"
	"slices"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

// Notice is a notification on a link, for the page to draw.
type Notice struct {
	Number  uint64 `json:"number"` // to decode it
	ID      uint64 `json:"id"`     // the same on the next link
	Kind    string `json:"kind"`
	Built   bool   `json:"built"` // by a gateway; else it is a receiver's CNP
	From    int    `json:"from"`  // node
	To      int    `json:"to"`    // node
	Sent    int64  `json:"sent"`  // ns
	Arrives int64  `json:"arrives"`
}

const (
	keptNotices = 4096 // whose bytes are kept
	drawn       = 48   // of a frame of the page, the latest ones: nobody sees more as single ones
	mostBytes   = 320
)

// notices collects notifications on their way: a bounded number for the next frame of the page, and the bytes of the latest ones.
type notices struct {
	reads   cnpdec.Receiver
	next    []Notice
	more    int // that the next frame leaves out
	kept    [keptNotices]kept
	written uint64
}

type kept struct {
	bytes  [mostBytes]byte
	n      uint16
	length int
}

// receiver sets how extended CNPs are read with a response.
func (s *notices) receiver(r scenario.Response) {
	s.reads = cnpdec.Receiver{Code: packet.DefaultCodePoints, Extension: packet.LongHaulCNP}
	if r == scenario.PPFC {
		s.reads.Extension = packet.PPFC
	}
}

// passed notes a passage of a notification.
func (s *notices) passed(p *sim.Passage) {
	if len(s.next) == drawn {
		s.next = slices.Delete(s.next, 0, 1)
		s.more++
	}
	k := &s.kept[s.written%keptNotices]
	k.n, k.length = uint16(copy(k.bytes[:], p.Frame)), p.Length
	s.next = append(s.next, Notice{s.written, p.ID, s.kind(p), p.Built, p.From, p.To, p.Sent, p.Arrives})
	s.written++
}

// kind names a notification: a standard CNP of a host is the receiver's.
func (s *notices) kind(p *sim.Passage) string {
	var parsed packet.Parsed
	packet.Parse(p.Frame, uint32(p.Length), &parsed)
	k := packet.Classify(p.Frame, &parsed, &s.reads.Code)
	if k == packet.ExtendedCNP {
		k = s.reads.Extension
	}
	return k.String()
}

// Decoded is a notification field by field.
type Decoded struct {
	Kind    string         `json:"kind"`
	From    string         `json:"from"`
	To      string         `json:"to"`
	Refused string         `json:"refused,omitempty"` // why a receiver refuses it
	Hex     string         `json:"hex"`
	Fields  []DecodedField `json:"fields"`
}

// DecodedField is a field of a header.
type DecodedField struct {
	Layer  string `json:"layer"`
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // the draft's section
}

// Decode decodes a notification of a pane by its number.
func (e *Engine) Decode(pane int, number uint64) (*Decoded, error) {
	s := &e.panes[pane].notices
	if number >= s.written || s.written-number > keptNotices {
		return nil, fmt.Errorf("notification %d is no longer kept; the latest %d are", number, keptNotices)
	}
	k := &s.kept[number%keptNotices]
	frame := k.bytes[:k.n]
	r, is := decode.Read(frame, uint32(k.length), &s.reads)
	if !is {
		return nil, fmt.Errorf("notification %d can't be decoded", number)
	}
	d := &Decoded{Kind: r.Kind.String(), From: r.Source, To: r.Destination, Hex: fmt.Sprintf("% x", frame)}
	if r.Reason != cnpdec.Accepted {
		d.Refused = r.Reason.Explain()
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		for j := range l.Fields {
			if f := &l.Fields[j]; f.Name != "" {
				d.Fields = append(d.Fields, DecodedField{l.Name, f.Name, f.String(), l.Source(f)})
			}
		}
	}
	return d, nil
}
