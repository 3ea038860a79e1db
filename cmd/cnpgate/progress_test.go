package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal: what is written to it, and what a person sees.
func terminal(t *testing.T) (to *os.File, seen func() string) {
	t.Helper()
	master, to := pseudoTerminal(t)
	text := make(chan string)
	go func() {
		var all bytes.Buffer
		_, _ = all.ReadFrom(master) // until to is closed
		text <- all.String()
	}()
	return to, func() string {
		to.Close()
		return <-text
	}
}

// TestProgressOfReading: a capture with many records shows how far decode and replay are, on a terminal; the line is removed before anything else.
func TestProgressOfReading(t *testing.T) {
	dir := workspace(t)
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	header := []byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0}
	if _, err := z.Write(append(header, bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 250_000)...)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "many.pcap.gz", file.Bytes())
	put(t, dir, "good.yaml", []byte(goodConfig))
	in := filepath.Join(dir, "many.pcap.gz")
	for _, args := range [][]string{
		{"decode", in}, {"replay", "--config", filepath.Join(dir, "good.yaml"), "--fabric", "10.0.0.0/8", in},
	} {
		to, seen := terminal(t)
		c := root()
		c.SetArgs(args)
		c.SetErr(to)
		var out bytes.Buffer
		c.SetOut(&out)
		_ = c.Execute() // replay: no frame is from the fabric
		if text := seen(); !strings.Contains(text, "\r100000 frames read\r200000 frames read\r\x1b[K") {
			t.Errorf("%s: %.200q", args[0], text)
		}
	}
}

// pseudoTerminal opens both ends of a terminal.
func pseudoTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
