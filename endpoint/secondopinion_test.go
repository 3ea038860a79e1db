//go:build secondopinion

package endpoint

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// tshark reads frames and returns the fields of each, separated by commas; "_ws.malformed" comes last and has to be empty.
func tshark(t *testing.T, frames [][]byte, fields ...string) []string {
	t.Helper()
	args := []string{"-T", "fields", "-E", "separator=,", "-E", "occurrence=a", "-E", "aggregator=+"}
	for _, f := range append(fields, "_ws.malformed") {
		args = append(args, "-e", f)
	}
	lines := strings.Split(strings.TrimSuffix(opinion.Tshark(t, frames, args...), "\n"), "\n")
	if len(lines) != len(frames) {
		t.Fatalf("tshark finds %d frames, want %d", len(lines), len(frames))
	}
	return lines
}

// capture runs a network whose hosts send whole frames, and returns these.
func capture(t *testing.T, c Config, run func(*network, uint32)) (frames [][]byte) {
	t.Helper()
	c.Payload, c.CNPInterval = PayloadReal, 1
	n := newNetwork(t, c, 10_000)
	n.hosts[1].nextNumber = 0x22
	a, _ := n.connect(0xfffffe, 1000)
	n.seen = func(_ int64, _ int, frame []byte, _ int) { frames = append(frames, append([]byte(nil), frame...)) }
	run(n, a)
	n.run(never)
	return frames
}

// TestWireshark: tshark reads from an endpoint's packets what the sender put into them.
func TestWireshark(t *testing.T) {
	lost := false
	frames := capture(t, Config{MTU: 1000}, func(n *network, a uint32) {
		n.change = func(_ int64, _ int, frame []byte, length int) bool {
			p := parsed(frame, length)
			if p.Opcode == packet.RCSendFirst && !lost {
				lost = true
				return false
			}
			if p.Opcode == packet.RCWriteLast {
				packet.MarkCE(frame, p.Outer, p.ECN)
			}
			return true
		}
		n.start(0, Stream{QP: a, Op: Write, Bytes: 2345})
		n.start(0, Stream{QP: a, Op: Send, Bytes: 1234, At: 100_000})
		n.start(0, Stream{QP: a, Op: Read, Bytes: 1500, At: 200_000})
	})
	got := tshark(t, frames, "ip.src", "ip.dsfield.dscp", "ip.dsfield.ecn", "udp.srcport", "infiniband.bth.opcode", "infiniband.bth.p_key",
		"infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.a", "infiniband.bth.padcnt", "infiniband.reth.va", "infiniband.reth.dmalen",
		"infiniband.aeth.syndrome", "infiniband.aeth.msn")
	const (
		a    = "10.0.0.1,26,2,49730,"
		b    = "10.0.0.2,26,2,49730,"
		ackB = "10.0.0.2,26,0,49730,"
	)
	want := []string{
		// opcode, partition key, DestQP, PSN, AckReq, pad, virtual address, DMA length, syndrome, MSN
		a + "6,65535,0x000022,16777214,0,0,0x00007f0000000000,2345,,,",
		a + "7,65535,0x000022,16777215,0,0,,,,,",
		a + "8,65535,0x000022,0,1,3,,,,,",
		"10.0.0.2,48,0,0,129,65535,0x000011,0,0,0,,,,,", // CNP
		ackB + "17,65535,0x000011,0,0,0,,,31,1,",
		a + "0,65535,0x000022,1,0,0,,,,,", // is lost
		a + "2,65535,0x000022,2,1,2,,,,,",
		ackB + "17,65535,0x000011,1,0,0,,,96,1,",
		a + "0,65535,0x000022,1,0,0,,,,,",
		a + "2,65535,0x000022,2,1,2,,,,,",
		ackB + "17,65535,0x000011,2,0,0,,,31,2,",
		a + "12,65535,0x000022,3,1,0,0x00007f0000000000,1500,,,",
		b + "13,65535,0x000011,3,0,0,,,31,3,",
		b + "15,65535,0x000011,4,0,0,,,31,3,",
	}
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("frame %d: tshark reads %q, want %q", i+1, g, w)
		}
	}
}

// TestWiresharkTrace: tshark reads the IOAM trace of a packet with data, and what nodes add to it.
func TestWiresharkTrace(t *testing.T) {
	c := Config{Addr: ipv6, Reaction: ReactionConfig{Algorithm: HPCC, HPCC: HPCCConfig{Hops: 3}}}
	frames := capture(t, c, func(n *network, a uint32) { n.start(0, Stream{QP: a, Bytes: 100}) })
	frame := frames[0]
	for i := range 2 {
		hop := Hop{Node: uint32(77 + i), Time: 3*second + 42, Queue: 1234, Sent: 1<<40 - 1, Rate: 400 * gigabit}
		if !PutHop(frame, parsed(frame, len(frame)), &hop) {
			t.Fatal("no place for a hop")
		}
	}
	got := tshark(t, [][]byte{frame}, "ipv6.opt.ioam.trace.ns", "ipv6.opt.ioam.trace.nodelen", "ipv6.opt.ioam.trace.remlen", "ipv6.opt.ioam.trace.node.id",
		"ipv6.opt.ioam.trace.node.tss", "ipv6.opt.ioam.trace.node.tsf", "ipv6.opt.ioam.trace.node.qdepth", "ipv6.opt.ioam.trace.node.nsdata_wide",
		"ipv6.opt.ioam.trace.invalid_type", "infiniband.reth.dmalen")
	const want = "0,6,6,0x00004e+0x00004d,0x00000003+0x00000003,0x0000002a+0x0000002a,0x000004d2+0x000004d2,0x009c40ffffffffff+0x009c40ffffffffff,,100,"
	if got[0] != want {
		t.Errorf("tshark reads %q, want %q", got[0], want)
	}
}

// TestScapy: scapy agrees with the ICRC and the IPv4 header checksum of every packet, with losses, CNPs, READs, and an IOAM trace.
func TestScapy(t *testing.T) {
	var all [][]byte // one run of each program reads them: most of the time is for their start
	for _, c := range []Config{
		{}, {MTU: 4096}, {MTU: 1000, SelectiveRepeat: true}, {Addr: ipv6},
		{Addr: ipv6, Reaction: ReactionConfig{HPCC: HPCCConfig{Hops: 4}}},
	} {
		frames := capture(t, c, func(n *network, a uint32) {
			sent := 0
			n.change = func(_ int64, _ int, frame []byte, length int) bool {
				sent++
				if sent%10 == 0 {
					markCE(frame, length)
				}
				return sent%7 > 0
			}
			for _, op := range []Op{Write, Send, Read} {
				n.start(0, Stream{QP: a, Op: op, Bytes: 5555, Messages: 4})
			}
		})
		if len(frames) < 50 {
			t.Errorf("only %d frames", len(frames))
		}
		all = append(all, frames...)
	}
	for _, line := range tshark(t, all) {
		if line != "" {
			t.Errorf("tshark finds a malformed frame: %s", line)
		}
	}
	checkScapy(t, all)
}

// checkScapy asks internal/packet's script about ICRCs and checksums.
func checkScapy(t *testing.T, frames [][]byte) {
	t.Helper()
	answers := json.NewDecoder(strings.NewReader(opinion.Scapy(t, opinion.Hex(frames...), "../internal/packet/testdata/secondopinion.py")))
	for i, f := range frames {
		var o struct {
			ICRC     string
			Without  string `json:"icrc_without"`
			Checksum *bool
		}
		if err := answers.Decode(&o); err != nil {
			t.Fatalf("secondopinion.py on frame %d: %v", i+1, err)
		}
		p := parsed(f, len(f))
		want := o.ICRC
		if p.Family == 6 {
			want = o.Without
		} else if o.Checksum == nil || !*o.Checksum {
			t.Errorf("frame %d: wrong IPv4 header checksum: %x", i+1, f)
		}
		if got := hex.EncodeToString(f[p.ICRC:]); got != want {
			t.Errorf("frame %d: ICRC %s, scapy has %s: %x", i+1, got, want, f)
		}
	}
}
