//go:build secondopinion

package wireshark_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/capture"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// TestCapture: tshark reads a capture of the gateway's: the comment of each packet, its time and interface, and with the dissector what it is.
func TestCapture(t *testing.T) {
	var file bytes.Buffer
	want := [][]string{}
	w, err := capture.NewWriter(&file, "cnpgate test")
	if err != nil {
		t.Fatal(err)
	}
	for i := range notifications.All {
		g := &notifications.All[i]
		if g.Kind == "pause" || g.Kind == "pfc" {
			continue
		}
		frame := g.Bytes()
		n := &report.Notification{Time: time.Unix(1_700_000_000, int64(i)), Kind: g.Kind, Action: "pause", Parameter: uint16(i), SentBy: []string{"dc0", "dc1"}[i%2],
			Why: "queue wan0/data is above K_max", Length: len(frame), Frame: frame}
		if err := w.Write(n); err != nil {
			t.Fatal(err)
		}
		kind := g.Kind
		if kind == "ppfc" {
			kind = "long-haul-cnp" // unless the dissector's preference says otherwise: the same bit
		}
		want = append(want, []string{n.SentBy, fmt.Sprintf("1700000000.%09d", i), n.Comment(), kind})
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "notifications.pcapng")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got := lines(dissected(t, "-r", path, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.time_epoch", "-e", "frame.comment", "-e", "cnpgate.kind"))
	if len(got) != len(want) {
		t.Fatalf("%d packets, expected %d", len(got), len(want))
	}
	for i := range got {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("packet %d is %q, expected %q", i, got[i], want[i])
		}
	}
}
