//go:build !nodpdk

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/dpdk"
	"github.com/cnpgate/cnpgate/internal/dpdk/dpdktest"
)

// The gateway as it runs, on DPDK's ring devices:
//
//	test --in--> [fab0]  gateway  [wan0] --out--> test
//	test <-out-- [fab0]           [wan0] <--in--- test
const ringsConfig = `
gateway: {name: rings, ipv4: 198.18.0.254, ipv6: "fd00:18::fe"}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fab0, device: net_ring_fab0, role: fabric, peer: wan0, rate: 10Gbps, queue_capacity: 1MB}
  - {name: wan0, device: net_ring_wan0, role: wan, peer: fab0, rate: 100Mbps, rtt: 1ms, queue_capacity: 1MB, profile: short}
profiles:
  short: {mode: thresholds, k_base: 20KB}
endpoints:
  - {prefix: 198.18.0.2/32, accepts: [long-haul-cnp]}
notifications:
  long_haul_cnp: {enabled: true}
qp_map:
  - {source_ip: 198.18.0.2, destination_ip: 198.18.0.1, source_qp: 418, destination_qp: 58}
`

// ringSize is more than all frames of the capture: the test may hand them over at once.
const ringSize = 1024

func TestGatewayOnRings(t *testing.T) {
	eal, err := dpdk.Start(dpdk.EALConfig{Memory: 256 << 20, MainCore: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { check(t, eal.Close()) }()
	fab, wan := ring(t, eal, "fab0"), ring(t, eal, "wan0")
	cfg, err := config.Parse("rings.yaml", []byte(ringsConfig))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := eal.Open(deviceConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}

	sent := frames(t, "../../testdata/captures/rc_write_v4.pcap")
	result, toWAN, toFabric := runOnRings(t, cfg, opened, fab, wan, sent)

	if !equalButCE(sent, toWAN) {
		t.Errorf("%d frames in, %d out of the WAN port, or some were changed other than by CE", len(sent), len(toWAN))
	}
	if len(toFabric) == 0 || len(result.Flows) == 0 {
		t.Errorf("%d notifications towards the sender and %d flows, expected some of each", len(toFabric), len(result.Flows))
	}
	if n := opened.Pool().InUse(); n > dpdk.Spares+opened.Workers()*2*1024*2 {
		t.Errorf("%d frames in use after the run, more than devices and spares hold", n)
	}
	check(t, opened.Stop())
	if n := opened.Pool().InUse(); n != 0 {
		t.Errorf("%d frames of the gateway's pool were not given back", n)
	}
	check(t, opened.Close())
	for _, r := range []*dpdktest.Ring{fab, wan} {
		if n := r.InUse(); n != 0 {
			t.Errorf("%d frames of a ring's pool were not given back", n)
		}
		check(t, r.Close())
	}
}

// runOnRings runs the gateway until everything that was handed to the fabric port has come out of the WAN port.
func runOnRings(t *testing.T, cfg *config.Config, d *dpdk.Devices, fab, wan *dpdktest.Ring, sent [][]byte) (r *report.Report, toWAN, toFabric [][]byte) {
	t.Helper()
	for _, f := range sent {
		check(t, fab.Inject(0, f))
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		var err error
		r, err = control.Run(ctx, cfg, &devices{Devices: d}, control.Options{Log: zerolog.New(io.Discard)})
		done <- err
	}()
	for len(toWAN) < len(sent) {
		select {
		case err := <-done:
			t.Fatalf("the gateway stopped with %d of %d frames forwarded: %v", len(toWAN), len(sent), err)
		default:
		}
		if f := wan.Collect(0); f != nil {
			toWAN = append(toWAN, f)
		}
		runtime.Gosched()
	}
	stop()
	check(t, <-done)
	for f := fab.Collect(0); f != nil; f = fab.Collect(0) {
		toFabric = append(toFabric, f)
	}
	return r, toWAN, toFabric
}

func ring(t *testing.T, eal *dpdk.EAL, name string) *dpdktest.Ring {
	t.Helper()
	r, err := dpdktest.NewRing(eal.Do, name, 1, ringSize, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func frames(t *testing.T, path string) (out [][]byte) {
	t.Helper()
	capture, err := replay.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	for {
		f, err := capture.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		check(t, err)
		out = append(out, bytes.Clone(f.Octets))
	}
}

// equalButCE compares IPv4 frames without their ECN field and header checksum.
func equalButCE(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := bytes.Clone(a[i]), bytes.Clone(b[i])
		if len(x) != len(y) {
			return false
		}
		for _, f := range [][]byte{x, y} {
			f[15] &^= 3
			f[24], f[25] = 0, 0
		}
		if !bytes.Equal(x, y) {
			return false
		}
	}
	return true
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
