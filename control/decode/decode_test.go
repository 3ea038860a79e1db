package decode_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

var update = flag.Bool("update", false, "write testdata anew")

func receiver(extension string) *cnpdec.Receiver {
	r := &cnpdec.Receiver{Code: packet.DefaultCodePoints, Extension: packet.LongHaulCNP, ICRC: cnpdec.ICRCEither}
	if extension == "ppfc" {
		r.Extension = packet.PPFC
	}
	return r
}

// run decodes a capture of the octets given.
func run(t testing.TB, pcap []byte, r *cnpdec.Receiver, f decode.Format) (string, decode.Summary) {
	t.Helper()
	c, err := capturefile.NewReader("in.pcap", bytes.NewReader(pcap))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s, err := decode.Run(c, r, f, bufio.NewWriter(&out))
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), s
}

// spoiled is a golden frame with one octet changed.
func spoiled(name string, at int) []byte {
	b := notifications.Find(name).Bytes()
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 1
	return b
}

// capture has every golden notification, some that are damaged, and frames that are none.
func capture() []byte {
	var frames [][]byte
	for i := range notifications.All {
		frames = append(frames, notifications.All[i].Bytes())
	}
	frames = append(frames,
		spoiled("long-haul-cnp-v4", 24),         // IPv4 checksum
		spoiled("standard-cnp-v4", -1),          // ICRC
		spoiled("fast-cnp", -1),                 // ICRC behind an extension header
		spoiled("long-haul-cnp-icmpv6", -1),     // ICMPv6 checksum
		spoiled("proxy-notification-v4", -1),    // UDP checksum
		spoiled("pfc", 0),                       // destination
		make([]byte, 60),                        // no EtherType
		bytes.Repeat([]byte{0xff}, 14),          // nothing behind the header
		[]byte("\x01\x80\xc2\x00\x00\x01short"), // no whole header
	)
	return notifications.Pcap(frames)
}

// TestGolden: the whole output, letter by letter.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		file, extension string
		format          decode.Format
	}{
		{"long-haul-cnp.txt", "long-haul", decode.Text},
		{"ppfc.txt", "ppfc", decode.Text},
		{"long-haul-cnp.json", "long-haul", decode.JSON},
		{"ppfc.json", "ppfc", decode.JSON},
	} {
		got, s := run(t, capture(), receiver(c.extension), c.format)
		if s.Other != 3 || s.Frames != s.Accepted+s.Refused+s.Other || s.Frames != len(notifications.All)+9 {
			t.Errorf("%s: %+v", c.file, s)
		}
		path := filepath.Join("testdata", c.file)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got == string(want) {
			continue
		}
		g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range w {
			if i >= len(g) || g[i] != w[i] {
				t.Errorf("%s differs from line %d on (-update writes it anew)\ngot  %s\nwant %s", path, i+1, append(g, "")[min(i, len(g))], w[i])
				break
			}
		}
	}
}

// notInJSON are fields of golden notifications that JSON shows in another form, or not: words of several values, lengths, paddings, next protocols.
var notInJSON = []string{
	"bth.a_reserved", "bth.flags", "bth.se_m_pad_tver", "dstopts.len", "dstopts.nxt", "dstopts.option", "dstopts.padding", "ethernet.padding",
	"ethernet.type", "extension.version_reserved", "fast_cnp.option_length", "icrc", "ioam.lengths", "ioam.node_data", "ip.flags_offset", "ip.id", "ip.len",
	"ip.proto", "ip.tos", "ip.version_ihl", "ipv6.nxt", "ipv6.plen", "ipv6.version_class_label", "long_haul_cnp.action", "long_haul_cnp.action_flags",
	"macc.opcode", "ppfc.flags_pt", "proxy.invoking_packet", "proxy.version_level", "vlan1.tci", "vlan1.tpid", "vlan2.tci", "vlan2.tpid",
}

// TestEachKind: each kind has layers of its own besides what its frame has in common with others, and each field has a source.
func TestEachKind(t *testing.T) {
	common := strings.Fields("ethernet vlan ip udp icmpv6 bth icrc")
	for i := range notifications.All {
		g := &notifications.All[i]
		frame, n, p := g.Bytes(), cnpdec.Notification{}, packet.Parsed{}
		packet.Parse(frame, uint32(len(frame)), &p)
		r := receiver(g.Extension)
		if reason := r.Decode(frame, &p, &n); reason != cnpdec.Accepted {
			t.Errorf("%s: %v", g.Name, reason)
		}
		own := 0
		for _, l := range decode.Describe(frame, &p, &n, &r.Code) {
			if !slices.Contains(common, l.Key) {
				own++
			}
			for j := range l.Fields {
				if l.Source(&l.Fields[j]) == "" {
					t.Errorf("%s: sources.go has no %s, nor %s.%s", g.Name, l.Key, l.Key, l.Fields[j].Key)
				}
			}
		}
		if own == 0 {
			t.Errorf("%s: Describe (fields.go) has no case for %s", g.Name, g.Kind)
		}
	}
}

// TestValues: for every golden notification, JSON has the values of its listed fields, under their names.
func TestValues(t *testing.T) {
	for i := range notifications.All {
		g := &notifications.All[i]
		out, s := run(t, notifications.Pcap([][]byte{g.Bytes()}), receiver(g.Extension), decode.JSON)
		d := json.NewDecoder(strings.NewReader(out))
		d.UseNumber()
		var got map[string]any
		if err := d.Decode(&got); err != nil {
			t.Fatalf("%s: %v in %s", g.Name, err, out)
		}
		if s.Accepted != 1 || got["kind"] != g.Kind || got["accepted"] != true {
			t.Errorf("%s: %+v, %v", g.Name, s, got)
		}
		var objects []string
		for _, l := range g.Lines() {
			switch l.Name {
			case "object.class", "object.c_type":
				objects = append(objects, fmt.Sprint(l.Number()))
			case "object.payload":
				objects = append(objects, fmt.Sprintf("%x", l.Octets))
			}
			if strings.HasPrefix(l.Name, "object.") || slices.Contains(notInJSON, l.Name) {
				continue
			}
			layer, field, _ := strings.Cut(l.Name, ".")
			members, _ := got[layer].(map[string]any)
			if fmt.Sprint(members[field]) != fmt.Sprint(l.Value) {
				t.Errorf("%s: %s is %v, want %v", g.Name, l.Name, members[field], l.Value)
			}
		}
		list, _ := got["objects"].([]any)
		var said []string
		for _, o := range list {
			m := o.(map[string]any)
			said = append(said, fmt.Sprint(m["class"]), fmt.Sprint(m["c_type"]), fmt.Sprint(m["payload"]))
		}
		if strings.Join(said, " ") != strings.Join(objects, " ") {
			t.Errorf("%s: objects %q, want %q", g.Name, said, objects)
		}
	}
}

// TestComments: decode prints what a capture says of a frame, also of one that is no notification, and none of its control characters.
func TestComments(t *testing.T) {
	n, data := notifications.Find("standard-cnp-v4").Bytes(), testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: 7, Size: 100}.Frame()
	var file bytes.Buffer
	w, err := pcapgo.NewNgWriter(&file, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range [][]byte{n, data, data} {
		comments := [][]string{{"queue wan/data\nis full\x1b[2J"}, {"sent: by wan", "\"twice\""}, nil}[i]
		if err := w.WritePacketWithOptions(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(f), Length: len(f)}, f, pcapgo.NgPacketOptions{Comments: comments}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	text, s := run(t, file.Bytes(), receiver(""), decode.Text)
	for _, want := range []string{"    comment    queue wan/data\n               is full?[2J\n", "    comment    sent: by wan\n    comment    \"twice\"\n",
		"RC RDMA WRITE Middle from 198.18.0.1 to 198.19.0.1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if s.Frames != 3 || s.Accepted != 1 || s.Other != 2 || strings.Contains(text, "frame 3") {
		t.Errorf("%+v\n%s", s, text)
	}
	text, _ = run(t, file.Bytes(), receiver(""), decode.JSON)
	for _, want := range []string{`,"comments":["queue wan/data\nis full\u001b[2J"]}`, `,"packet":"RC RDMA WRITE Middle","source":"198.18.0.1","destination":"198.19.0.1","comments":["sent: by wan","\"twice\""]}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestPartitionKey: a CNP in another partition than the default one is accepted, and text says so; 0x8000 names no partition.
func TestPartitionKey(t *testing.T) {
	for _, c := range []struct {
		key        uint16
		text, json string
	}{
		{0xffff, "P_Key              0xffff\n", `"p_key":65535`},
		{0x8001, "P_Key              0x8001 (not the default 0xffff: the flow's partition)\n", `"p_key":32769`},
		{0x8000, "refused (unknown-p-key)", `"reason":"unknown-p-key"`},
	} {
		frame := notifications.Find("long-haul-cnp-v4").Bytes()
		const l3, bth = 14, 42
		binary.BigEndian.PutUint16(frame[bth+2:], c.key)
		icrc := len(frame) - packet.ICRCLen
		binary.LittleEndian.PutUint32(frame[icrc:], packet.ICRC(frame, l3, bth, icrc, true))
		for format, want := range map[decode.Format]string{decode.Text: c.text, decode.JSON: c.json} {
			if out, _ := run(t, notifications.Pcap([][]byte{frame}), receiver("long-haul"), format); !strings.Contains(out, want) {
				t.Errorf("P_Key %#x: %q isn't in\n%s", c.key, want, out)
			}
		}
	}
}

// full can't be written to.
// TestImpostor: an IPv4-mapped address of an IPv6 packet isn't printed as the IPv4 host's.
func TestImpostor(t *testing.T) {
	frame := notifications.Find("long-haul-cnp-icmpv6").Bytes()
	copy(frame[14+8:], "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\xfe")
	for format, want := range map[decode.Format][]string{
		decode.Text: {"long-haul-cnp-icmpv6 from ::ffff:10.0.0.254 to 2001:db8:a::1, refused (wrong-address)", "source             ::ffff:10.0.0.254\n"},
		decode.JSON: {`"source":"::ffff:10.0.0.254","destination":"2001:db8:a::1","accepted":false`, `"ip":{"version":6,"source":"::ffff:10.0.0.254"`},
	} {
		out, _ := run(t, notifications.Pcap([][]byte{frame}), receiver("long-haul"), format)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%q isn't in\n%s", w, out)
			}
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteFails(t *testing.T) {
	for _, f := range []decode.Format{decode.Text, decode.JSON} {
		c, err := capturefile.NewReader("in.pcap", bytes.NewReader(capture()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode.Run(c, receiver("ppfc"), f, bufio.NewWriter(full{})); err == nil || err.Error() != "full" {
			t.Errorf("format %d: %v", f, err)
		}
	}
}

// TestEnds: what a capture has before it is cut short, or before a context ends it, is printed, with the summary.
func TestEnds(t *testing.T) {
	whole, before := capture(), len(notifications.All)+8 // the frames before the last one
	for _, c := range []struct {
		name    string
		capture io.Reader
		want    string
	}{
		{"cut short", bytes.NewReader(whole[:len(whole)-1]), fmt.Sprintf("frame %d has 26 of 27 bytes; frames read: %d", before+1, before)},
		{"interrupted", io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(context.Canceled)), "context canceled"},
	} {
		r, err := capturefile.NewReader("in.pcap", c.capture)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s, err := decode.Run(r, receiver("ppfc"), decode.Text, bufio.NewWriter(&out))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if want := fmt.Sprintf("\n%d frames: ", s.Frames); !strings.Contains(out.String(), want) || s.Accepted == 0 {
			t.Errorf("%s: no summary %q in\n%s", c.name, want, out.String())
		}
	}
}

// FuzzRun: whatever a frame is, it is counted once, and each line of JSON is an object.
func FuzzRun(f *testing.F) {
	for i := range notifications.All {
		f.Add(notifications.All[i].Bytes(), uint16(0), i%2 == 0)
		f.Add(notifications.All[i].Bytes(), uint16(6), i%2 == 0)
	}
	for i, frame := range igpFrames(f) {
		f.Add(frame, uint16(0), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, frame []byte, missing uint16, ppfc bool) {
		if len(frame) > 20000 {
			return
		}
		pcap := notifications.Pcap([][]byte{frame})
		length := len(frame) + int(missing)
		copy(pcap[24+12:], []byte{byte(length), byte(length >> 8), byte(length >> 16)})
		extension := "long-haul"
		if ppfc {
			extension = "ppfc"
		}
		text, _ := run(t, pcap, receiver(extension), decode.Text)
		for _, c := range text {
			if c < ' ' && c != '\n' || c == 0x7f {
				t.Fatalf("%q has a control character", text)
			}
		}
		out, s := run(t, pcap, receiver(extension), decode.JSON)
		if s.Frames != 1 || s.Accepted+s.Refused+s.IGP+s.Other != 1 {
			t.Fatalf("%+v", s)
		}
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if len(lines) != 2-s.Other {
			t.Fatalf("%+v in\n%s", s, out)
		}
		for _, l := range lines {
			var o map[string]any
			if err := json.Unmarshal([]byte(l), &o); err != nil {
				t.Fatalf("%v in %s", err, l)
			}
		}
	})
}
