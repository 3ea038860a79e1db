package endpoint

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// ns3Parameters are those of ns-3's runs, by the name in the file: "paper" those of the DCQCN paper, "nowin" those of the HPCC simulator.
var ns3Parameters = map[string]DCQCNConfig{
	"paper": {ByteCounter: -1, HoldTarget: true, AtPeriodEnd: true},
	"nowin": {
		AlphaTimer: 1000, DecreaseInterval: 4000, RateTimer: 900_000, ByteCounter: -1, FastRecovery: 1, AdditiveIncrease: 50e6, HyperIncrease: 100e6,
		MinRate: 100e6, HoldTarget: true, AtPeriodEnd: true,
	},
}

// TestAgreesWithNS3: with cuts at the ends of periods, the rate of a sender that gets a list of CNPs is that of ns-3's model at all times.
func TestAgreesWithNS3(t *testing.T) {
	for _, r := range readReplays(t) {
		t.Run(r.name, func(t *testing.T) {
			const line = 100e9
			c := ns3Parameters[r.name[strings.LastIndexByte(r.name, '-')+1:]]
			if err := c.complete(line); err != nil {
				t.Fatal(err)
			}
			var d dcqcn
			d.start(&c, line)
			wrong, cnps := 0, r.cnps
			for i, want := range r.rates {
				at := int64(i) * r.every
				for len(cnps) > 0 && cnps[0] < at {
					d.notify(cnps[0], &c, line)
					cnps = cnps[1:]
				}
				d.advance(at, &c, line)
				if math.Abs(d.rate-want*1e6) > 1e6 {
					if wrong++; wrong == 1 {
						t.Logf("at %d ns: %.3f Gbps, ns-3 %.3f Gbps", at, d.rate/1e9, want/1e3)
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d rates differ by more than 1 Mbps", wrong, len(r.rates))
			}
		})
	}
}

// replay is one sender of ns-3 that got a list of CNPs.
type replay struct {
	name  string
	every int64     // ns between two rates
	rates []float64 // Mbps
	cnps  []int64   // ns
}

// readReplays reads testdata/ns3-replay.txt.gz: for each sender a line with its name and the time between two rates, ns; a line with the times of
// its CNPs, ns; and a line with its rates, Mbps.
func readReplays(t *testing.T) (all []replay) {
	f, err := os.Open("testdata/ns3-replay.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r replay
		if _, err := fmt.Sscan(lines.Text(), &r.name, &r.every); err != nil {
			t.Fatal(err)
		}
		lines.Scan()
		for _, w := range strings.Fields(lines.Text()) {
			n, err := strconv.ParseInt(w, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.cnps = append(r.cnps, n)
		}
		lines.Scan()
		for _, w := range strings.Fields(lines.Text()) {
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.rates = append(r.rates, v)
		}
		all = append(all, r)
	}
	return all
}
