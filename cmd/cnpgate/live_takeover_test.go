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

// TestLiveTakeovers: of gateways that were all started with --standby, the active one is killed or stopped again and again, as the documents say how to run them. The one
// that stands by longest takes over, answers at the socket, the metrics' address and the page's, and loses little. One that is stopped while it stands by ends in order.
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
	next := standByFor(t, program, active)
	for i := range takeovers {
		after := standByFor(t, program, active)
		time.Sleep(time.Second) // they prepare
		took := outage(t, b, next, func() {
			if i%2 == 1 {
				active.stop()
				return
			}
			active.signal(syscall.SIGKILL)
			<-active.ended
		})
		for _, what := range []string{"The gateway takes over: the devices are free.", "The gateway is forwarding.", "The API listens at a Unix socket.",
			"Prometheus can read the metrics at this address.", "The page is at this address."} {
			next.says(what, 1)
		}
		if err := next.turns(200, `"healthy":true`); err != nil {
			t.Error(err)
		}
		t.Logf("takeover %d after %v", i+1, took.Round(time.Millisecond))
		active, next = next, after
	}
	next.signal(syscall.SIGTERM)
	if err := <-next.ended; err != nil {
		t.Errorf("a gateway that is stopped while it stands by: %v", err)
	}
	active.stop()
}
