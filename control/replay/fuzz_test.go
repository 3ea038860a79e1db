package replay_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// FuzzReplay: whatever the file is, a replay refuses it or accounts for every frame and buffer, which Run itself sees to.
func FuzzReplay(f *testing.F) {
	le := binary.LittleEndian
	tagged := testkit.RoCE{Src: "fd00:1::1", Dst: "fd00:9::9", ECN: 2, DestQP: 7, Tags: []uint32{0x88a8_0064, 0x8100_00c8}, Size: 900}.Frame()
	f.Add(classic(le, micro, 1, whole(1, 0, frameOf(1)), whole(1, 1, tagged), whole(1, 2, tagged), whole(1, 3, tagged), whole(1, 4, tagged)))
	f.Add(classic(binary.BigEndian, nano, 1, record{1, 0, 60, 1500, frameOf(1)[:60]}, whole(0, 0, nil)))
	f.Add(simplePackets(frameOf(1), tagged, tagged[:40]))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	for _, name := range []string{"malformed", "domain", "non-ip"} {
		b, err := os.ReadFile(filepath.Join(goldenDir, name, "in.pcap"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	c, err := config.Parse("fuzz.yaml", []byte(gatewayAddresses+everyoneIsTold+`ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 1Mbps, queue_capacity: 4KB}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 100kbps, queue_capacity: 4KB}
profiles: {default: {mode: thresholds, k_base: 1KB}}
`))
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "in.pcap")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		capture, err := replay.Open(path, nil)
		if err != nil {
			return
		}
		defer capture.Close()
		var forwarded bytes.Buffer
		r, err := replay.Run(c, capture, replay.Options{Fabric: goldenFabric, Forwarded: &forwarded, Emitted: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		if n := total(r, "forwarded_packets_total"); n != uint64(len(frames(t, forwarded.Bytes()))) {
			t.Errorf("%d frames counted as forwarded, %d found", n, len(frames(t, forwarded.Bytes())))
		}
	})
}
