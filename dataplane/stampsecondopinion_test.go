//go:build secondopinion

package dataplane_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// scapyStamp runs testdata/stamp.py.
func scapyStamp(t *testing.T, mode string, frames ...[]byte) string {
	t.Helper()
	return opinion.Scapy(t, opinion.Hex(frames...), "testdata/stamp.py", mode)
}

// read is what stamp.py reads in a packet.
type read struct {
	Same               bool
	Octets             int
	Src, Dst           string
	Sport, Dport, Hops int
	Seq, Ssid          int
	Ts                 float64
	Error              [4]int
	TsRx               float64 `json:"ts_rx"`
	SeqSender          int     `json:"seq_sender"`
	TsSender           float64 `json:"ts_sender"`
	TTLSender          int     `json:"ttl_sender"`
	ErrorSender        [3]int  `json:"error_sender"`
}

// TestSecondOpinionSTAMP: the gateway answers scapy's test packets, scapy reads its own test packets and replies as they are meant and would build
// them octet for octet, and tshark reads the same numbers.
func TestSecondOpinionSTAMP(t *testing.T) {
	const unix, sincePrime = 1_800_000_000, 2_208_988_800 // seconds; NTP's prime epoch is 1900
	var tests, replies [][]byte
	for _, line := range strings.Fields(scapyStamp(t, "build")) {
		asked, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		own, peer := east4, west4
		if asked[12] == 0x86 {
			own, peer = east6, west6
		}
		r := testkit.New(t, testkit.Setup{Policy: probing(own, peer, 100*ms), Rate: 10e9})
		r.Plane.SetWallClock(unix*1_000_000_000 - testkit.Epoch)
		r.Inject(t, wan, asked)
		r.Settle()
		replies = append(replies, r.Take(wan)[0].Octets)
		r.Inject(t, fabric, data(false, 0).Frame())
		r.Drain()
		r.Advance(ms)
		r.Settle()
		for _, s := range r.Take(wan) {
			if s.Built {
				tests = append(tests, s.Octets)
			}
		}
		r.Close(t)
	}
	if len(tests) != 2 || len(replies) != 2 {
		t.Fatalf("%d test packets and %d replies", len(tests), len(replies))
	}
	answers := json.NewDecoder(strings.NewReader(scapyStamp(t, "read", tests[0], replies[0], tests[1], replies[1])))
	for _, ends := range [][2]string{{"192.0.2.1", "192.0.2.2"}, {"2001:db8::1", "2001:db8::2"}} {
		var test, reply read
		if err := errors.Join(answers.Decode(&test), answers.Decode(&reply)); err != nil {
			t.Fatal(err)
		}
		if !test.Same || test.Octets != packet.STAMPLen || test.Src != ends[0] || test.Dst != ends[1] || test.Dport != 862 || test.Sport < 49152 ||
			test.Hops != 255 || test.Seq != 0 || test.Ssid != 0 || test.Error != [4]int{0, 0, 22, 1} || int(test.Ts) != unix+sincePrime {
			t.Errorf("the test packet is %+v", test)
		}
		if !reply.Same || reply.Octets != packet.STAMPLen || reply.Src != ends[0] || reply.Dst != ends[1] || reply.Sport != 862 || reply.Dport != 5000 ||
			reply.Seq != 9 || reply.SeqSender != 9 || reply.TTLSender != 77 || reply.ErrorSender != [3]int{1, 3, 5} || reply.Error != [4]int{0, 0, 22, 1} ||
			reply.TsSender != 3_000_000_000.5 || reply.Ts != reply.TsRx || int(reply.Ts)-int(test.Ts) > 1 || int(test.Ts)-int(reply.Ts) > 1 {
			t.Errorf("the reply is %+v", reply)
		}
	}
	tsharkReads(t, replies)
}

// tsharkReads: tshark has no STAMP, but TWAMP-Test, whose replies STAMP's are alike (RFC 8762 4.6).
func tsharkReads(t *testing.T, replies [][]byte) {
	t.Helper()
	out := opinion.Tshark(t, replies, "-d", "udp.port==862,twamp.test", "-o", "udp.check_checksum:TRUE",
		"-T", "fields", "-e", "twamp.test.seq_number", "-e", "twamp.test.sender_seq_number", "-e", "twamp.test.sender_ttl", "-e", "udp.checksum.status",
		"-e", "twamp.test.error_estimate")
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.HasPrefix(line, "9\t9\t77\t1\t") {
			t.Errorf("tshark reads %q", line)
		}
	}
}
