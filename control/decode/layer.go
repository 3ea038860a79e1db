package decode

import (
	"fmt"
	"net"
)

// Layer is a header, or what else belongs together.
type Layer struct {
	Key    string // its name in JSON
	Name   string // its name in text
	List   bool   // in JSON, layers of the same key make an array
	Fields []Field
}

// Field is a value of a layer.
type Field struct {
	Key   string // its name in JSON, "" for text only
	Name  string // its name in text, "" for JSON only
	Value any    // string, bool or an integer
	Text  string // how the value is written in text; "" for as it is
}

// as adds a field that text writes as JSON does.
func (l *Layer) as(key, name string, value any) {
	l.Fields = append(l.Fields, Field{Key: key, Name: name, Value: value})
}

// say adds a field that text writes in another way, with its unit or what it means.
func (l *Layer) say(key, name string, value any, format string, args ...any) {
	l.Fields = append(l.Fields, Field{Key: key, Name: name, Value: value, Text: fmt.Sprintf(format, args...)})
}

// reserved adds a field that receivers ignore: text names it only where it isn't zero.
func (l *Layer) reserved(key string, value uint64) {
	name := ""
	if value != 0 {
		name = "reserved"
	}
	l.say(key, name, value, "0x%x (ignored)", value)
}

func mac(b []byte) string { return net.HardwareAddr(b[:6]).String() }
