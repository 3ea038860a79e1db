//go:build long

package scenario_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/scenario"
)

var writeScale = flag.Bool("table", false, "write the table of docs/planning.md about networks anew")

// scaleHead is the head of that table.
const scaleHead = "| Network | Goodput, of possible | Lost | Queue p99 | Notifications' delay p99 | Run |\n|---|---|---|---|---|---|\n"

// putScale writes a row of the table, in place of the one that begins as it does.
func putScale(t *testing.T, row string) {
	const page = "../../docs/planning.md"
	whole, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, table, ok := strings.Cut(string(whole), scaleHead)
	rows, after, ended := strings.Cut(table, "\n\n")
	if !ok || !ended {
		t.Fatalf("%s has no table with the head %q", page, scaleHead)
	}
	all := strings.Split(rows, "\n")
	name := strings.Split(row, " | ")[0]
	i := slices.IndexFunc(all, func(r string) bool { return strings.HasPrefix(r, name+" | ") })
	if i < 0 {
		t.Fatalf("%s has no row %q", page, name)
	}
	all[i] = row
	if err := os.WriteFile(page, []byte(before+scaleHead+strings.Join(all, "\n")+"\n\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestScale: at the size of a site, the gateway has at least the goodput, and loses at most, what is known of it today. A notification's delay is from the time at which
// the gateway sends it until its sender has it. With -table, the table of docs/planning.md is written.
func TestScale(t *testing.T) {
	for _, c := range []struct {
		name, text string
		flows      int
		possible   float64 // of the possible goodput, at least
		lost       uint64  // packets, at most
		delay      int64   // of a notification, us, 99th percentile at most
	}{
		{"128 hosts to 128, all to all", `name: hosts
length: 400ms
topology: {dumbbell: {senders: 128, receivers: 128, rate: 25Gbps, delay: 2us, spans: [{rate: 400Gbps, delay: 2500us, gateway: west}]}}
hosts: {nic: connectx-default}
gateways: {west: {}}
responses: [ecn, standard-cnp]
traffic: [{incast: {from: 0-127, to: 128-255, bytes: 128KiB, spread: 5ms}}]
`, 16_384, 0.45, 1_200_000, 100},
		{"30,000 QPs", `name: qps
length: 600ms
topology: {dumbbell: {senders: 30, receivers: 30, rate: 25Gbps, delay: 2us, spans: [{rate: 100Gbps, delay: 2500us, gateway: west}]}}
hosts: {nic: connectx-default}
gateways: {west: {}}
responses: [ecn, standard-cnp]
traffic: [` + pairsOf(30, "bytes: 40MB, qps: 1000, spread: 5ms") + `]
`, 30_000, 0.36, 2_000_000, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.text)
			if s.Flows() != c.flows {
				t.Fatalf("%d flows, want %d", s.Flows(), c.flows)
			}
			for _, r := range []scenario.Response{scenario.ECN, scenario.StandardCNP} {
				began, sent, delays := time.Now(), map[uint64]int64{}, []int64(nil)
				running, err := s.Start(r, func(p *sim.Passage) {
					switch {
					case !p.Built:
					case sent[p.ID] == 0:
						sent[p.ID] = p.Sent
					default: // the last link ends at the host
						delays = append(delays, p.Arrives-sent[p.ID])
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				for more := true; more; {
					if more, err = running.Run(1 << 18); err != nil {
						t.Fatal(err)
					}
				}
				o, err := running.Outcome()
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(delays)
				p99 := int64(0)
				if len(delays) > 0 {
					p99 = delays[len(delays)*99/100] / 1000
				}
				part := o.All.Goodput / o.Possible
				t.Logf("%v: %.1f Gbps, %.3f of the possible; %d lost; queue %d bytes, p99 %d; %d notifications, delay p99 %d us; %d of %d flows ended; Jain's index of senders %.3f; %d M hops in %v",
					r, o.All.Goodput/1e9, part, o.Dropped, o.Gateway.Peak, o.Gateway.P99, o.Sent, p99, o.All.Finished, o.All.Flows, o.Senders, o.Hops/1e6, time.Since(began).Round(time.Second))
				if *writeScale && r == scenario.StandardCNP {
					putScale(t, fmt.Sprintf("| %s | %.2f | %d | %.1f MB | %d us | %.0f s |", c.name, part, o.Dropped, float64(o.Gateway.P99)/1e6, p99, time.Since(began).Seconds()))
				}
				if r == scenario.StandardCNP && (part < c.possible || o.Dropped > c.lost || p99 > c.delay) {
					t.Errorf("want at least %g of the possible goodput, at most %d lost and at most %d us", c.possible, c.lost, c.delay)
				}
			}
		})
	}
}

// pairsOf are incasts from host i to host n+i.
func pairsOf(n int, what string) (text string) {
	for i := range n {
		text += fmt.Sprintf("{incast: {from: %d, to: %d, %s}}, ", i, n+i, what)
	}
	return text
}
