//go:build live

package ospf6d_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise/ospf6d"
	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv3"
	"github.com/cnpgate/cnpgate/internal/testkit/elsa"
	"github.com/cnpgate/cnpgate/internal/testkit/frr"
	"github.com/cnpgate/cnpgate/proxy"
)

const ageVariable, sequenceVariable = "OSPF6D_TEST_AGE", "OSPF6D_TEST_SEQUENCE"

// TestMain is the process that sends an LSA if the environment says so, else it runs the tests.
func TestMain(m *testing.M) {
	if os.Getenv(ageVariable) == "" {
		os.Exit(m.Run())
	}
	if err := sendLSA(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sendLSA sends an extended LSA to the neighbour as if the router of its namespace had originated it: FRR originates none.
func sendLSA() error {
	age, _ := strconv.Atoi(os.Getenv(ageVariable))
	sequence, _ := strconv.Atoi(os.Getenv(sequenceVariable))
	router := netip.MustParseAddr("192.0.2.2")
	p := ospfv3.Prefix{TLV: ospfv3.IntraArea, Metric: 10, Prefix: netip.MustParsePrefix("2001:db8:c::/48")}
	p.Addresses = []netip.Addr{netip.MustParseAddr("2001:db8::9")}
	p.SetP()
	body, err := elsa.Body(&ospfv3.LSA{Reference: ospfv3.Reference{Type: 0x2001, Router: router}, Prefixes: []ospfv3.Prefix{p}}, ospfv3.EIntraAreaPrefix)
	if err != nil {
		return err
	}
	lsa := ospf.LSA{Age: uint16(age), Type: ospfv3.EIntraAreaPrefix, Router: router, Sequence: 0x80000000 + uint32(sequence), Body: body}
	packet := []byte{3, ospf.LinkStateUpdate, 0, 0, 192, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}
	if packet, err = lsa.Append(packet); err != nil {
		return err
	}
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	c, err := net.ListenPacket("ip6:89", "::%ospf0")
	if err != nil {
		return err
	}
	raw, err := c.(*net.IPConn).SyscallConn()
	if err != nil {
		return err
	}
	const ipv6Checksum, at = 7, 12 // the kernel fills in the checksum, ipv6(7)
	if err := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, ipv6Checksum, at) }); err != nil {
		return err
	}
	if _, err := c.WriteTo(packet, &net.IPAddr{IP: net.ParseIP("ff02::5"), Zone: "ospf0"}); err != nil {
		return err
	}
	return nil
}

// inject sends the LSA from a router's namespace.
func inject(t *testing.T, r *frr.Router, age, sequence int) {
	t.Helper()
	c := exec.Command("ip", "netns", "exec", r.Namespace, os.Args[0])
	c.Env = append(os.Environ(), ageVariable+"="+strconv.Itoa(age), sequenceVariable+"="+strconv.Itoa(sequence))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestLiveOSPFv3: what a neighbour announces in an extended LSA, a gateway learns from Debian's FRR; it goes when the LSA is flushed, and when the neighbour
// can't be reached any more, though FRR keeps the LSA.
func TestLiveOSPFv3(t *testing.T) {
	config := "interface ospf0\n ipv6 ospf6 area 0\n ipv6 ospf6 network point-to-point\n ipv6 ospf6 hello-interval 1\n ipv6 ospf6 dead-interval 5\n" +
		" ipv6 ospf6 retransmit-interval 1\nrouter ospf6\n timers throttle spf 0 50 500\n timers lsa min-arrival 100\n"
	a := frr.New(t, "a", config+" ospf6 router-id 192.0.2.1\n")
	b := frr.New(t, "b", config+" ospf6 router-id 192.0.2.2\n")
	frr.Connect(t, a, b, "ospf0")
	for _, r := range []*frr.Router{a, b} {
		r.Start(t, "zebra")
		r.Start(t, "ospf6d")
	}
	learned := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	c := ospf6d.Client{Socket: filepath.Join(a.Directory, "ospf6d.vty"), Interval: 100 * time.Millisecond, Log: zerolog.New(os.Stderr),
		Accepts: func(netip.Prefix) bool { return true }}
	c.Note = func(error) {}
	c.Learned = func(senders []proxy.Sender) error {
		learned <- text(senders)
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	const want = "2001:db8:c::/48=2001:db8::9"
	// expect waits until the gateway has learned this; on a busy machine the routers may lose each other for a while before.
	expect := func(when, want string) {
		t.Helper()
		for end := time.After(frr.Patience); ; {
			select {
			case got := <-learned:
				if got == want {
					return
				}
			case <-end:
				t.Fatalf("%s: not within %v: %q", when, frr.Patience, want)
			}
		}
	}
	frr.Await(t, "the routers are neighbours", func() bool { return strings.Contains(a.Show(t, "show ipv6 ospf6 neighbor"), "Full/") })
	inject(t, b, 1, 1)
	expect("announced", want)
	// The router remembers for a moment when an LSA came, and ignores others until then (MinLSArrival, RFC 2328 B).
	frr.Await(t, "flushed", func() bool { inject(t, b, ospf.MaxAge, 2); return len(learned) > 0 })
	expect("flushed", "")
	frr.Await(t, "announced again", func() bool { inject(t, b, 1, 3); return len(learned) > 0 })
	expect("announced again", want)
	b.Kill(t, "ospf6d")
	expect("neighbour killed", "")
	if dump := a.Show(t, "show ipv6 ospf6 database dump json"); !strings.Contains(dump, "20010db8000c0000") {
		t.Error("FRR has lost the LSA, so this says nothing about routers that can't be reached")
	}
	cancel()
	<-done
}
