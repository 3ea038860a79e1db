//go:build live && !nodpdk

package main

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// freePort is a TCP port of the loopback address that nothing listens at, in the test's network namespace.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestLiveTakeovers: of two gateways that were both started with --standby, the active one is killed again and again, as the documents say how to run them. The other
// one always takes over, answers at the socket, the metrics' address and the page's, and loses little.
func TestLiveTakeovers(t *testing.T) {
	program := liveBinary(t)
	enterNamespace(t)
	ip(t, "link set lo up")
	dir := t.TempDir()
	text := fmt.Sprintf(liveConfig, dir)
	text = strings.Replace(text, "management: {", fmt.Sprintf("management: {metrics: \"127.0.0.1:%d\", web: {listen: \"127.0.0.1:%d\"}, ", freePort(t), freePort(t)), 1)
	put(t, dir, "c.yaml", []byte(text))
	active := startStandby(t, program, dir)
	active.says(`"message":"The gateway is forwarding."`, 1)
	a, b := newHost(t, "a1"), newHost(t, "b1")
	end := a.load(1000)
	defer end()
	flows(t, "at first", b, startTime)
	for i := range takeovers {
		next := standByFor(t, program, active)
		time.Sleep(time.Second) // it prepares
		took := outage(t, b, next, func() {
			active.signal(syscall.SIGKILL)
			<-active.ended
		})
		next.says(`"message":"The gateway is forwarding."`, 1)
		for _, what := range []string{"The API listens at a Unix socket.", "Prometheus can read the metrics at this address.", "The page is at this address."} {
			next.says(what, 1)
		}
		if err := next.turns(200, `"healthy":true`); err != nil {
			t.Error(err)
		}
		t.Logf("takeover %d after %v", i+1, took.Round(time.Millisecond))
		active = next
	}
	active.stop()
}
