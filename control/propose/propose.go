package propose

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/netif"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Plan is what is known before any frame is seen.
type Plan struct {
	Command     string // that makes the proposal, for the file's first line
	Name        string // of the gateway
	Fabric, WAN netif.Facts
	Tap         bool           // the interfaces receive mirrored frames
	Hosts       []netip.Prefix // of the fabric, if Fabric is a mirror port of both directions and there is no other; else nil
	Rate        uint64         // bit/s of the line behind the WAN port; 0: that of the interface
	Core        int            // of the worker
	Socket      string         // of the API
}

// unknownRate is proposed for an interface that doesn't tell its rate (bit/s).
const unknownRate = 10e9

// Proposal is a configuration that grows with what is seen.
type Proposal struct {
	Plan
	fabric, wan *side
	listened    time.Duration
	live        *replay.Live
	result      *report.Report // nil if nothing was seen
	lost        uint64
	parsed      packet.Parsed
}

// New starts a proposal. The caller must call End.
func New(p Plan) *Proposal { return &Proposal{Plan: p, fabric: newSide(), wan: newSide()} }

// Add notes a frame, and runs it through a dataplane that is configured as proposed so far. The frame's time counts from the first one.
func (p *Proposal) Add(fromFabric bool, first time.Time, f capturefile.Frame) error {
	if p.live == nil {
		cfg, err := config.Parse("the proposal", []byte(p.YAML()))
		if err != nil {
			return fmt.Errorf("the proposal isn't a valid configuration, which is a bug in cnpgate; please report it: %w", err)
		}
		if p.live, err = replay.NewLive(cfg, first, max(len(f.Octets), netif.Captured)); err != nil {
			return err
		}
	}
	if p.Hosts != nil {
		packet.Parse(f.Octets, f.Length, &p.parsed)
		fromFabric = slices.ContainsFunc(p.Hosts, func(hosts netip.Prefix) bool { return hosts.Contains(p.parsed.Src.Netip().Unmap()) })
	}
	if fromFabric {
		p.fabric.add(f.Octets, f.Length)
	} else {
		p.wan.add(f.Octets, f.Length)
	}
	return p.live.Add(fromFabric, f)
}

// End says how long frames were seen, and how many were lost before they could be. It returns the configuration and its summary.
func (p *Proposal) End(listened time.Duration, lost uint64) (yaml string, said []string, err error) {
	p.listened, p.lost = listened, lost
	if p.live != nil {
		if p.result, err = p.live.End(); err != nil {
			return "", nil, err
		}
	}
	yaml = p.YAML()
	if _, err := config.Parse("the proposal", []byte(yaml)); err != nil {
		return "", nil, fmt.Errorf("the proposal isn't a valid configuration, which is a bug in cnpgate; please report it: %w", err)
	}
	return yaml, p.said(), nil
}

// rtt is the round-trip time over the WAN that the dataplane has measured, 0 for none.
func (p *Proposal) rtt() time.Duration {
	if p.result == nil {
		return 0
	}
	for i := range p.result.Ports {
		if port := &p.result.Ports[i]; port.Role == dataplane.WAN.String() && port.RTTSource == "passive" {
			return time.Duration(port.RTTNanoseconds)
		}
	}
	return 0
}
