package decode

import (
	"bufio"
	"encoding/json"
	"fmt"

	"github.com/cnpgate/cnpgate/cnpdec"
)

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	key   string // a name of this package, which needs no escape
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(fmt.Appendf(text, `"%s":`, m.key), value...)
	}
	return append(text, '}'), nil
}

// jsonRecord prints a record as an object on a line.
func jsonRecord(w *bufio.Writer, r *Record) error {
	named := "kind"
	if r.Packet != "" {
		named = "packet"
	}
	o := object{
		{"frame", r.Frame}, {"time", r.Time.Format(timeLayout)}, {"since_first_ns", r.Since.Nanoseconds()}, {named, r.name()}, {"source", r.Source}, {"destination", r.Destination},
	}
	switch {
	case r.Malformed != "":
		o = append(o, member{"malformed", r.Malformed})
	case r.IGP != "" || r.Packet != "":
	case r.Reason != cnpdec.Accepted:
		o = append(o, member{"accepted", false}, member{"reason", r.Reason.String()}, member{"explanation", r.Reason.Explain()})
	default:
		o = append(o, member{"accepted", true})
	}
	for i := 0; i < len(r.Layers); i++ {
		l := &r.Layers[i]
		if !l.List {
			o = append(o, member{l.Key, l.object()})
			continue
		}
		list := []object{l.object()}
		for ; i+1 < len(r.Layers) && r.Layers[i+1].Key == l.Key; i++ {
			list = append(list, r.Layers[i+1].object())
		}
		o = append(o, member{l.Key, list})
	}
	if len(r.Comments) > 0 {
		o = append(o, member{"comments", r.Comments})
	}
	return json.NewEncoder(w).Encode(o)
}

func (l *Layer) object() (o object) {
	for _, f := range l.Fields {
		if f.Key != "" {
			o = append(o, member{f.Key, f.Value})
		}
	}
	return o
}

func jsonSummary(w *bufio.Writer, s *Summary) error {
	var reasons object
	for reason, n := range s.ByReason {
		if n != 0 {
			reasons = append(reasons, member{cnpdec.Reason(reason).String(), n})
		}
	}
	return json.NewEncoder(w).Encode(object{{"summary", object{
		{"frames", s.Frames}, {"accepted", s.Accepted}, {"refused", s.Refused}, {"igp", s.IGP}, {"other", s.Other}, {"refused_by_reason", reasons},
	}}})
}
