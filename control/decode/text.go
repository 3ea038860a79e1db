package decode

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"unicode"

	"github.com/cnpgate/cnpgate/cnpdec"
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

// String is the value in text.
func (f *Field) String() string {
	if f.Text != "" {
		return f.Text
	}
	return fmt.Sprint(f.Value)
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

// timeLayout is RFC 3339 with nanoseconds, always nine digits.
const timeLayout = "2006-01-02T15:04:05.000000000Z07:00"

// textRecord prints a line with kind, time, source and destination, then one line per field. The writer keeps its first error, which the last line returns.
func textRecord(w *bufio.Writer, r *Record) error {
	fmt.Fprintf(w, "frame %d, %s (+%d.%09d s): %s from %s to %s%s\n", r.Frame, r.Time.Format(timeLayout),
		r.Since/1e9, r.Since%1e9, r.name(), r.Source, r.Destination, r.verdict())
	WriteText(w, r.Layers)
	for _, c := range r.Comments {
		for i, line := range strings.Split(strings.TrimRight(c, "\n"), "\n") {
			fmt.Fprintf(w, "    %-10s %s\n", []string{"comment", ""}[min(i, 1)], printable(line))
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// printable replaces what could change a terminal: a capture's text may be anybody's.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) || c == '\t' {
			return c
		}
		return '?'
	}, text)
}

// name is the kind of a notification, or the name of another packet.
func (r *Record) name() string {
	if r.Packet != "" {
		return r.Packet
	}
	if r.IGP != "" {
		return r.IGP
	}
	return r.Kind.String()
}

// verdict says whether a notification is accepted, or why an IGP's packet can't be read.
func (r *Record) verdict() string {
	switch {
	case r.Malformed != "":
		return ", malformed: " + r.Malformed
	case r.IGP != "" || r.Packet != "":
		return ""
	case r.Reason != cnpdec.Accepted:
		return fmt.Sprintf(", refused (%s): %s", r.Reason, r.Reason.Explain())
	}
	return ", accepted"
}

// WriteText prints one line per field, with the layer before its first one. w keeps its errors.
func WriteText(w io.Writer, layers []Layer) {
	for i := range layers {
		name := layers[i].Name
		for _, f := range layers[i].Fields {
			if f.Name == "" {
				continue
			}
			fmt.Fprintf(w, "    %-10s %-18s %s\n", name, f.Name, f.String())
			name = ""
		}
	}
}

func textSummary(w *bufio.Writer, s *Summary) error {
	fmt.Fprintf(w, "%d frames: %d notifications accepted, %d refused, %d other frames\n", s.Frames, s.Accepted, s.Refused, s.Other)
	if s.Other == s.Frames && s.Frames > 0 {
		fmt.Fprintln(w, "no notification is in it; cnpgate replay --health CAPTURE says what is wrong with RDMA")
	}
	if s.IGP != 0 {
		fmt.Fprintf(w, "packets of IS-IS and OSPF: %d\n", s.IGP)
	}
	for reason, n := range s.ByReason {
		if n != 0 {
			fmt.Fprintf(w, "refused for %s: %d\n", cnpdec.Reason(reason), n)
		}
	}
	return nil // Flush returns errors
}
