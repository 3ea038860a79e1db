package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnpgate/cnpgate/congestion"
)

// gatewaySetup has the parameters of the gateway's program.
type gatewaySetup struct {
	Workers   []int
	MainCore  int
	Hugepages bool
	Burst     int
	Devices   []string
	Room      int
	Frames    int    // of the captures
	Kept      int    // of these, in the gateway's buffers
	Flows     int    // a worker's
	Law       bool   // the control law responds, not thresholds
	Respond   string // to every packet: "mark", "notify", or nothing
	QPMap     string // file with the qp_map section
	Accepts   string // format that the senders are notified in
	Payload   int    // of the frames on a wire
	NoHealth  bool   // no connection's health is followed
	API       string // path of the API's socket
	Asked     bool   // the API is asked for what a page shows
	Fleet     string // the configuration's section, "" for none
	Short     bool   // measure at once: a run that only shows that it works, or on devices that cost more than what settles
	Profile   string // file for a CPU profile of the runs, "" for none
}

// thresholds are the configuration's own, which no packet crosses, or thresholds that every packet crosses.
func (s *gatewaySetup) thresholds(own congestion.Thresholds) congestion.Thresholds {
	switch s.Respond {
	case "mark":
		return congestion.Thresholds{KMin: 0, KMax: 1 << 60}
	case "notify":
		return congestion.Thresholds{}
	}
	return own
}

// yaml is the configuration: lines faster than any core, queues with space for many bursts.
func (s *gatewaySetup) yaml(qpMap string) string {
	followed := 1024 // the default
	if s.NoHealth {
		followed = 0
	}
	profile := "mode: thresholds, k_base: 4MiB"
	if s.Law {
		profile = "mode: law"
	}
	text := fmt.Sprintf(`gateway: {name: bench, ipv4: 198.18.255.1, ipv6: "fd00::1"}
dpdk: {hugepages: %v, in_memory: %v, workers: %s, burst: %d}
profiles: {default: {%s}}
flows: {capacity: %d, followed: %d}
ports:
`, s.Hugepages, s.Hugepages, list(s.Workers), s.Burst, profile, max(1<<20, s.Flows), followed)
	for i, role := range []string{"fabric", "wan"} {
		text += fmt.Sprintf("  - {name: %s, device: %q, role: %s, peer: %s, rate: 10Tbps, mtu: %d, queue_capacity: 8MiB}\n",
			role, s.Devices[i], role, []string{"wan", "fabric"}[i], max(s.Room-frameHead, 576))
	}
	if s.Accepts != "" {
		prefix := "fd00:a::/32"
		if s.Accepts == "long-haul-cnp" {
			prefix = "10.0.0.0/8"
		}
		text += fmt.Sprintf(`endpoints: [{prefix: %q, accepts: [%s]}]
notifications:
  fast_cnp: {enabled: %v}
  long_haul_cnp: {enabled: %v}
  limits: {per_flow: 0s, per_destination: 0/s, per_port: 0/s}
`, prefix, s.Accepts, s.Accepts == "fast-cnp", s.Accepts != "fast-cnp")
	}
	if s.API != "" {
		text += fmt.Sprintf("management: {listen: %q}\n", "unix:"+s.API)
	}
	return text + s.Fleet + qpMap
}

func list(numbers []int) string { return strings.ReplaceAll(fmt.Sprint(numbers), " ", ", ") }

// gatewayOf starts cnpgate on a layout.
func (b *bench) gatewayOf(l *layout, change func(*gatewaySetup)) (*process, error) {
	s := gatewaySetup{
		Workers: []int{b.core}, MainCore: b.mainCore, Hugepages: b.hugepages, Burst: b.burst, Room: l.room,
		Devices: l.devices, Frames: l.frames, Kept: l.kept, Flows: l.flows,
	}
	if l.qpMap != "" {
		s.QPMap = filepath.Join(b.dir, "qpmap.yaml")
		if err := os.WriteFile(s.QPMap, []byte(l.qpMap), 0o600); err != nil {
			return nil, err
		}
	}
	if change != nil {
		change(&s)
	}
	if b.profiles != "" {
		s.Profile = filepath.Join(b.profiles, l.name+".pprof")
	}
	return b.child("gateway", &s, l.environment()...)
}

// child starts this program as a process that runs cnpgate's code, behind the arguments of a program that starts it.
func (b *bench) child(command string, s *gatewaySetup, behind ...string) (*process, error) {
	s.Short = s.Short || b.short
	setup, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return startChild("cnpgate", append(behind, b.self, command, string(setup))...)
}
