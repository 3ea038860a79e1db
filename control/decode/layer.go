package decode

import (
	"fmt"
	"net"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Layer is a header, or another group of fields.
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
	Text  string // the value in text; "": unchanged
}

// as adds a field with the same value in text and JSON.
func (l *Layer) as(key, name string, value any) {
	l.Fields = append(l.Fields, Field{Key: key, Name: name, Value: value})
}

// say adds a field whose value in text has a unit or an explanation.
func (l *Layer) say(key, name string, value any, format string, args ...any) {
	l.Fields = append(l.Fields, Field{Key: key, Name: name, Value: value, Text: fmt.Sprintf(format, args...)})
}

// reserved adds a field that receivers ignore. Text has it only if it isn't zero.
func (l *Layer) reserved(key string, value uint64) {
	name := ""
	if value != 0 {
		name = "reserved"
	}
	l.say(key, name, value, "0x%x (ignored)", value)
}

// address writes an address of the IP version. An IPv4-mapped address in IPv6, which is invalid there, is not written in IPv4 form.
func address(family uint8, a packet.Addr) string {
	if family == 6 && a.Is4() {
		return "::ffff:" + a.Netip().String()
	}
	return a.Netip().String()
}

func mac(b []byte) string { return net.HardwareAddr(b[:6]).String() }
