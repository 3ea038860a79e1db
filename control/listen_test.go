package control

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// listeners are the IP addresses that this process has TCP sockets listening at, and UDP sockets bound to, as the kernel says.
func listeners(t *testing.T) (all []netip.Addr) {
	t.Helper()
	own := map[string]bool{}
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no open files (%v)", err)
	}
	for _, f := range files {
		if target, err := os.Readlink(f); err == nil && strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(target, "socket:[]")] = true
		}
	}
	for table, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} { // TCP_LISTEN; TCP_CLOSE, unconnected
		f, err := os.Open("/proc/self/net/" + table)
		if err != nil {
			continue // no IPv6
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 9 && fields[3] == state && own[fields[9]] {
				all = append(all, kernelAddress(t, fields[1]))
			}
		}
		_ = f.Close()
	}
	return all
}

// kernelAddress reads an address and port as /proc/net/tcp has them: words of 32 bits in the machine's order, here little endian.
func kernelAddress(t *testing.T, text string) netip.Addr {
	t.Helper()
	address, _, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(address)
	if err != nil || len(b)%4 != 0 {
		t.Fatalf("%q is no address of the kernel's", text)
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}

// TestListens: nothing listens at an address that the configuration doesn't name, and nothing beyond loopback unless it says so.
func TestListens(t *testing.T) {
	for _, c := range []struct {
		socket  bool
		metrics string
		want    string
	}{
		{false, "", "[]"},
		{true, "", "[]"},
		{true, "127.0.0.1:0", "[127.0.0.1]"},
		{false, "0.0.0.0:0", "[0.0.0.0]"},
	} {
		t.Run(fmt.Sprint(c.socket, c.metrics), func(t *testing.T) {
			cfg, b := newBench(t, []int{0}, "backoff", "1Gbps", 0)
			if cfg.Management.Metrics = c.metrics; c.socket {
				cfg.Management.Socket = filepath.Join(t.TempDir(), "api.sock")
			}
			ctx, stop := context.WithCancel(t.Context())
			log, over := &shared{}, make(chan error, 1)
			go func() {
				_, err := Run(ctx, cfg, b, Options{Log: zerolog.New(log)})
				over <- err
			}()
			log.await(t, `"message":"The gateway is forwarding."`)
			if c.socket {
				log.await(t, "The API listens at a Unix socket.")
			}
			if c.metrics != "" {
				log.await(t, "Prometheus can read the metrics at this address.")
			}
			if got := fmt.Sprint(listeners(t)); got != c.want {
				t.Errorf("the gateway listens at %s, want %s", got, c.want)
			}
			stop()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
}
