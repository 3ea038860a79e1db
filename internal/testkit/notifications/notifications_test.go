package notifications

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "write testdata/notifications/golden.pcap and golden.yaml anew")

const folder = "../../../testdata/notifications"

// TestFiles: the capture and the listing in testdata are those of the golden notifications.
func TestFiles(t *testing.T) {
	var frames [][]byte
	for i := range All {
		frames = append(frames, All[i].Bytes())
	}
	for name, want := range map[string][]byte{"golden.pcap": Pcap(frames), "golden.yaml": Listing()} {
		path := filepath.Join(folder, name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s isn't what the golden notifications are (%v); go test ./internal/testkit/notifications -update", path, err)
		}
	}
}

// TestValues: what the fields are said to be is what their octets say.
func TestValues(t *testing.T) {
	names := map[string]bool{}
	for i := range All {
		g := &All[i]
		if names[g.Name] {
			t.Errorf("two are called %s", g.Name)
		}
		names[g.Name] = true
		for _, l := range g.Lines() {
			if err := l.check(); err != nil {
				t.Errorf("%s: %v", g.Name, err)
			}
		}
	}
}

// TestCheckObjects: a wrong value is noticed.
func TestCheckObjects(t *testing.T) {
	for _, l := range []Line{
		{Field: Field{Value: 2}, Octets: []byte{1}},
		{Field: Field{Mask: 0xc0, Value: 2}, Octets: []byte{0xc0}},
		{Field: Field{Value: addr("0a 00 00 02")}, Octets: []byte{10, 0, 0, 1}},
		{Field: Field{Value: "0103"}, Octets: []byte{1, 2}},
		{Field: Field{Value: uint8(1)}, Octets: []byte{1, 2}},
	} {
		if l.check() == nil {
			t.Errorf("%v passes for % x", l.Value, l.Octets)
		}
	}
}

// TestListing: the listing is valid YAML, and its fields cover each frame once and in order.
func TestListing(t *testing.T) {
	var listing []struct {
		Name   string
		Length int
		Fields []struct {
			Offset, Length int
			Mask           uint64
			Octets, Name   string
			Value          any
		}
	}
	if err := yaml.Unmarshal(Listing(), &listing); err != nil || len(listing) != len(All) {
		t.Fatalf("%d notifications, %v", len(listing), err)
	}
	for i, g := range listing {
		frame := All[i].Bytes()
		at := 0
		for j, l := range All[i].Lines() {
			f := g.Fields[j]
			if f.Mask == 0 {
				if f.Offset != at {
					t.Errorf("%s, %s: at %d, want %d", g.Name, f.Name, f.Offset, at)
				}
				at += f.Length
			}
			if got := hex.EncodeToString(frame[f.Offset : f.Offset+f.Length]); got != f.Octets {
				t.Errorf("%s, %s: octets %s, want %s", g.Name, f.Name, f.Octets, got)
			}
			if fmt.Sprint(f.Value) != fmt.Sprint(l.Value) || f.Mask != l.Mask || f.Name != l.Name {
				t.Errorf("%s, %s: %v, want %v", g.Name, f.Name, f.Value, l.Value)
			}
		}
		if at != len(frame) || g.Length != at {
			t.Errorf("%s: fields cover %d of %d octets", g.Name, at, len(frame))
		}
	}
}

// check returns an error if the line's value differs from its octets.
func (l *Line) check() error {
	var ok bool
	switch v := l.Value.(type) {
	case int:
		ok = l.Length <= 8 && v == l.Number()
	case netip.Addr:
		ok = string(v.AsSlice()) == string(l.Octets)
	case string:
		ok = v == string(l.Octets) || v == hexOf(l.Octets) || v == mac(l.Octets)
	}
	if !ok {
		return fmt.Errorf("%s at octet %d: value %v isn't octets % x under mask %#x", l.Name, l.Offset, l.Value, l.Octets, l.Mask)
	}
	return nil
}

func mac(b []byte) string {
	var s []string
	for _, o := range b {
		s = append(s, fmt.Sprintf("%02x", o))
	}
	return strings.Join(s, ":")
}

const listingHead = `# Golden notifications, written out from the figures of the drafts: the frames of golden.pcap in their order,
# and what each octet is. Made from internal/testkit/notifications by
#   go test ./internal/testkit/notifications -update
# offset and length are octets, counted from the frame's first one. mask selects bits of the octets taken as one number; octets are
# those of the whole field. A value is a number, an address, or octets or text in quotes. extension is what the E/P bit of the BTH means
# to the receiver that the frame is for: long-haul, ppfc or none. icrc is what the ICRC covers of IPv6 extension headers: as-sent or
# without-extension-headers.
`

// Listing is the golden notifications as YAML.
func Listing() []byte {
	var b strings.Builder
	b.WriteString(listingHead)
	for i := range All {
		g := &All[i]
		fmt.Fprintf(&b, "- name: %s\n  frame: %d\n  kind: %s\n  extension: %s\n",
			g.Name, i+1, g.Kind, g.Extension)
		if g.ICRC != "" {
			fmt.Fprintf(&b, "  icrc: %s\n", g.ICRC)
		}
		if g.Origin != "" {
			fmt.Fprintf(&b, "  origin: %q\n", g.Origin)
		}
		fmt.Fprintf(&b, "  length: %d\n  fields:\n", len(g.Bytes()))
		for _, l := range g.Lines() {
			b.WriteString(l.yaml())
		}
	}
	return []byte(b.String())
}

func (l *Line) yaml() string {
	s := fmt.Sprintf("    - {offset: %d, length: %d, ", l.Offset, l.Length)
	if l.Mask != 0 {
		s += fmt.Sprintf("mask: %#x, ", l.Mask)
	}
	s += fmt.Sprintf("octets: %q, name: %s, ", hexOf(l.Octets), l.Name)
	if v, ok := l.Value.(int); ok {
		s += fmt.Sprintf("value: %d", v)
	} else {
		s += fmt.Sprintf("value: %q", fmt.Sprint(l.Value))
	}
	if l.Note != "" {
		s += fmt.Sprintf(", note: %q", l.Note)
	}
	return s + "}\n"
}
