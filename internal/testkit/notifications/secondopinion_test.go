//go:build secondopinion

package notifications

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

type asked struct {
	IPChecksum        string `json:"ip.checksum"`
	UDPChecksum       string `json:"udp.checksum"`
	ICMPv6Checksum    string `json:"icmpv6.checksum"`
	ExtensionChecksum string `json:"extension.checksum"`
	ICRC              string
	IP                []any // whole, DSCP and ECN, TTL
	UDP               []int
	BTH               []int
	Options, Objects  [][]int
	Pause             *int
	PFC               [][]int
}

// opinions asks testdata/second_opinion.py.
func opinions(t *testing.T) []asked {
	t.Helper()
	var in strings.Builder
	for i := range All {
		icrc := All[i].ICRC
		if icrc == "" {
			icrc = "-"
		}
		fmt.Fprintf(&in, "%s %s %x\n", All[i].Kind, icrc, All[i].Bytes())
	}
	all := make([]asked, len(All))
	d := json.NewDecoder(strings.NewReader(opinion.Scapy(t, in.String(), "testdata/second_opinion.py")))
	for i := range all {
		if err := d.Decode(&all[i]); err != nil {
			t.Fatalf("second_opinion.py on %s: %v", All[i].Name, err)
		}
	}
	return all
}

// numbers are the values of the fields of the given names, in the order of the wire.
func (g *Golden) numbers(names ...string) []int {
	var all []int
	for _, l := range g.Lines() {
		for _, n := range names {
			if l.Name == n {
				all = append(all, l.Number())
			}
		}
	}
	return all
}

// TestSecondOpinion: scapy and zlib come to the same checksums and ICRCs, and scapy reads the layout that the fields say.
func TestSecondOpinion(t *testing.T) {
	checked := 0
	for i, o := range opinions(t) {
		g := &All[i]
		equal := func(what string, got, want any) {
			t.Helper()
			checked++
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s: scapy says %v, the fields %v", g.Name, what, got, want)
			}
		}
		for _, l := range g.Lines() {
			want := map[string]string{"ip.checksum": o.IPChecksum, "icmpv6.checksum": o.ICMPv6Checksum,
				"extension.checksum": o.ExtensionChecksum, "icrc": o.ICRC}
			want["udp.checksum"] = o.UDPChecksum
			if o.UDPChecksum == "" {
				want["udp.checksum"] = "0000"
			}
			if octets, is := want[l.Name]; is {
				equal(l.Name, octets, hex.EncodeToString(l.Octets))
			}
		}
		if o.UDP != nil {
			equal("UDP", o.UDP, g.numbers("udp.source_port", "udp.destination_port", "udp.length"))
		}
		if o.IP != nil {
			equal("IP", o.IP, []any{true, g.numbers("ip.dscp")[0]<<2 | g.numbers("ip.ecn")[0], g.numbers("ip.ttl", "ip.hop_limit")[0]})
		}
		if o.BTH != nil {
			flags, destQP := g.numbers("bth.flags")[0], g.numbers("bth.dest_qp")[0]
			ones := g.numbers("bth.se_m_pad_tver")[0]
			reserved := g.numbers("bth.a_reserved")[0]
			equal("BTH", o.BTH, []int{0x81, ones >> 7, ones >> 6 & 1, ones >> 4 & 3, ones & 15, 0xffff, flags >> 7, flags >> 6 & 1,
				flags & 0x3f, destQP, reserved >> 7, reserved & 0x7f, 0})
		}
		if o.Options != nil {
			equal("options", o.Options, g.options())
		}
		if o.Objects != nil {
			numbers := g.numbers("object.length", "object.class", "object.c_type")
			var want [][]int
			for ; len(numbers) > 0; numbers = numbers[3:] {
				want = append(want, numbers[:3])
			}
			equal("objects", o.Objects, want)
		}
		if o.Pause != nil {
			equal("PAUSE", *o.Pause, g.numbers("pause.time_quanta")[0])
		}
		for class, c := range o.PFC {
			equal("PFC class", c, []int{g.numbers("pfc.enabled")[0] >> class & 1, g.numbers(fmt.Sprintf("pfc.time%d_quanta", class))[0]})
		}
	}
	if checked < 100 {
		t.Errorf("scapy had an opinion on %d things only", checked)
	}
}

// options are type and length of every option in the Destination Options header; of Pad1 the type.
func (g *Golden) options() [][]int {
	var all [][]int
	for _, l := range g.Lines() {
		switch l.Name {
		case "fast_cnp.option_type":
			all = append(all, []int{l.Number()})
		case "fast_cnp.option_length":
			all[len(all)-1] = append(all[len(all)-1], l.Number())
		case "dstopts.padding", "dstopts.option":
			for b := l.Octets; len(b) > 0; {
				if b[0] == 0 {
					all, b = append(all, []int{0, 0}), b[1:]
					continue
				}
				all, b = append(all, []int{int(b[0]), int(b[1])}), b[2+int(b[1]):]
			}
		}
	}
	return all
}

// TestTshark: tshark finds nothing malformed in the outer layers, every checksum it verifies right, and the fields it knows as they are.
func TestTshark(t *testing.T) {
	tshark := func(args ...string) string {
		t.Helper()
		args = append([]string{"-n", "-r", folder + "/golden.pcap", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"}, args...)
		out, err := exec.Command("tshark", args...).Output()
		if err != nil {
			t.Fatalf("tshark: %v", err)
		}
		return string(out)
	}
	if out := tshark("-Y", "_ws.malformed"); out != "" {
		t.Errorf("malformed to tshark:\n%s", out)
	}
	if out := tshark("-Y", "ip.checksum.status == 0 || udp.checksum.status == 0 || icmpv6.checksum.status == 0"); out != "" {
		t.Errorf("wrong checksums to tshark:\n%s", out)
	}
	out := strings.Split(strings.TrimRight(tshark("-T", "fields", "-e", "frame.len", "-e", "eth.type", "-e", "udp.dstport", "-e",
		"infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", "icmpv6.type", "-e", "macc.opcode", "-E", "occurrence=l"), "\n"), "\n")
	if len(out) != len(All) {
		t.Fatalf("tshark reads %d frames of %d", len(out), len(All))
	}
	for i := range All {
		g := &All[i]
		if got, want := out[i], g.tsharkLine(); got != want {
			t.Errorf("%s: tshark reads %q, want %q", g.Name, got, want)
		}
	}
}

// tsharkLine is what tshark should print: length, EtherType, UDP destination port, BTH opcode and DestQP, ICMPv6 type, MAC control opcode.
func (g *Golden) tsharkLine() string {
	field := func(format string, names ...string) string {
		if n := g.numbers(names...); len(n) > 0 {
			return fmt.Sprintf(format, n[len(n)-1])
		}
		return ""
	}
	etherType := field("0x%04x", "ethernet.type")
	if vlan := g.numbers("vlan1.tpid"); len(vlan) > 0 {
		etherType = fmt.Sprintf("0x%04x", vlan[0]) // of the Ethernet header itself
	}
	return strings.Join([]string{fmt.Sprint(len(g.Bytes())), etherType, field("%d", "udp.destination_port"), field("%d", "bth.opcode"),
		field("0x%06x", "bth.dest_qp"), field("%d", "icmpv6.type"), field("0x%04x", "macc.opcode")}, "\t")
}
