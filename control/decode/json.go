package decode

import (
	"bufio"
	"bytes"
	"encoding/json"

	"github.com/cnpgate/cnpgate/cnpdec"
)

// object is a JSON object that preserves the order of its members.
type object struct {
	bytes.Buffer
	err error
}

func (o *object) member(key string, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		o.err = err
		return
	}
	o.raw(key, b)
}

// raw adds a member whose value is JSON already.
func (o *object) raw(key string, value []byte) {
	separator := byte(',')
	if o.Len() == 0 {
		separator = '{'
	}
	o.WriteByte(separator)
	o.WriteByte('"')
	o.WriteString(key) // keys are names of this package, which need no escape
	o.WriteString(`":`)
	o.Write(value)
}

// closed is the complete object.
func (o *object) closed() []byte {
	if o.Len() == 0 {
		o.WriteByte('{')
	}
	o.WriteByte('}')
	return o.Bytes()
}

// jsonRecord prints a record as an object on a line.
func jsonRecord(w *bufio.Writer, r *Record) error {
	var o object
	o.member("frame", r.Frame)
	o.member("time", r.Time.Format(timeLayout))
	o.member("since_first_ns", r.Since.Nanoseconds())
	if r.Packet == "" {
		o.member("kind", r.name())
	} else {
		o.member("packet", r.Packet)
	}
	o.member("source", r.Source)
	o.member("destination", r.Destination)
	switch {
	case r.Malformed != "":
		o.member("malformed", r.Malformed)
	case r.IGP != "" || r.Packet != "":
	default:
		o.member("accepted", r.Reason == cnpdec.Accepted)
		if r.Reason != cnpdec.Accepted {
			o.member("reason", r.Reason.String())
			o.member("explanation", r.Reason.Explain())
		}
	}
	layers(&o, r.Layers)
	if len(r.Comments) > 0 {
		o.member("comments", r.Comments)
	}
	if o.err != nil {
		return o.err
	}
	_, err := w.Write(append(o.closed(), '\n'))
	return err
}

// layers adds a member for each layer, and an array for those of a list.
func layers(o *object, all []Layer) {
	for i := 0; i < len(all); i++ {
		l := &all[i]
		if !l.List {
			o.raw(l.Key, l.json(o))
			continue
		}
		list := append([]byte{'['}, l.json(o)...)
		for ; i+1 < len(all) && all[i+1].Key == l.Key; i++ {
			list = append(append(list, ','), all[i+1].json(o)...)
		}
		o.raw(l.Key, append(list, ']'))
	}
}

// json is the layer as an object; o takes errors.
func (l *Layer) json(o *object) []byte {
	var inner object
	for _, f := range l.Fields {
		if f.Key != "" {
			inner.member(f.Key, f.Value)
		}
	}
	if inner.err != nil {
		o.err = inner.err
	}
	return inner.closed()
}

func jsonSummary(w *bufio.Writer, s *Summary) error {
	var o, inner, reasons object
	for reason, n := range s.ByReason {
		if n != 0 {
			reasons.member(cnpdec.Reason(reason).String(), n)
		}
	}
	inner.member("frames", s.Frames)
	inner.member("accepted", s.Accepted)
	inner.member("refused", s.Refused)
	inner.member("igp", s.IGP)
	inner.member("other", s.Other)
	inner.raw("refused_by_reason", reasons.closed())
	o.raw("summary", inner.closed())
	_, err := w.Write(append(o.closed(), '\n'))
	return err
}
