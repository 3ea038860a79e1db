//go:build soak && !nodpdk

package main

import (
	"context"
	be "encoding/binary"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/dpdk"
	"github.com/cnpgate/cnpgate/internal/dpdk/dpdktest"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/telemetry"
)

// waiting is how many packets wait at once: fewer than a queue of 4 MB holds, one for each KB.
const waiting = 2048

// TestSoakRings: of SOAK_PACKETS packets of 64 flows that a ring gives the gateway, each arrives once, in order, at the other one, and the report accounts for all.
func TestSoakRings(t *testing.T) {
	all, err := strconv.ParseUint(os.Getenv("SOAK_PACKETS"), 10, 64)
	if err != nil || all == 0 {
		t.Fatalf("SOAK_PACKETS is %q; run scripts/soak --packets N", os.Getenv("SOAK_PACKETS"))
	}
	eal, err := dpdk.Start(dpdk.EALConfig{Memory: 512 << 20, MainCore: -1})
	check(t, err)
	defer func() { check(t, eal.Close()) }()
	fab, err := dpdktest.NewRing(eal.Do, "fab0", 1, 4*waiting, 2048)
	check(t, err)
	wan, err := dpdktest.NewRing(eal.Do, "wan0", 1, 4*waiting, 2048)
	check(t, err)
	cfg, err := config.Parse("rings.yaml", []byte(strings.NewReplacer("rate: 100Mbps, rtt: 1ms", "rate: 10Gbps, rtt: 100us", "queue_capacity: 1MB", "queue_capacity: 4MB").Replace(ringsConfig)))
	check(t, err)
	opened, err := eal.Open(deviceConfig(cfg))
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var forwarded, received uint64
	var dropped telemetry.Reading
	go func() {
		r, err := control.Run(ctx, cfg, &devices{Devices: opened}, control.Options{Log: zerolog.New(io.Discard)})
		if r != nil {
			received, forwarded = r.Ports[0].Counters["received_packets_total"].Value, r.Ports[1].Counters["forwarded_packets_total"].Value
			dropped = r.Counters["dropped_packets_total"]
		}
		ended <- err
	}()
	var flows [64][]byte
	for i := range flows {
		flows[i] = testkit.RoCE{Src: "198.18.0.1", Dst: "198.19.0.1", DestQP: uint32(2 + i), SourceQP: uint32(2 + i), Opcode: packet.RCWriteMiddle, Size: 100}.Frame()
	}
	began := time.Now()
	sent, next, lost := uint64(0), uint64(0), uint64(0)
	for next < all {
		for ; sent < all && sent < next+waiting; sent++ {
			f := flows[sent%uint64(len(flows))]
			be.BigEndian.PutUint64(f[len(f)-8:], sent)
			check(t, fab.Inject(0, f))
		}
		f := wan.Collect(0)
		if f == nil {
			for fab.Collect(0) != nil { // notifications
			}
			select {
			case err := <-ended:
				t.Fatalf("the gateway ended after %d packets: %v", next, err)
			default:
			}
			continue
		}
		n := be.BigEndian.Uint64(f[len(f)-8:])
		if n < next {
			t.Fatalf("packet %d arrives after %d", n, next-1)
		}
		lost += n - next
		next = n + 1
	}
	took := time.Since(began)
	stop()
	check(t, <-ended)
	if lost > 0 || received != all || forwarded != all {
		t.Errorf("%d packets sent, %d lost, %d count as received, %d as forwarded, as dropped: %v", all, lost, received, forwarded, dropped)
	}
	t.Logf("soak: %d packets over rings, %d lost, %.0f a second", all, lost, float64(all)/took.Seconds())
	check(t, opened.Close())
	check(t, fab.Close())
	check(t, wan.Close())
}
