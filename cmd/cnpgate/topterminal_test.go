package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTopInTerminal: the display is used, keys act, and whatever ends the command, the terminal is as before.
func TestTopInTerminal(t *testing.T) {
	dir := workspace(t)
	gatewayAt(t, filepath.Join(dir, "gw.sock"), answered, true)
	for _, end := range []string{"q", "\x03", "SIGTERM"} {
		master, slave := pseudoTerminal(t)
		if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
			t.Fatal(err)
		}
		before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		c := command(dir, "top", "--socket", "gw.sock", "--interval", "100ms")
		c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		shown := watchTerminal(master)
		shown.until(t, "SOURCE")
		if _, err := master.WriteString("u"); err != nil {
			t.Fatal(err)
		}
		shown.until(t, "CAPACITY")
		if end == "SIGTERM" {
			err = c.Process.Signal(syscall.SIGTERM)
		} else {
			_, err = master.WriteString(end)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%q: %v", end, err)
		}
		shown.until(t, endScreen)
		after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("%q: the terminal is %+v, was %+v, %v", end, after, before, err)
		}
		if !strings.HasPrefix(shown.text, beginScreen) {
			t.Errorf("%q: %q", end, shown.text)
		}
	}
}

// watched is what a terminal has shown.
type watched struct {
	text string
	more chan string
}

func watchTerminal(master *os.File) *watched {
	w := &watched{more: make(chan string, 1024)}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			if err != nil {
				return
			}
			w.more <- string(b[:n])
		}
	}()
	return w
}

// until waits until the terminal has shown a text.
func (w *watched) until(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !strings.Contains(w.text, text) {
		select {
		case s := <-w.more:
			w.text += s
		case <-deadline:
			t.Fatalf("never %q, but %q", text, w.text)
		}
	}
}
