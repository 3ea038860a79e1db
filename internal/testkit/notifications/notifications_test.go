package notifications

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
			if err := l.Check(); err != nil {
				t.Errorf("%s: %v", g.Name, err)
			}
		}
	}
}

// TestCheckObjects: a wrong value is noticed.
func TestCheckObjects(t *testing.T) {
	for _, l := range []Line{
		{Octets: []byte{1}, Value: 2},
		{Octets: []byte{0xc0}, Mask: 0xc0, Value: 2},
		{Octets: []byte{10, 0, 0, 1}, Value: addr("0a 00 00 02")},
		{Octets: []byte{1, 2}, Value: "0103"},
		{Octets: []byte{1, 2}, Value: uint8(1)},
	} {
		if l.Check() == nil {
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
