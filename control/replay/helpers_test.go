package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// frame is one frame of a capture.
type frame struct {
	at     int64 // ns since 1970
	octets []byte
	length int // on the wire
}

func (f frame) String() string {
	p := f.parse()
	return fmt.Sprintf("%d.%09d: %d octets (%d on the wire), %v > %v, kind %d, %v, QP %d, ECN %d",
		f.at/1e9, f.at%1e9, len(f.octets), f.length, p.Src.Netip(), p.Dst.Netip(), p.Kind, p.Opcode, p.DestQP, p.ECN)
}

func (f frame) parse() packet.Parsed {
	var p packet.Parsed
	packet.Parse(f.octets, uint32(f.length), &p)
	return p
}

// frames reads a whole classic capture.
func frames(t *testing.T, capture []byte) (out []frame) {
	t.Helper()
	r, err := pcapgo.NewReader(bytes.NewReader(capture))
	if err != nil {
		t.Fatalf("not a capture: %v", err)
	}
	for {
		b, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("frame %d: %v", len(out)+1, err)
		}
		out = append(out, frame{info.Timestamp.UnixNano(), b, info.Length})
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func loadConfig(t *testing.T, path string) *config.Config {
	t.Helper()
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parseConfig(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	return c
}

// run replays a capture file.
func run(t *testing.T, c *config.Config, path string, o replay.Options) *report.Report {
	t.Helper()
	capture, err := replay.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	r, err := replay.Run(c, capture, o)
	if err != nil {
		t.Fatalf("replay of %s: %v", path, err)
	}
	return r
}

// result is all that a replay gives.
type result struct {
	report                     *report.Report
	forwardedPcap, emittedPcap []byte
	taken, forwarded, emitted  []frame
	lost                       uint64 // dropped or consumed
}

// replayed runs a scenario and sees to it that every frame is accounted for.
func replayed(t *testing.T, s *scenario) *result {
	t.Helper()
	var forwarded, emitted bytes.Buffer
	r := run(t, parseConfig(t, s.config), s.path, replay.Options{Fabric: s.fabric, Forwarded: &forwarded, Emitted: &emitted})
	out := &result{
		report: r, forwardedPcap: forwarded.Bytes(), emittedPcap: emitted.Bytes(),
		taken: frames(t, readFile(t, s.path)), forwarded: frames(t, forwarded.Bytes()), emitted: frames(t, emitted.Bytes()),
	}
	received, sent, queued := total(r, "received_packets_total"), total(r, "forwarded_packets_total"), total(r, "queued_packets")
	out.lost = total(r, "dropped_packets_total") + total(r, "consumed_packets_total")
	switch err := r.Counters.Check(); {
	case err != nil:
		t.Error(err)
	case queued != 0:
		t.Errorf("%d frames are still queued, want none", queued)
	case received != uint64(len(out.taken)) || sent != uint64(len(out.forwarded)):
		t.Errorf("counted %d received and %d forwarded, but the captures hold %d and %d", received, sent, len(out.taken), len(out.forwarded))
	case total(r, "notifications_sent_total") != uint64(len(out.emitted)):
		t.Errorf("counted %d notifications, but the capture holds %d", total(r, "notifications_sent_total"), len(out.emitted))
	}
	return out
}

// total is a counter, or the sum of one over its label.
func total(r *report.Report, name string) uint64 {
	reading, ok := r.Counters[name]
	if !ok {
		panic("the report has no " + name)
	}
	return reading.Sum()
}

// truth is the JSON beside a capture of real traffic.
type truth struct {
	Family      int
	Connections []struct {
		ClientIP  string `json:"client_ip"`
		ServerIP  string `json:"server_ip"`
		ClientQPN uint32 `json:"client_qpn"`
		ServerQPN uint32 `json:"server_qpn"`
		Type      string
	}
}

// capture is one of testdata/captures.
type capture struct {
	name, path string
	truth      truth
}

func captures(t *testing.T) (all []capture) {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/captures/*.pcap")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures beside the tests: %v", err)
	}
	for _, p := range paths {
		c := capture{name: strings.TrimSuffix(filepath.Base(p), ".pcap"), path: p}
		if err := json.Unmarshal(readFile(t, strings.TrimSuffix(p, ".pcap")+".json"), &c.truth); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		all = append(all, c)
	}
	return all
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }
