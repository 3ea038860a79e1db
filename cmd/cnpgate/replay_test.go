package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func replayArgs(more ...string) []string {
	return append([]string{"replay", "--config", "gw.yaml", "--fabric", "fd00:18::2/128", "--fabric", "198.18.0.2/32"}, more...)
}

// TestReplay: the outputs are the same every time, without privileges and whatever files exist already.
func TestReplay(t *testing.T) {
	dir := workspace(t)
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var first []string
	for range 2 {
		c := command(dir, replayArgs("--report", "r.json", "--forwarded", "f.pcap", "--emitted", "e.pcap", "in.pcap")...)
		c.Env, c.SysProcAttr = []string{}, nobody()
		if got := finished(t, c); got != (ran{}) {
			t.Fatalf("exit status %d\nstdout: %s\nstderr: %s", got.status, got.stdout, got.stderr)
		}
		if left := names(t, dir); !slices.Equal(left, []string{"e.pcap", "f.pcap", "r.json"}) {
			t.Fatalf("the files are %q", left)
		}
		these := []string{get(t, dir, "e.pcap"), get(t, dir, "f.pcap"), get(t, dir, "r.json")}
		if first != nil && !slices.Equal(these, first) {
			t.Error("two replays differ")
		}
		first = these
	}
	const nanoseconds = "\x4d\x3c\xb2\xa1"
	if !strings.HasPrefix(first[0], nanoseconds) || !strings.HasPrefix(first[1], nanoseconds) {
		t.Error("the outputs aren't classic captures with nanoseconds")
	}
	if len(first[0]) == 24 || len(first[1]) != len(get(t, dir, "in.pcap")) {
		t.Errorf("%d octets of notifications and %d of frames, want some, and as many as came in", len(first[0]), len(first[1]))
	}
	got := cnpgate(t, dir, replayArgs("in.pcap")...)
	if got.status != 0 || got.stdout != first[2] {
		t.Errorf("exit status %d; the report on standard output isn't the one in the file:\n%s%s", got.status, got.stdout, got.stderr)
	}
	c := command(dir, replayArgs("-")...)
	c.Stdin = strings.NewReader(get(t, dir, "in.pcap"))
	if got := finished(t, c); got != (ran{stdout: first[2]}) {
		t.Errorf("standard input: exit status %d; the report isn't the file's:\n%s%s", got.status, got.stdout, got.stderr)
	}
	if got := cnpgate(t, dir, replayArgs("--forwarded", "/dev/null", "--emitted", "/dev/null", "--report", "/dev/stdout", "in.pcap")...); got.stdout != first[2] {
		t.Errorf("to devices: exit status %d\n%s", got.status, got.stderr)
	}
}

// TestReplayWarns, and goes on.
func TestReplayWarns(t *testing.T) {
	dir := workspace(t)
	capture := get(t, dir, "in.pcap")
	put(t, dir, "cut.pcap", []byte(capture[:len(capture)-1]))
	got := cnpgate(t, dir, replayArgs("cut.pcap")...)
	const warning = "cnpgate: warning: capture cut.pcap: it is cut short: the record of frame 364 has 69 of 70 bytes; frames read: 363\n"
	if got.status != 0 || got.stderr != warning {
		t.Errorf("exit status %d, stderr %q", got.status, got.stderr)
	}
	if !strings.Contains(got.stdout, `"received_packets_total": 363`) {
		t.Errorf("the report isn't about 363 frames:\n%s", got.stdout)
	}
}

// TestReplayRefuses: exit status 1, the error on standard error, nothing on standard output, no file that looks complete.
func TestReplayRefuses(t *testing.T) {
	const given = "replay --config gw.yaml --fabric fd00:18::2/128 "
	for _, c := range []struct{ args, says string }{
		{"replay", "0 captures are given"},
		{"replay in.pcap", "missing: --health, for what is wrong with the capture's RDMA, or --config and --fabric, for what the gateway would do"},
		{"replay --config gw.yaml in.pcap", "missing: --fabric; expected with a value"},
		{given, "0 captures are given, expected one"},
		{given + "in.pcap none.pcap", "capture: open none.pcap: no such file or directory"},
		{given + "--fast in.pcap", "unknown flag: --fast"},
		{given + "none.pcap", "capture: open none.pcap: no such file or directory"},
		{given + "texts", "not a pcap or pcapng file"},
		{given + "empty", "capture empty: there is no file in this directory"},
		{given + "gw.yaml", "not a pcap or pcapng file"},
		{given + "broken.pcap", "capture broken.pcap: it is damaged: frame 2"},
		{"replay --config none.yaml --fabric ::/0 in.pcap", "none.yaml"},
		{"replay --config sll.pcap --fabric ::/0 in.pcap", "sll.pcap"},
		{"replay --config gw.yaml --fabric fd00:18::2 in.pcap", "--fabric: fd00:18::2 is an address without a length; expected a prefix, such as fd00:18::2/128"},
		{"replay --config gw.yaml --fabric ::/129 in.pcap", `--fabric: "::/129" is not a prefix`},
		{"replay --config gw.yaml --fabric fe80::%eth0/64 in.pcap", `is not a prefix`},
		{"replay --config gw.yaml --fabric ::ffff:198.18.0.2/128 in.pcap", "is an IPv4 prefix in IPv6 form"},
		{"replay --config gw.yaml --fabric= in.pcap", `--fabric: "" is not a prefix`},
		{"replay --config gw.yaml --fabric 10.1.0.0/16 in.pcap", "--fabric 10.1.0.0/16: no frame of capture in.pcap comes from there; expected a prefix " +
			"with hosts of the data centre; the frames come from fd00:18::2/128 (frames: 301), fd00:18::1/128 (frames: 31), 198.18.0.2/32 (frames: 17), " +
			"198.18.0.1/32 (frames: 13), fe80::ff:fe18:1/128 (frames: 1), fe80::ff:fe18:2/128 (frames: 1)\n"},
		{given + "--fabric 198.18.0.3/32 --forwarded f.pcap in.pcap", "--fabric 198.18.0.3/32: no frame of capture in.pcap comes from there"},
		{given + "--forwarded no/f.pcap in.pcap", "--forwarded: open no/f.pcap"},
		{given + "--emitted . in.pcap", "--emitted: open .: is a directory"},
		{given + "--report no/r.json --forwarded f.pcap in.pcap", "--report: open no/r.json"},
		{given + "--forwarded in.pcap in.pcap", "IN.pcap and --forwarded are the same file, in.pcap"},
		{given + "--emitted hard.pcap in.pcap", "IN.pcap and --emitted are the same file, hard.pcap"},
		{given + "--emitted soft.pcap in.pcap", "IN.pcap and --emitted are the same file, soft.pcap"},
		{given + "--report gw.yaml in.pcap", "--config and --report are the same file, gw.yaml"},
		{given + "--forwarded x.pcap --emitted ./x.pcap in.pcap", "--forwarded and --emitted are the same file, ./x.pcap"},
		{given + "--forwarded x --emitted x.partial in.pcap", "are the same file, x.partial"},
		{given + "--forwarded f.pcap --emitted /dev/full in.pcap", "--emitted: write /dev/full: no space left on device"},
		{given + "--forwarded f.pcap --report /dev/full in.pcap", "--report: write /dev/full: no space left on device"},
	} {
		t.Run(c.args, func(t *testing.T) {
			dir := refusing(t)
			before := names(t, dir)
			got := within(t, dir, strings.Fields(c.args)...)
			if got.status != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "cnpgate: ") || !strings.Contains(got.stderr, c.says) {
				t.Errorf("exit status %d, want 1\nstdout: %s\nstderr: %s\nwant %q", got.status, got.stdout, got.stderr, c.says)
			}
			if strings.Contains(got.stderr, "panic") || strings.Contains(got.stderr, "goroutine") {
				t.Error("it panicked")
			}
			if after := names(t, dir); !slices.Equal(after, before) {
				t.Errorf("files are %q, want %q", after, before)
			}
			if get(t, dir, "gw.yaml") != goodConfig || get(t, dir, "old.pcap") != "old" {
				t.Error("a file that was there was changed")
			}
		})
	}
}

// refusing is a workspace with files that are not what a replay wants.
func refusing(t *testing.T) string {
	t.Helper()
	dir := workspace(t)
	capture := []byte(get(t, dir, "in.pcap"))
	sll := bytes.Clone(capture)
	sll[20] = 113
	put(t, dir, "sll.pcap", sll)
	first := 24 + 16 + int(capture[24+8]) + int(capture[24+9])<<8
	put(t, dir, "broken.pcap", append(bytes.Clone(capture[:first]), bytes.Repeat([]byte{0xff}, 100)...))
	put(t, dir, "old.pcap", []byte("old"))
	for _, name := range []string{"empty", "texts"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "texts/notes.txt", []byte("notes"))
	for name, link := range map[string]func(string, string) error{"hard.pcap": os.Link, "soft.pcap": os.Symlink} {
		if err := link(filepath.Join(dir, "in.pcap"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFailureKeepsWhatWasThere: an earlier result outlasts a replay that fails, and a link to it stays a link.
func TestFailureKeepsWhatWasThere(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "f.pcap", []byte("earlier"))
	if err := os.Symlink("f.pcap", filepath.Join(dir, "link.pcap")); err != nil {
		t.Fatal(err)
	}
	if got := cnpgate(t, dir, replayArgs("--forwarded", "link.pcap", "--emitted", "/dev/full", "in.pcap")...); got.status != 1 {
		t.Fatalf("exit status %d, want 1", got.status)
	}
	if got := get(t, dir, "f.pcap"); got != "earlier" {
		t.Errorf("the earlier result has become %d octets", len(got))
	}
	if got := cnpgate(t, dir, replayArgs("--forwarded", "link.pcap", "in.pcap")...); got.status != 0 {
		t.Fatalf("exit status %d: %s", got.status, got.stderr)
	}
	if target, err := os.Readlink(filepath.Join(dir, "link.pcap")); err != nil || target != "f.pcap" || len(get(t, dir, "f.pcap")) < 1000 {
		t.Errorf("the link leads to %q (%v), where %d octets are", target, err, len(get(t, dir, "f.pcap")))
	}
}

// TestReportCannotBeWritten: standard output is full.
func TestReportCannotBeWritten(t *testing.T) {
	dir := workspace(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	c := command(dir, replayArgs("--forwarded", "f.pcap", "in.pcap")...)
	c.Stdout = full
	got := finished(t, c)
	if got.status != 1 || !strings.Contains(got.stderr, "the report: ") || len(names(t, dir)) != 0 {
		t.Errorf("exit status %d, stderr %q, files %q", got.status, got.stderr, names(t, dir))
	}
}

// TestReadOnlyOutput: a file that may not be written to isn't replaced either.
func TestReadOnlyOutput(t *testing.T) {
	dir := workspace(t)
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "f.pcap", []byte("earlier"))
	if err := os.Chmod(filepath.Join(dir, "f.pcap"), 0o444); err != nil {
		t.Fatal(err)
	}
	c := command(dir, replayArgs("--forwarded", "f.pcap", "in.pcap")...)
	c.SysProcAttr = nobody()
	got := finished(t, c)
	if got.status != 1 || !strings.Contains(got.stderr, "--forwarded: open f.pcap: permission denied") || get(t, dir, "f.pcap") != "earlier" {
		t.Errorf("exit status %d, stderr %q", got.status, got.stderr)
	}
}

// TestReplayFlags: flags of a diagnosis that don't go together are refused, with the reason.
func TestReplayFlags(t *testing.T) {
	dir := workspace(t)
	for want, args := range map[string][]string{
		"--listen is where --web serves the page": {"--health", "--listen", "127.0.0.1:0", "in.pcap"},
		"--output and --web are given":            {"--health", "--web", "-o", "json"},
		"--roce-port is for a diagnosis":          {"--roce-port", "5000", "in.pcap"},
		"0 captures are given, expected one":      {"--health"},
		"expected a loopback address and a port":  {"--health", "--web", "--listen", "192.0.2.1:80"},
	} {
		if got := within(t, dir, append([]string{"replay"}, args...)...); got.status == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: exit status %d, %q; expected %q", args, got.status, got.stderr, want)
		}
	}
}
