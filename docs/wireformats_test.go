// Package docs holds pages of documentation to the tree.
package docs

import (
	"bytes"
	"flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

var update = flag.Bool("update", false, "write the tables of wire-formats.md anew")

const wireFormats = "wire-formats.md"

func wirePage(t *testing.T) (string, map[string]notifications.Shown) {
	t.Helper()
	page, err := os.ReadFile(wireFormats)
	if err != nil {
		t.Fatal(err)
	}
	frames, err := notifications.PageRead(string(page))
	if err != nil {
		t.Fatal(err)
	}
	return string(page), frames
}

// TestWireFormatTables: the tables are those of the golden notifications.
func TestWireFormatTables(t *testing.T) {
	page := readPage(t, wireFormats)
	want := notifications.PageWrite(page)
	if *update {
		if err := os.WriteFile(wireFormats, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, wanted := strings.Split(page, "\n"), strings.Split(want, "\n")
	for i := range min(len(got), len(wanted)) {
		if got[i] != wanted[i] && !*update {
			t.Fatalf("%s:%d differs from the golden notifications (go test ./docs -update writes it anew)\ngot  %s\nwant %s",
				wireFormats, i+1, got[i], wanted[i])
		}
	}
	if page != want && !*update {
		t.Errorf("%s has %d lines, want %d", wireFormats, len(got), len(wanted))
	}
}

// TestWireFormatOctets: the page's octets, and nothing else of it, are frames of the capture, and a receiver accepts each as its format. That the
// encoders write the same is tested beside them.
func TestWireFormatOctets(t *testing.T) {
	_, frames := wirePage(t)
	capture := pcap.Octets(pcap.Read(t, "../testdata/notifications/golden.pcap"))
	if len(capture) != len(notifications.All) {
		t.Fatalf("%d frames in the capture, expected %d", len(capture), len(notifications.All))
	}
	seen := map[packet.Notification]int{}
	for i := range notifications.All {
		g := &notifications.All[i]
		captured := capture[i]
		shown, is := frames[g.Name]
		if !is {
			continue
		}
		if !shown.Of(captured) {
			t.Errorf("%s: the page shows, from octet %d on,\n% x, the capture has\n% x", g.Name, shown.From, shown.Octets, captured)
		}
		receiver := cnpdec.Receiver{Code: packet.DefaultCodePoints, ICRC: cnpdec.ICRCEither}
		receiver.Extension = map[string]packet.Notification{"long-haul": packet.LongHaulCNP, "ppfc": packet.PPFC}[g.Extension]
		var p packet.Parsed
		packet.Parse(captured, uint32(len(captured)), &p)
		var n cnpdec.Notification
		if reason := receiver.Decode(captured, &p, &n); reason != cnpdec.Accepted || n.Kind.String() != g.Kind {
			t.Errorf("%s: a receiver takes the frame for %v: %v", g.Name, n.Kind, reason)
		}
		seen[n.Kind]++
		delete(frames, g.Name)
	}
	for name := range frames {
		t.Errorf("the page shows %s, which isn't in the capture", name)
	}
	for k := range packet.NotANotification {
		if seen[k] == 0 && k != packet.ExtendedCNP {
			t.Errorf("the page shows no %v", k)
		}
	}
}

// TestWireFormatRows: a changed octet, a missing row and a row out of place are noticed.
func TestWireFormatRows(t *testing.T) {
	page, frames := wirePage(t)
	const a, b = "| 30 | `0a 00 00 01` |", "| 34 | `ce 21` |"
	changed, err := notifications.PageRead(strings.Replace(page, a, "| 30 | `0a 00 00 03` |", 1))
	if err != nil || bytes.Equal(changed["standard-cnp-v4"].Octets, frames["standard-cnp-v4"].Octets) {
		t.Errorf("a changed octet isn't noticed: %v", err)
	}
	for _, with := range []string{"", "| 35 | `ce 21` |"} {
		if _, err := notifications.PageRead(strings.Replace(page, b, with, 1)); err == nil {
			t.Errorf("%q in place of a row isn't noticed", with)
		}
	}
}

// TestWireFormatText: addresses that the text names are those of the frames.
func TestWireFormatText(t *testing.T) {
	page, _ := wirePage(t)
	text, _, _ := strings.Cut(page, "## Code points")
	all := slices.Concat(notifications.Find("long-haul-cnp-v4").Bytes(), notifications.Find("proxy-notification-v4").Bytes(), notifications.Find("proxy-notification-v6").Bytes())
	n := 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" ,;\n", r) }) {
		a, err := netip.ParseAddr(strings.TrimSuffix(word, "."))
		if err != nil {
			continue
		}
		if n++; !bytes.Contains(all, a.AsSlice()) {
			t.Errorf("no frame has the address %s", a)
		}
	}
	if n != 8 {
		t.Errorf("the text names %d addresses", n)
	}
}
