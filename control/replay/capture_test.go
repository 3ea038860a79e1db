package replay_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

const wire = `gateway: {name: wire, ipv4: 192.0.2.1}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 100Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 100Gbps}
profiles: {default: {mode: thresholds}}
flows: {capacity: 1Ki}
`

// record is one frame of a classic capture file as it stands there.
type record struct {
	sec, sub, captured, length uint32
	octets                     []byte
}

func whole(sec, sub uint32, octets []byte) record {
	return record{sec, sub, uint32(len(octets)), uint32(len(octets)), octets}
}

// classic makes a classic capture file.
func classic(order binary.AppendByteOrder, magic, link uint32, records ...record) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(order.AppendUint16(b, 2), 4)
	b = order.AppendUint32(order.AppendUint32(append(b, make([]byte, 8)...), 65535), link)
	for _, r := range records {
		for _, v := range []uint32{r.sec, r.sub, r.captured, r.length} {
			b = order.AppendUint32(b, v)
		}
		b = append(b, r.octets...)
	}
	return b
}

const micro, nano = 0xa1b2c3d4, 0xa1b23c4d

// frameOf returns a frame from the data centre with n as its PSN.
func frameOf(n uint32) []byte {
	return testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100, PSN: n, Size: 100}.Frame()
}

func save(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// through takes a capture through a gateway that is a wire, and returns what it forwarded and warned of.
func through(t *testing.T, b []byte) ([]frame, string) {
	t.Helper()
	c, err := replay.Open(save(t, b), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out bytes.Buffer
	if _, err := replay.Run(parseConfig(t, wire), c, replay.Options{Fabric: prefixes("10.1.0.0/16"), Forwarded: &out}); err != nil {
		t.Fatal(err)
	}
	return frames(t, out.Bytes()), strings.Join(c.Warnings, "; ")
}

// TestReadsEveryKindOfCapture: the same three frames in every format come out the same.
func TestReadsEveryKindOfCapture(t *testing.T) {
	three := func(scale uint32) []record {
		return []record{whole(7, 1*scale, frameOf(1)), whole(7, 2*scale, frameOf(2)), whole(9, 0, frameOf(3))}
	}
	le, be := binary.LittleEndian, binary.BigEndian
	for name, b := range map[string][]byte{
		"microseconds":             classic(le, micro, 1, three(1)...),
		"nanoseconds":              classic(le, nano, 1, three(1000)...),
		"big-endian":               classic(be, micro, 1, three(1)...),
		"big-endian nanoseconds":   classic(be, nano, 1, three(1000)...),
		"pcapng":                   pcapng(t, three(1000)),
		"frame check sequence bit": classic(le, micro, 1|0x04000000, three(1)...),
	} {
		t.Run(name, func(t *testing.T) {
			out, warnings := through(t, b)
			if warnings != "" || len(out) != 3 {
				t.Fatalf("%d frames, warnings %q", len(out), warnings)
			}
			for i, at := range []int64{7_000_001_000, 7_000_002_000, 9_000_000_000} {
				if out[i].at != at || !bytes.Equal(out[i].octets, frameOf(uint32(i+1))) {
					t.Errorf("frame %d: %v, want it at %d", i+1, out[i], at)
				}
			}
		})
	}
}

func pcapng(t *testing.T, records []record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		info := gopacket.CaptureInfo{Timestamp: timeOf(int64(r.sec)*1e9 + int64(r.sub)), CaptureLength: len(r.octets), Length: int(r.length)}
		if err := w.WritePacket(info, r.octets); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestOddCaptures are replayed, with a warning where something is missing.
func TestOddCaptures(t *testing.T) {
	le := binary.LittleEndian
	two := classic(le, micro, 1, whole(1, 0, frameOf(1)), whole(2, 0, frameOf(2)))
	cut := frameOf(2)[:60]
	for _, c := range []struct {
		name    string
		capture []byte
		frames  int
		warning string
		times   []int64 // s
	}{
		{"empty", classic(le, micro, 1), 0, "no frames", nil},
		{"last frame cut in its octets", two[:len(two)-1], 1, "cut short", nil},
		{"last frame cut in its header", two[:len(two)-100-1], 1, "cut short", nil},
		{"last frame cut behind its header", two[:len(two)-100], 1, "cut short", nil},
		{"pcapng cut", func() []byte {
			b := pcapng(t, []record{whole(1, 0, frameOf(1)), whole(2, 0, frameOf(2))})
			return b[:len(b)-1]
		}(), 1,
			"cut short", nil},
		{"only a cut frame", classic(le, micro, 1, record{1, 0, 100, 100, cut}), 0, "cut short", nil},
		{"times 0", classic(le, micro, 1, whole(0, 0, frameOf(1)), whole(0, 0, frameOf(2))), 2, "same timestamp", []int64{0, 0}},
		{"times backwards", classic(le, micro, 1, whole(5, 0, frameOf(1)), whole(2, 0, frameOf(2)), whole(6, 0, frameOf(3))), 3,
			"1 frames have earlier timestamps than frames before them; it was sorted", []int64{2, 5, 6}},
		{"clock set back", classic(le, micro, 1, whole(50, 0, frameOf(1)), whole(20, 0, frameOf(2)), whole(60, 0, frameOf(3))), 3, "the clock was set back, by 30s", []int64{50, 50, 90}},
		{"a frame without a time", classic(le, micro, 1, whole(5, 0, frameOf(1)), whole(0, 0, frameOf(2)), whole(6, 0, frameOf(3))), 3, "1 frames have no timestamp", []int64{5, 5, 6}},
		{"two clocks", classic(le, micro, 1, whole(100, 0, frameOf(1)), whole(137, 0, frameOf(2)), whole(101, 0, frameOf(3)), whole(138, 0, frameOf(4)), whole(102, 0, frameOf(5)), whole(139, 0, frameOf(6)),
			whole(103, 0, frameOf(7)), whole(140, 0, frameOf(8)), whole(104, 0, frameOf(9))), 9, "two clocks, 36s apart", []int64{100, 101, 101, 102, 102, 103, 103, 104, 104}},
		{"nanoseconds named microseconds", classic(le, micro, 1, whole(1, 500_000_000, frameOf(1)), whole(2, 0, frameOf(2))), 2, "its times are in nanoseconds", nil},
		{"a ring buffer's files, the latest first", classic(le, micro, 1, whole(50, 0, frameOf(1)), whole(70, 0, frameOf(2)), whole(20, 0, frameOf(3)), whole(49, 0, frameOf(4))), 4,
			"it was sorted", []int64{20, 49, 50, 70}},
		{"two files of the same time", append(classic(le, micro, 1, whole(50, 0, frameOf(1)), whole(70, 0, frameOf(2))), classic(le, micro, 1, whole(20, 0, frameOf(3)), whole(60, 0, frameOf(4)))...), 4,
			"it was sorted", []int64{20, 50, 60, 70}},
		{"the largest gap", classic(le, micro, 1, whole(0, 0, frameOf(1)), whole(1<<32-1, 0, frameOf(2))), 2, "jumps ahead", []int64{0, 1<<32 - 1}},
		{"less on the wire than captured", classic(le, micro, 1, record{1, 0, 100, 90, frameOf(1)}), 1, "", nil},
		{"a frame of 4 GB", classic(le, micro, 1, whole(1, 0, frameOf(1)), record{2, 0, 1<<32 - 1, 1<<32 - 1, frameOf(2)}), 1, "damaged: frame 2", nil},
		{"pcapng of the year 2300", year2300(t), 1, "frame 2, near byte", nil},
		{"two files", append(classic(le, micro, 1, whole(1, 0, frameOf(1))), classic(binary.BigEndian, micro, 1, whole(2, 0, frameOf(2)))...), 2, "1 more files", []int64{1, 2}},
		{"a pcapng file behind", append(classic(le, micro, 1, whole(1, 0, frameOf(1))), pcapng(t, []record{whole(2, 0, frameOf(2))})...), 2, "1 more files", []int64{1, 2}},
		{"pcapng without timestamps", simplePackets(frameOf(1), frameOf(2)), 2, "same timestamp", []int64{0, 0}},
		{"zero octets", classic(le, micro, 1, whole(1, 0, nil), whole(2, 0, frameOf(1))), 2, "", []int64{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, warnings := through(t, c.capture)
			if len(out) != c.frames || !strings.Contains(warnings, c.warning) || c.warning == "" && warnings != "" {
				t.Fatalf("%d frames, want %d; warnings %q, want %q", len(out), c.frames, warnings, c.warning)
			}
			for i, s := range c.times {
				if late := out[i].at - s*1e9; late < 0 || late > 100 {
					t.Errorf("frame %d left at %d, want %d s", i+1, out[i].at, s)
				}
			}
		})
	}
}

// TestThousandsAtOneInstant: more frames than all queues and buffers hold, none of which gets lost uncounted.
func TestThousandsAtOneInstant(t *testing.T) {
	const many, queue = 5000, 1024
	var records []record
	for n := range uint32(many) {
		records = append(records, whole(1, 0, frameOf(n)))
	}
	r := replayed(t, &scenario{config: wire, path: save(t, classic(binary.LittleEndian, micro, 1, records...)), fabric: prefixes("10.1.0.0/16")})
	if len(r.forwarded) != queue+1 || r.lost != many-queue-1 {
		t.Errorf("%d frames forwarded and %d lost, want the first, and a queue of %d", len(r.forwarded), r.lost, queue)
	}
}

// simplePackets is a pcapng file of simple packet blocks, which have no timestamps.
func simplePackets(octets ...[]byte) []byte {
	le := binary.LittleEndian
	block := func(b []byte, kind uint32, body []byte) []byte {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		size := uint32(len(body) + 12)
		return le.AppendUint32(append(le.AppendUint32(le.AppendUint32(b, kind), size), body...), size)
	}
	b := block(nil, 0x0a0d0d0a, []byte{0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255})
	b = block(b, 1, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	for _, o := range octets {
		b = block(b, 3, append(le.AppendUint32(nil, uint32(len(o))), o...))
	}
	return b
}

// TestShortSnapshotLength: what the capture cut off is still on the wire. A cut frame is marked and answered all the same.
func TestShortSnapshotLength(t *testing.T) {
	f := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100, ECN: 2, Size: 1000}.Frame()
	var records []record
	for n := range uint32(8) {
		records = append(records, record{1, n, 96, 1000, f[:96]})
	}
	config := gatewayAddresses + `ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 8Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 8Mbps}
profiles: {default: {mode: thresholds, k_base: 4KB}}
endpoints: [{prefix: 10.1.0.0/16, accepts: [long-haul-cnp]}]
notifications: {long_haul_cnp: {enabled: true}}
qp_map: [{source_ip: 10.1.0.1, destination_ip: 10.9.0.9, source_qp: 50, destination_qp: 100}]
`
	r := replayed(t, &scenario{config: config, path: save(t, classic(binary.LittleEndian, micro, 1, records...)), fabric: prefixes("10.1.0.0/16")})
	for i, g := range r.forwarded {
		if g.length != 1000 || len(g.octets) != 96 {
			t.Errorf("frame %d has %d of %d octets, want 96 of 1000", i+1, len(g.octets), g.length)
		}
		if i > 0 && g.at-r.forwarded[i-1].at != 1_024_000 {
			t.Errorf("frame %d left %d ns after the one before it, want what 1000 octets take", i+1, g.at-r.forwarded[i-1].at)
		}
	}
	if marked := total(r.report, "queue_ecn_marked_packets_total"); marked != 5 || len(r.emitted) != 2 {
		t.Errorf("%d marks and %d notifications, want 5 and 2", marked, len(r.emitted))
	}
}

// TestRefusedCaptures: an error that says what is wrong, and little memory whatever the file says of lengths.
func TestRefusedCaptures(t *testing.T) {
	le := binary.LittleEndian
	for _, c := range []struct {
		name    string
		capture []byte
		says    string
	}{
		{"nothing", nil, "it has 0 bytes; expected a pcap or pcapng file"},
		{"no capture", []byte("gateway: {}"), "not a pcap or pcapng file"},
		{"a header cut short", classic(le, micro, 1)[:20], "ends within its header"},
		{"pcapng cut in its header", pcapng(t, nil)[:20], "ends within its header"},
		{"another link type", classic(le, micro, 105), "link type 105 (IEEE802_11), expected Ethernet"},
		{"a link type of sixteen bits", classic(le, micro, 289), "link type 289, expected Ethernet"},
		{"a link type that ends in 1", classic(le, micro, 257), "expected Ethernet"},
		{"a frame of 300 KB", classic(le, micro, 1, record{2, 0, 300_000, 300_000, make([]byte, 300_000)}), "frame 1"},
		{"pcapng with a frame of 300 KB", pcapng(t, []record{whole(1, 0, make([]byte, 300_000))}), "frame 1: it has 300000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := save(t, c.capture)
			capture, err := replay.Open(path, nil)
			if err == nil {
				capture.Close()
				t.Fatal("it was accepted")
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("the error is %q, want the file's name and %q", err, c.says)
			}
		})
	}
}

// year2300 is a pcapng file whose second frame is of that year.
func year2300(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for _, year := range []int{2026, 2300} {
		info := gopacket.CaptureInfo{Timestamp: time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC), CaptureLength: 100, Length: 100}
		if err := w.WritePacket(info, frameOf(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLengthOnTheWireIsALie: a frame that claims 4 GiB on the wire fits no queue.
func TestLengthOnTheWireIsALie(t *testing.T) {
	b := classic(binary.LittleEndian, micro, 1, record{1, 0, 100, 1<<32 - 1, frameOf(1)}, whole(2, 0, frameOf(2)))
	r := replayed(t, &scenario{config: wire, path: save(t, b), fabric: prefixes("10.1.0.0/16")})
	if len(r.forwarded) != 1 || r.lost != 1 {
		t.Errorf("%d frames forwarded and %d lost, want 1 and 1", len(r.forwarded), r.lost)
	}
}
