package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
		{"decode in.pcap", 0, "364 frames: 0 notifications accepted, 0 refused, 364 other frames\nno notification is in it; cnpgate replay --health CAPTURE ", ""},
		{"decode --config gw.yaml n.pcap", 0, "): fast-cnp from ", ""},
		{"decode --config other.yaml --accepts ppfc n.pcap", 0, "28 frames: 16 notifications accepted, 9 refused, 3 other frames\n", ""},
		{"decode --option-type 0x9F n.pcap", 1, "", "--option-type was removed; use --config FILE, with notifications.fast_cnp.option_type"},
		{"decode cut.pcap", 3, "\n27 frames: ", "cnpgate: decode of cut.pcap: capture cut.pcap: it is cut short: the record of frame 28 has "},
		{"decode", 1, "", "0 captures are given, expected one"},
		{"decode n.pcap in.pcap", 1, "", "2 captures are given, expected one"},
		{"decode -o xml n.pcap", 1, "", `--output: "xml" is not known; expected text or json`},
		{"decode --accepts fast-cnp n.pcap", 1, "", `--accepts: "fast-cnp" is not known; expected long-haul-cnp or ppfc`},
		{"decode --config none.yaml n.pcap", 1, "", "none.yaml"},
		{"decode none.pcap", 1, "", "capture: open none.pcap: no such file or directory"},
		{"decode .", 1, "", "is a directory"},
		{"decode gw.yaml", 1, "", "not a pcap or pcapng file"},
		{"decode sll.pcap", 0, "364 frames", ""},
		{"decode broken.pcap", 3, "1 frames", "capture broken.pcap: it is damaged: frame 2"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := within(t, dir, strings.Fields(c.args)...)
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

// TestDecodeCodePoints: notifications are recognised by the code points of the configuration.
func TestDecodeCodePoints(t *testing.T) {
	dir := workspace(t)
	golden, err := os.ReadFile("../../testdata/notifications/golden.pcap")
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "n.pcap", golden)
	put(t, dir, "other.yaml", []byte(strings.Replace(goodConfig, "{enabled: true}", "{enabled: true, option_type: 0x9F}", 1)))
	put(t, dir, "all.yaml", []byte(strings.Replace(goodConfig, "{enabled: true}",
		"{enabled: true, trace_option_type: 0x9F}, long_haul_cnp: {icmpv6_type: 201, extension_class: 246}", 1)+"proxy: {port: 1021}\n"))
	for _, c := range []struct {
		args                             string
		fast, malformed, icmpv6, toProxy int // Fast CNPs, of which with an option that isn't its type's
		devices                          int // device identifiers in extension objects
	}{
		{"", 6, 0, 3, 5, 2},
		{"--config gw.yaml", 6, 0, 3, 5, 2},
		{"--config other.yaml", 0, 0, 3, 5, 2},
		{"--config all.yaml", 6, 3, 0, 0, 0},
	} {
		got := within(t, dir, strings.Fields("decode "+c.args+" n.pcap")...)
		for text, want := range map[string]int{"): fast-cnp from ": c.fast, "(option-malformed): ": c.malformed, "): long-haul-cnp-icmpv6 from ": c.icmpv6,
			"): proxy-notification from ": c.toProxy, "\n               device  ": c.devices} {
			if n := strings.Count(got.stdout, text); n != want || got.status != 0 {
				t.Errorf("%s: %d of %q, want %d; exit status %d, %s", c.args, n, text, want, got.status, got.stderr)
			}
		}
	}
}

// TestCannotBeWritten: standard output is full.
func TestCannotBeWritten(t *testing.T) {
	dir := workspace(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range []string{"decode in.pcap", "--help", "", "help sim", "sim --help", "help nosuch", "--version", "version", "completion bash"} {
		c := command(dir, strings.Fields(args)...)
		c.Stdout = full
		if got := finished(t, c); got.status != 1 || strings.Contains(got.stderr, "write /dev/stdout: no space left on device") == (args == "help nosuch") {
			t.Errorf("%s: exit status %d, stderr %q", args, got.status, got.stderr)
		}
	}
}

// TestDecodeStandardInput: a stream is decoded as a file is, compressed or not.
func TestDecodeStandardInput(t *testing.T) {
	dir := workspace(t)
	golden := goldenNotifications(t)
	put(t, dir, "n.pcap", golden)
	want := cnpgate(t, dir, "decode", "n.pcap").stdout
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(golden); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "n.pcap.gz", z.Bytes())
	if got := cnpgate(t, dir, "decode", "n.pcap.gz"); got != (ran{stdout: want}) {
		t.Errorf("n.pcap.gz: exit status %d, stderr %q", got.status, got.stderr)
	}
	for name, c := range map[string]struct {
		stdin  []byte
		status int
		stdout string
		stderr string
	}{
		"pcap":    {golden, 0, want, ""},
		"gzip":    {z.Bytes(), 0, want, ""},
		"cut":     {golden[:len(golden)-1], 3, "\n27 frames: ", "capture -: it is cut short"},
		"nothing": {nil, 1, "", "capture -: it has 0 bytes; expected a pcap or pcapng file"},
	} {
		p := command(dir, "decode", "-")
		p.Stdin = bytes.NewReader(c.stdin)
		if got := finished(t, p); got.status != c.status || !tells(got.stdout, c.stdout) || !tells(got.stderr, c.stderr) {
			t.Errorf("%s: exit status %d, want %d\nstdout: %.2000s\nstderr: %s\nwant    %s", name, got.status, c.status, got.stdout, got.stderr, c.stderr)
		}
	}
}

func goldenNotifications(t *testing.T) []byte {
	t.Helper()
	golden, err := os.ReadFile("../../testdata/notifications/golden.pcap")
	if err != nil {
		t.Fatal(err)
	}
	return golden
}

// TestInterruptedAtPipe: a signal ends a command that waits for the other end of a named pipe.
func TestInterruptedAtPipe(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"decode", "pipe"}, 130},
		{[]string{"sim", "incast-40ms", "--response", "ecn", "--csv", "a"}, 1},
	} {
		dir := t.TempDir()
		for _, name := range []string{"pipe", "a-ecn.csv"} {
			if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		x := command(dir, c.args...)
		if err := x.Start(); err != nil {
			t.Fatal(err)
		}
		// The kernel says which system call a thread waits in: open, twice in a row of the same path. Until then the signal could come before the
		// program handles signals.
		opens := func() (calls []string) {
			threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", x.Process.Pid))
			for _, path := range threads {
				call, err := os.ReadFile(path)
				if err == nil && strings.HasPrefix(string(call), fmt.Sprintf("%d ", unix.SYS_OPENAT)) {
					calls = append(calls, path+" "+string(call))
				}
			}
			return calls
		}
		waits := func() bool {
			before := opens()
			time.Sleep(50 * time.Millisecond)
			return slices.ContainsFunc(opens(), func(call string) bool { return slices.Contains(before, call) })
		}
		for deadline := time.Now().Add(20 * time.Second); !waits(); {
			if time.Now().After(deadline) {
				_ = x.Process.Kill()
				_ = x.Wait()
				if _, err := os.ReadFile("/proc/thread-self/syscall"); err != nil {
					t.Skipf("this system doesn't show where a process waits: %v", err)
				}
				t.Fatalf("%v doesn't wait for the pipe", c.args)
			}
		}
		if err := x.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(20*time.Second, func() { _ = x.Process.Kill() })
		_ = x.Wait()
		late.Stop()
		if got := x.ProcessState.ExitCode(); got != c.status {
			t.Errorf("%v: exit status %d, expected %d", c.args, got, c.status)
		}
	}
}

// TestDecodeLive: a notification in an open stream is printed as soon as it arrives, and SIGINT prints the summary.
func TestDecodeLive(t *testing.T) {
	golden := goldenNotifications(t)
	c := command(t.TempDir(), "decode", "-o", "json", "-")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Fatalf("%q, want %q; stderr %s", lines.Text(), want, stderr.String())
		}
	}
	at := 24
	for frame := 1; frame <= 2; frame++ { // each is read before the next is written
		end := at + 16 + int(golden[at+8]) + int(golden[at+9])<<8
		if frame == 1 {
			at = 0
		}
		if _, err := stdin.Write(golden[at:end]); err != nil {
			t.Fatal(err)
		}
		at = end
		next(fmt.Sprintf(`{"frame":%d,`, frame))
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	next(`{"summary":{"frames":2,"accepted":2,`)
	if err := c.Wait(); c.ProcessState.ExitCode() != 130 || stderr.Len() != 0 {
		t.Errorf("%v, stderr %q, want exit status 130 and silence", err, stderr.String())
	}
}

// TestDecodeClosedPipe: a reader that closes the pipe, such as head, ends the command without an error message.
func TestDecodeClosedPipe(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "n.pcap", goldenNotifications(t))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	c := command(dir, "decode", "n.pcap")
	c.Stdout = w
	got := finished(t, c)
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGPIPE || got.stderr != "" {
		t.Errorf("%v, stderr %q, want the end by SIGPIPE and silence", c.ProcessState, got.stderr)
	}
}
