package main

import (
	"strings"
	"testing"
)

func TestReadStatistics(t *testing.T) {
	const port = "  RX-packets: 100  RX-dropped: 0  RX-total: 100\n  Bad-ipcsum: 0  Bad-l4csum: 0  Bad-outer-l4csum: 0"
	for _, c := range []struct {
		name, ports, sum string
		ops              uint64
		says             string
	}{
		{"io", "  RX-packets: 1", "  RX-packets: 41 RX-dropped: 0\n  TX-packets: 42             TX-dropped: 0             TX-total: 42", 42, ""},
		{"csum", port, "  TX-packets: 7 TX-dropped: 0 TX-total: 7", 7, ""},
		{"bad checksums", strings.Replace(port, "ipcsum: 0", "ipcsum: 3", 1), "  TX-packets: 7 TX-dropped: 0 TX-total: 7", 0, "3 frames had Bad-ipcsum"},
		{"drops", port, "  TX-packets: 7 TX-dropped: 1 TX-total: 8", 0, "7 frames forwarded, 1 dropped"},
		{"nothing", port, "  TX-packets: 0 TX-dropped: 0 TX-total: 0", 0, "0 frames forwarded"},
		{"no sum", port, "Done.", 0, "expected TX-packets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sample
			err := s.readStatistics(strings.Split(c.ports, "\n"), strings.Split(c.sum, "\n"))
			if c.says == "" && (err != nil || s.Ops != c.ops) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%d frames, %v", s.Ops, err)
			}
		})
	}
}
