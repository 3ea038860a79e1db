//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPassLog: each line of a record has the record's level, and only what may be a process's last is answered, after it was logged.
func TestPassLog(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{"\x04EAL: one\n", "\x05two\nthree\r\n\n", "\x08no end", "\x03PANIC\n", "\x01last\n"} {
		if _, err := unix.Write(fds[1], []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Shutdown(fds[1], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	reader := os.NewFile(uintptr(fds[0]), "log")
	var got []string
	passLog(reader, func(level LogLevel, text string) { got = append(got, level.String()+" "+text) })
	if want := []string{"error EAL: one", "warning two", "warning three", "debug no end", "critical PANIC", "emergency last"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	answers := 0
	for b := make([]byte, 8); ; answers++ {
		if n, err := unix.Read(fds[1], b); n <= 0 {
			if err != nil {
				t.Error(err)
			}
			break
		}
	}
	if answers != 2 {
		t.Errorf("%d answers, expected 2", answers)
	}
	if err := unix.Close(fds[1]); err != nil {
		t.Error(err)
	}
	if s := LogLevel(9).String(); s != "level 9" || LogNotice.String() != "notice" || LogInfo.String() != "info" || LogAlert.String() != "alert" {
		t.Errorf("%s, %s", s, LogNotice)
	}
}

func init() {
	// All that EAL logs from its start to its end comes through, with its level, and nothing of it goes to standard error.
	children["log"] = func() error {
		var lines []string
		cfg := EALConfig{Memory: 64 * mebi, MainCore: -1, Args: []string{"--log-level=lib.eal:debug"}}
		cfg.Log = func(level LogLevel, text string) { lines = append(lines, level.String()+" "+text) }
		e, err := Start(cfg)
		if err != nil {
			return err
		}
		if _, err := e.Open(oneWorker("net_pcap0,rx_pcap=/nonexistent.pcap")); err == nil {
			return errors.New("a capture that isn't there was opened")
		}
		if err := e.Close(); err != nil {
			return err
		}
		for _, want := range []string{"debug EAL: ", "info EAL: ", "error EAL: Driver cannot attach the device (net_pcap0)"} {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
				return fmt.Errorf("the log lacks %q:\n%s", want, strings.Join(lines, "\n"))
			}
		}
		return nil
	}
	// A start that fails has logged why when it returns.
	children["log of a failure"] = func() error {
		lines := 0
		cfg := EALConfig{Memory: 64 * mebi, MainCore: -1, Args: []string{"--no-such-argument"}}
		cfg.Log = func(level LogLevel, text string) {
			if level == LogError && strings.HasPrefix(text, "EAL: Invalid 'command line' arguments.") {
				lines++
			}
		}
		if _, err := Start(cfg); err == nil || lines != 1 {
			return fmt.Errorf("%d lines, expected 1 (%w)", lines, err)
		}
		return nil
	}
}

// TestLog: see the children.
func TestLog(t *testing.T) {
	if stderr, status := runChild(t, "log"); status != 0 || stderr != "" {
		t.Errorf("exit status %d; it said:\n%s", status, stderr)
	}
	if stderr, status := runChild(t, "log of a failure"); status != 0 {
		t.Errorf("exit status %d; it said:\n%s", status, stderr)
	}
}
