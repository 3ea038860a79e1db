package decode

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/cnpgate/cnpgate/cnpdec"
)

// timeLayout is RFC 3339 with nanoseconds, always nine digits.
const timeLayout = "2006-01-02T15:04:05.000000000Z07:00"

// textRecord prints a line with kind, time, source and destination, then one line per field.
func textRecord(w io.Writer, r *Record) error {
	_, err := fmt.Fprintf(w, "frame %d, %s (+%d.%09d s): %s from %s to %s%s\n", r.Frame, r.Time.Format(timeLayout),
		r.Since/1e9, r.Since%1e9, r.name(), r.Source, r.Destination, r.verdict())
	if err != nil {
		return err
	}
	if err := WriteText(w, r.Layers); err != nil {
		return err
	}
	for _, c := range r.Comments {
		for i, line := range strings.Split(strings.TrimRight(c, "\n"), "\n") {
			if _, err := fmt.Fprintf(w, "    %-10s %s\n", []string{"comment", ""}[min(i, 1)], printable(line)); err != nil {
				return err
			}
		}
	}
	_, err = fmt.Fprintln(w)
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

// WriteText prints one line per field, with the layer before its first one.
func WriteText(w io.Writer, layers []Layer) error {
	for i := range layers {
		name := layers[i].Name
		for _, f := range layers[i].Fields {
			if f.Name == "" {
				continue
			}
			text := f.Text
			if text == "" {
				text = fmt.Sprint(f.Value)
			}
			if _, err := fmt.Fprintf(w, "    %-10s %-18s %s\n", name, f.Name, text); err != nil {
				return err
			}
			name = ""
		}
	}
	return nil
}

func textSummary(w io.Writer, s Summary) error {
	if _, err := fmt.Fprintf(w, "%d frames: %d notifications accepted, %d refused, %d other frames\n", s.Frames, s.Accepted, s.Refused, s.Other); err != nil {
		return err
	}
	if s.IGP != 0 {
		if _, err := fmt.Fprintf(w, "packets of IS-IS and OSPF: %d\n", s.IGP); err != nil {
			return err
		}
	}
	for reason, n := range s.ByReason {
		if n == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "refused for %s: %d\n", cnpdec.Reason(reason), n); err != nil {
			return err
		}
	}
	return nil
}
