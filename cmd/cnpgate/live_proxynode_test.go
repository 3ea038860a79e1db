//go:build live && !nodpdk

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// TestLiveProxyReachable: the kernels of the hosts on both sides find a proxy's address by ARP and Neighbor Discovery, at the MAC address of their own side's
// port, and ping it; they can't take the address, as it is in use. Without a proxy nobody answers.
func TestLiveProxyReachable(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	const with = "proxy: {enabled: true, sources: [198.51.100.0/24]}\n"
	program := liveBinary(t)
	enterNamespace(t)
	var hosts [2]*station
	for i, side := range []string{"a", "b"} {
		s, namespace := newStation(t)
		hosts[i] = s
		ip(t, "link set "+side+"1 netns "+namespace)
		s.ip(t, fmt.Sprintf("address add 192.0.2.%d/24 dev %s1", i+11, side), fmt.Sprintf("address add 2001:db8::%d/64 dev %s1 nodad", i+11, side), "link set "+side+"1 up")
	}
	text := strings.Replace(liveConfig, "ipv4: 192.0.2.1}", `ipv4: 192.0.2.1, ipv6: "2001:db8::1"}`, 1)
	p := startWith(t, program, with+text)
	for i, side := range []string{"a", "b"} {
		s, port := hosts[i], macOf(t, side+"0")
		for _, target := range []string{"192.0.2.1", "2001:db8::1"} {
			for _, size := range []string{"0", "56", "1400"} {
				s.does(t, "ping", "-n", "-c", "3", "-i", "0.2", "-w", "10", "-s", size, target)
			}
			if out := s.does(t, "ip", "neigh", "show", target); !strings.Contains(out, "lladdr "+port) {
				t.Errorf("host %s knows %q, expected the MAC address %s of its port", side, out, port)
			}
		}
		if out := s.does(t, "busybox", "arping", "-c", "2", "-I", side+"1", "192.0.2.1"); !strings.Contains(strings.ToLower(out), port) {
			t.Errorf("arping from host %s: %s", side, out)
		}
		s.do(t, func() error {
			if out, err := exec.Command("busybox", "arping", "-D", "-c", "2", "-I", side+"1", "192.0.2.1").CombinedOutput(); err == nil {
				return fmt.Errorf("a probe for the proxy's address from host %s finds nobody: %s", side, out)
			}
			return nil
		})
		s.ip(t, "address add 2001:db8::1/64 dev "+side+"1") // with Duplicate Address Detection
		failed := false
		for end := time.Now().Add(10 * time.Second); !failed && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			failed = strings.Contains(s.does(t, "ip", "-6", "address", "show", "dev", side+"1"), "dadfailed")
		}
		if !failed {
			t.Errorf("host %s could take the proxy's address", side)
		}
		s.ip(t, "address del 2001:db8::1/64 dev "+side+"1", "neigh flush dev "+side+"1")
	}
	hosts[0].does(t, "ping", "-n", "-c", "3", "-i", "0.2", "-w", "10", "192.0.2.12") // through the gateway
	hosts[1].does(t, "ping", "-n", "-c", "3", "-i", "0.2", "-w", "10", "2001:db8::11")
	fabric, wan := p.stop()
	for _, port := range []portReport{fabric, wan} {
		if len(port.Counters.Dropped) != 0 && port.Counters.Dropped["to-gateway"] != 0 {
			t.Errorf("dropped %v", port.Counters.Dropped)
		}
	}
	q := startWith(t, program, text)
	hosts[0].ip(t, "neigh flush dev a1")
	hosts[0].do(t, func() error {
		if out, err := exec.Command("ping", "-n", "-c", "2", "-i", "0.2", "-w", "2", "192.0.2.1").CombinedOutput(); err == nil {
			return fmt.Errorf("without a proxy somebody answers: %s", out)
		}
		return nil
	})
	q.stop()
}

// does runs a command in the station's namespace and returns its output.
func (s *station) does(t *testing.T, name string, args ...string) (text string) {
	t.Helper()
	s.do(t, func() error {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
		}
		text = string(out)
		return err
	})
	return text
}

// macOf is the MAC address of an interface in the gateway's namespace.
func macOf(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("ip", "-o", "link", "show", name).CombinedOutput()
	_, rest, found := strings.Cut(string(out), "link/ether ")
	if err != nil || !found {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Fields(rest)[0]
}
