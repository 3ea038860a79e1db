package main

import (
	"os"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	dir := refusing(t)
	golden, err := os.ReadFile("../../testdata/notifications/golden.pcap")
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "n.pcap", golden)
	put(t, dir, "cut.pcap", golden[:len(golden)-1])
	put(t, dir, "other.yaml", []byte(strings.Replace(goodConfig, "{enabled: true}", "{enabled: true, option_type: 0x9F}, long_haul_cnp: {icmpv6_type: 201}", 1)))
	before := len(names(t, dir))
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string // parts; "" for nothing at all
	}{
		{"decode n.pcap", 0, "): long-haul-cnp-icmpv6 from 2001:db8:a::fe to 2001:db8:a::1, accepted\n    Ethernet   destination ", ""},
		{"decode n.pcap", 0, "\n28 frames: 25 notifications accepted, 3 refused, 0 other frames\n", ""},
		{"decode --accepts ppfc n.pcap", 0, "): ppfc from 10.0.0.254 to 10.0.0.1, accepted\n", ""},
		{"decode -o json n.pcap", 0, `{"frame":1,"time":"1970-01-01T00:00:00.000000000Z","since_first_ns":0,"kind":"standard-cnp",`, ""},
		{"decode --output json n.pcap", 0, "\n" + `{"summary":{"frames":28,`, ""},
		{"decode in.pcap", 0, "364 frames: 0 notifications accepted, 0 refused, 364 other frames\n", ""},
		{"decode --config gw.yaml n.pcap", 0, "): fast-cnp from ", ""},
		{"decode --config other.yaml --accepts ppfc n.pcap", 0, "28 frames: 22 notifications accepted, 3 refused, 3 other frames\n", ""},
		{"decode cut.pcap", 0, "\n27 frames: ", "cnpgate: warning: capture cut.pcap: it is cut short"},
		{"decode", 1, "", "0 captures are named, expected one"},
		{"decode n.pcap in.pcap", 1, "", "2 captures are named, expected one"},
		{"decode -o xml n.pcap", 1, "", `--output is "xml", expected "text" or "json"`},
		{"decode --accepts fast-cnp n.pcap", 1, "", `--accepts is "fast-cnp", expected "long-haul-cnp" or "ppfc"`},
		{"decode --config none.yaml n.pcap", 1, "", "none.yaml"},
		{"decode none.pcap", 1, "", "capture: open none.pcap: no such file or directory"},
		{"decode .", 1, "", "is a directory"},
		{"decode gw.yaml", 1, "", "not a pcap or pcapng file"},
		{"decode sll.pcap", 1, "", "link type Linux SLL, expected Ethernet"},
		{"decode broken.pcap", 1, "", "capture broken.pcap: frame 2: "},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := cnpgate(t, dir, strings.Fields(c.args)...)
			if got.status != c.status || !tells(got.stdout, c.stdout) || !tells(got.stderr, c.stderr) {
				t.Errorf("exit status %d, want %d\nstdout: %.2000s\nwant    %s\nstderr: %s\nwant    %s", got.status, c.status, got.stdout, c.stdout,
					got.stderr, c.stderr)
			}
			if left := names(t, dir); len(left) != before {
				t.Errorf("files left behind: %q", left)
			}
		})
	}
}

// TestDecodeCodePoints: a configuration's option type is the one that makes a Fast CNP.
func TestDecodeCodePoints(t *testing.T) {
	dir := workspace(t)
	golden, err := os.ReadFile("../../testdata/notifications/golden.pcap")
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "n.pcap", golden)
	put(t, dir, "other.yaml", []byte(strings.Replace(goodConfig, "{enabled: true}", "{enabled: true, option_type: 0x9F}", 1)))
	for config, want := range map[string]int{"gw.yaml": 6, "other.yaml": 0} {
		got := cnpgate(t, dir, "decode", "--config", config, "n.pcap")
		if n := strings.Count(got.stdout, "): fast-cnp from "); n != want || got.status != 0 {
			t.Errorf("%s: %d Fast CNPs, want %d; exit status %d, %s", config, n, want, got.status, got.stderr)
		}
	}
}

// TestDecodeCannotBeWritten: standard output is full.
func TestDecodeCannotBeWritten(t *testing.T) {
	dir := workspace(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	c := command(dir, "decode", "in.pcap")
	c.Stdout = full
	if got := finished(t, c); got.status != 1 || !strings.Contains(got.stderr, "decode of in.pcap: write /dev/stdout: no space left on device") {
		t.Errorf("exit status %d, stderr %q", got.status, got.stderr)
	}
}
