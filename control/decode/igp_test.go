package decode_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// igpFrames are frames that FRR sent: LSPs and Link State Updates with the P-flag, others without it, packets that carry no prefixes; then one of each
// protocol with an error.
func igpFrames(t testing.TB) [][]byte {
	t.Helper()
	from := func(protocol string, frames ...int) (all [][]byte) {
		captured := pcap.Octets(pcap.Read(t, filepath.Join("../../internal/igp", protocol, "testdata/frr.pcap")))
		for _, i := range frames {
			all = append(all, captured[i])
		}
		return all
	}
	isis, v2, v3 := from("isis", 0, 4, 27), from("ospfv2", 1, 14, 15), from("ospfv3", 3, 7)
	all := append(append(append([][]byte{}, isis...), v2...), v3...)
	tagged := append(append(append([]byte{}, isis[2][:12]...), 0x81, 0, 0, 5), isis[2][12:]...)
	cut := bytes.Clone(isis[0])
	cut[17+9]-- // the LSP's length
	wrong := bytes.Clone(v2[1])
	wrong[14+20+24+3] = 2 // the number of LSAs
	version := bytes.Clone(v3[0])
	version[14+40] = 4
	noIGP := bytes.Clone(isis[0])
	noIGP[17] = 0x81 // the network layer protocol
	return append(all, tagged, cut, wrong, version, noIGP)
}

// TestIGPGolden: the whole output for packets of IGPs, letter by letter.
func TestIGPGolden(t *testing.T) {
	frames := igpFrames(t)
	for file, format := range map[string]decode.Format{"igp.txt": decode.Text, "igp.json": decode.JSON} {
		got, s := run(t, notifications.Pcap(frames), receiver("long-haul"), format)
		if s.Frames != len(frames) || s.IGP != len(frames) || s.Accepted+s.Refused+s.Other != 0 {
			t.Errorf("%s: %+v", file, s)
		}
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs (-update writes it anew):\n%s", path, got)
		}
	}
}

// TestIGPSays: text and JSON say of each prefix with the P-flag what an operator looks for.
func TestIGPSays(t *testing.T) {
	for format, wants := range map[decode.Format][]string{
		decode.Text: {
			"isis-l1-csnp from", "ospfv2-database-description from 10.77.0.2", "P-flag             true\n", "proxy              192.0.2.9\n",
			"proxy              2001:db8::9\n", "proxy              10.77.0.1\n", "attribute flags    0x21, N, P\n", "age                3600 s, flushed\n",
			"malformed: an OSPF packet has version 4", "malformed: the network layer protocol is 0x81", "\npackets of IS-IS and OSPF: 13\n",
		},
		decode.JSON: {
			`"kind":"isis-l2-lsp"`, `"kind":"ospfv3-link-state-update"`, `"p_flag":true,"source_router_ipv4":"192.0.2.9"`, `"proxy":"10.77.0.1"`,
			`"attribute_flags":"21"`, `"malformed":"LSA 2 of 2: 0 octets are left`, `"igp":13,"other":0`,
		},
	} {
		got, _ := run(t, notifications.Pcap(igpFrames(t)), receiver("long-haul"), format)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%q isn't in\n%s", want, got)
			}
		}
	}
}
