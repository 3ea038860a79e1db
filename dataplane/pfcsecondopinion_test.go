//go:build secondopinion

package dataplane_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecondOpinionPFC: tshark finds in the PFC frames that a gateway sends what they are to say, and nothing malformed.
func TestSecondOpinionPFC(t *testing.T) {
	r := losslessRig(t, 1, nil)
	for range 12 {
		r.Inject(t, fabric, roce(losslessDSCP))
	}
	r.Drain()
	// A capture in the classic format, of microseconds and Ethernet.
	capture := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	capture = append(capture, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0)
	for _, f := range r.Take(fabric) {
		capture = binary.LittleEndian.AppendUint64(capture, 0)
		capture = binary.LittleEndian.AppendUint32(capture, uint32(len(f.Octets)))
		capture = binary.LittleEndian.AppendUint32(capture, uint32(len(f.Octets)))
		capture = append(capture, f.Octets...)
	}
	path := filepath.Join(t.TempDir(), "pfc.pcap")
	if err := os.WriteFile(path, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	args := strings.Fields("-T fields -E separator=, -e eth.dst -e frame.len -e macc.opcode -e macc.cbfc.enbv -e macc.cbfc.pause_time.c2 -e macc.cbfc.pause_time.c3 " +
		"-e macc.cbfc.pause_time.c4 -e _ws.malformed -r")
	out, err := exec.CommandContext(t.Context(), "tshark", append(args, path)...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	const want = "01:80:c2:00:00:01,60,0x0101,0x0008,0,65535,0,\n01:80:c2:00:00:01,60,0x0101,0x0008,0,0,0,\n"
	if string(out) != want {
		t.Errorf("tshark reads\n%s, expected\n%s", out, want)
	}
	r.Close(t)
}
