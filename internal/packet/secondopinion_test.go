//go:build secondopinion

package packet

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

type asked struct {
	ICRC        string
	ICRCWithout string `json:"icrc_without"`
	Checksum    *bool
}

// secondOpinions asks testdata/secondopinion.py about frames.
func secondOpinions(t *testing.T, frames [][]byte) []asked {
	t.Helper()
	opinions := make([]asked, len(frames))
	d := json.NewDecoder(strings.NewReader(opinion.Scapy(t, opinion.Hex(frames...), "testdata/secondopinion.py")))
	for i := range opinions {
		if err := d.Decode(&opinions[i]); err != nil {
			t.Fatalf("secondopinion.py on frame %d: %v", i+1, err)
		}
	}
	return opinions
}

func icrcText(f []byte, p *Parsed, withExtensionHeaders bool) string {
	b := binary.LittleEndian.AppendUint32(nil, ICRC(f, int(p.L3), int(p.BTH), int(p.ICRC), withExtensionHeaders))
	return hex.EncodeToString(b)
}

// TestSecondOpinion checks ICRCs, both ways of W4, and the checksums of IPv4 and ICMPv6 against the second opinion, in one run.
func TestSecondOpinion(t *testing.T) {
	frames := slices.Concat(capturedFrames(t), stackedFrames(), builtFrames(t), icmpv6Frames())
	kinds := map[Kind]int{}
	for i, o := range secondOpinions(t, frames) {
		var p Parsed
		Parse(frames[i], uint32(len(frames[i])), &p)
		kinds[p.Kind]++
		if p.Kind == RoCEv2 {
			if ours := icrcText(frames[i], &p, true); ours != o.ICRC {
				t.Errorf("frame %d: ICRC %s, second opinion %s: %x", i+1, ours, o.ICRC, frames[i])
			}
			if ours := icrcText(frames[i], &p, false); p.Family == 6 && ours != o.ICRCWithout {
				t.Errorf("frame %d without extension headers: ICRC %s, second opinion %s: %x", i+1, ours, o.ICRCWithout, frames[i])
			}
		}
		if (p.Family == 4 || p.Kind != RoCEv2) && (o.Checksum == nil || !*o.Checksum) {
			t.Errorf("frame %d: the second opinion finds the checksum wrong: %x", i+1, frames[i])
		}
	}
	if other := len(icmpv6Frames()); kinds[RoCEv2] != len(frames)-other {
		t.Errorf("%v, of %d frames all but %d are RoCEv2", kinds, len(frames), other)
	}
}

// capturedFrames are real ones, as they are and marked.
func capturedFrames(t *testing.T) (frames [][]byte) {
	for _, path := range pcap.Real(t) {
		n := 0
		for _, f := range pcap.Octets(pcap.Read(t, path)) {
			if n == 30 {
				break
			}
			var p Parsed
			if Parse(f, uint32(len(f)), &p); p.Kind != RoCEv2 {
				continue
			}
			frames = append(frames, f)
			n++
			if p.ECN == ECT0 || p.ECN == ECT1 { // and marked
				marked := bytes.Clone(f)
				markCE(marked, &p)
				frames = append(frames, marked)
			}
		}
	}
	return frames
}

// stackedFrames are of all makes: tags, IPv4 options, IPv6 extension headers, all opcodes.
func stackedFrames() (frames [][]byte) {
	example := rapid.Custom(drawRoCEv2)
	for i := range 150 {
		s := example.Example(i)
		if s.family == 4 { // scapy wants well-formed options and the ICRC at the end of the IP packet
			s.options = bytes.Repeat([]byte{1}, len(s.options))
			s.udpShorter = 0
		}
		frame, _ := s.build()
		frames = append(frames, frame)
	}
	return frames
}

// builtFrames are packets that the Put methods made.
func builtFrames(t *testing.T) [][]byte {
	ethernet := []byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02")
	v4 := append(bytes.Clone(ethernet), 0x08, 0x00)
	v4 = append(v4, make([]byte, IPv4Len+UDPLen+BTHLen+16+ICRCLen)...)
	PutIPv4(v4[14:], 60, 48<<2, 64, ProtoUDP, 0xc0000201, 0xc6336402)
	(&UDPHeader{SrcPort: 0xc123, DstPort: RoCEv2Port, Length: 40}).Put(v4[34:])
	(&BTH{Opcode: CNP, PKey: DefaultPKey, Flags: BECN, DestQP: 0x123456}).Put(v4[42:])
	PutICRC(v4, 14, 42, 70, true)

	v6 := append(bytes.Clone(ethernet), 0x86, 0xdd)
	v6 = append(v6, make([]byte, IPv6Len+UDPLen+BTHLen+12+ICRCLen)...)
	from, to := addr("2001:db8::1"), addr("fd00::2")
	PutIPv6(v6[14:], 36, 48<<2, ProtoUDP, 64, &from, &to)
	(&UDPHeader{SrcPort: 0xc123, DstPort: RoCEv2Port, Length: 36}).Put(v6[54:])
	(&BTH{Opcode: CNP, PKey: DefaultPKey, Flags: BECN | ExtensionBit, DestQP: 0x123456}).Put(v6[62:])
	PutICRC(v6, 14, 62, 86, true)
	for i, f := range [][]byte{v4, v6} {
		var p Parsed
		if Parse(f, uint32(len(f)), &p); !VerifyICRC(f, &p) {
			t.Errorf("frame %d: PutICRC wrote another ICRC", i+1)
		}
	}
	return [][]byte{v4, v6}
}

// icmpv6Frames are messages of each length.
func icmpv6Frames() (frames [][]byte) {
	from, to := addr("2001:db8::1"), addr("fd00:18::2")
	for n := ICMPv6Len; n < 40; n++ {
		f := append([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x86\xdd"), make([]byte, IPv6Len+n)...)
		PutIPv6(f[14:], uint16(n), 0, ProtoICMPv6, 64, &from, &to)
		msg := f[14+IPv6Len:]
		msg[0] = 200
		for i := ICMPv6Len; i < n; i++ {
			msg[i] = byte(i * 37)
		}
		be.PutUint16(msg[2:], ICMPv6Checksum(from, to, msg))
		frames = append(frames, f)
	}
	return frames
}

// TestSecondOpinionTunnels: the frames of TestScapyTunnels are what scapy builds.
func TestSecondOpinionTunnels(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "tunnels.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if got := opinion.Scapy(t, "", "testdata/tunnels.py"); got != string(want) {
		t.Error("testdata/tunnels.py > testdata/tunnels.jsonl changes the file")
	}
}
