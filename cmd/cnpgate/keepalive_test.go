package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestKeepAlive: the watchdog is fed while a gateway that stood by opens its devices, and not after that, nor for ever.
func TestKeepAlive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "4000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	fed := func(deadline time.Time) bool {
		buffer := make([]byte, 64)
		if err := l.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		n, err := l.Read(buffer)
		return err == nil && string(buffer[:n]) == "WATCHDOG=1"
	}
	stop := keepAlive(time.Hour)
	for range 3 {
		if !fed(time.Time{}) {
			t.Fatal("not fed")
		}
	}
	stop()
	stop()
	for fed(time.Now().Add(time.Millisecond)) { // what was sent before
	}
	stop = keepAlive(time.Nanosecond)
	for fed(time.Now().Add(100 * time.Millisecond)) { // ends by itself
	}
	stop()
	t.Setenv("WATCHDOG_USEC", "")
	keepAlive(time.Hour)()
	if fed(time.Now()) {
		t.Error("fed, though there is no watchdog")
	}
}
