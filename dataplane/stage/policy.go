package stage

import (
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/proxy"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// Role of a port.
type Role uint8

const (
	Fabric Role = iota // the data centre's side
	WAN                // the other side
)

// String is the role's name in configurations and reports.
func (r Role) String() string {
	if r > WAN {
		return "unknown"
	}
	return [...]string{Fabric: "fabric", WAN: "wan"}[r]
}

// PortConfig describes a port.
type PortConfig struct {
	Role         Role
	Peer         int    // the port that its frames are sent to
	egress.Queue        // at the start; memory is reserved for its Frames
	Classes      int    // 1 to MaxClasses; class 0 goes first
	Paced        uint64 // bytes of frames that pacing may hold at each worker, in front of the queue; 0: none

	// Address is the MAC address at which the port's neighbors reach the gateway; zero: a locally administered one of the port's number.
	Address packet.MAC

	// Tap is a mirror port, which only receives: frames that would leave by it are consumed.
	Tap bool

	FlowControl *link.FlowControl // nil: PAUSE and PFC frames of the link are consumed, and none is sent
}

// Policy has the parameters that an operator may change while the gateway runs. It is an immutable snapshot; a burst uses only one.
type Policy struct {
	Ports []PortPolicy // by port
	Who   *congestion.Policy
	Build cnpgen.Gateway
	QPMap *pairing.QPMap // the operator's pairs of QPs, nil for none

	// Proxies are notified instead of the senders behind them; nil: none.
	Proxies *proxy.Senders

	// Extension are the Extension Objects of Long-haul CNPs, nil for none; with Timestamp, they have the time of sending.
	Extension *cnpgen.Extension
	Timestamp bool

	// With Observe the gateway decides and counts everything, but sends and marks nothing; ObserveKind does the same for notifications of
	// one kind, and PortPolicy.Observe for the queue of one port.
	Observe     bool
	ObserveKind [packet.SentNotifications]bool

	// With Drain no sender is asked to slow down any more, and those that were asked get their Resume at once.
	Drain bool

	PerDestination ratelimit.Rate // notifications towards one sender
	PerProxy       ratelimit.Rate // notifications towards one proxy, of all its senders together
	PerPort        ratelimit.Rate // notifications out of one port (draft-tian 9: a global limit a port)

	Domain *Domain     // nil: no domain is set
	Proxy  *host.Proxy // nil: the gateway is no proxy

	Reflects []packet.Addr // whose STAMP test packets are answered, a few at most
}

// PortPolicy is the part of the policy that belongs to a port's queue.
type PortPolicy struct {
	congestion.Response
	Observe      bool // as Policy.Observe, for this port
	Law          congestion.Law
	PerFlow      ratelimit.Interval // between notifications for one flow that congests this port
	PerFlowIsRTT bool               // PerFlow is RTT_est, if that is known

	Trust   congestion.Trust        // in passive samples
	RTTFrom congestion.RTTPolicy    // where RTT_est comes from; Response.RTT is the configured one
	Sizing  congestion.Sizing       // of the thresholds, if RTT_est is measured or they are adjusted
	Adjust  congestion.AdjustPolicy // of the queue's parameters
	STAMP   host.STAMPSession
	Queue   *egress.Queue // nil: as the PortConfig says

	Pacing *congestion.Pacing // of frames that leave by this port, by host, or by flow at a WAN port; nil: none is paced
	// FabricHosts are the hosts of the data centre, if the port is a mirror port of both directions: what they send comes from the fabric.
	FabricHosts *prefix.Table[struct{}]
	// Enforce are the senders whose flows are paced at this WAN port as notifications to these senders ask; nil: none.
	Enforce *prefix.Table[struct{}]

	// Only in the present policy: Response.RTT comes from RTTSource, and the adjusted parameters have this Percent.
	RTTSource congestion.RTTSource
	Percent   int
}

// ObservesAt reports whether nothing is sent, marked or held because of a port's queue.
func (p *Policy) ObservesAt(port int) bool { return p.Observe || p.Ports[port].Observe }

// Observes reports whether notifications of a kind about a port's queue are only counted.
func (p *Policy) Observes(port int, f packet.Notification) bool {
	return p.ObservesAt(port) || p.ObserveKind[f]
}

// Owns reports whether an address is the gateway's own.
func (p *Policy) Owns(a packet.Addr) bool { return p.Build.Owns(a) || p.Proxy.Owns(a) }

// Validate returns an error if workers can't use a policy for these ports.
func (p *Policy) Validate(ports []PortConfig) error {
	if p == nil || len(p.Ports) != len(ports) {
		return fmt.Errorf("a dataplane needs a policy for each port, %d of them", len(ports))
	}
	for i := range p.Ports {
		if err := validateQueue(p.Ports[i].Queue, ports, i); err != nil {
			return fmt.Errorf("port %d: %w", i, err)
		}
		r := &p.Ports[i].Response
		if len(r.Ladder) == 0 || r.Ladder[0].Level != 0 {
			return fmt.Errorf("port %d: %d rungs: expected a ladder from level 0 on", i, len(r.Ladder))
		}
	}
	return nil
}

// validateQueue returns an error if a port can't have this queue: the memory for its frames is reserved, and the thresholds of lossless
// classes stay.
func validateQueue(q *egress.Queue, ports []PortConfig, port int) error {
	if q == nil {
		return nil
	}
	own := &ports[port]
	if err := q.Validate(own.Classes); err != nil {
		return err
	}
	if q.Frames > own.Frames {
		return fmt.Errorf("a queue of %d frames, expected at most %d, which memory is reserved for", q.Frames, own.Frames)
	}
	peer := &ports[own.Peer]
	return peer.FlowControl.Validate(peer.Classes, own.Classes, q)
}

// Domain is the domain filter (draft fast-cnp-05 5, draft proxy-03 6, draft-tian 9): a notification that arrives on a WAN port must have a
// known source, one that leaves by it must have a member as destination. A frame that may hide a notification (packet.MayHide) is dropped
// in both directions. Standard CNPs always pass, since receivers send them. A nil Domain drops nothing.
type Domain struct {
	members, sources *prefix.Table[struct{}]
	observe          bool // count what it would drop, and drop nothing
}

// NewDomain makes the policy of a domain, which drops frames, or with observe only counts them.
func NewDomain(members, sources []netip.Prefix, observe bool) *Domain {
	return &Domain{members: prefix.Set(members), sources: prefix.Set(sources), observe: observe}
}

// Stops reports whether to drop a frame that arrived on a port of the given role, and under which counter: a notification that may not
// cross, or a frame that may hide one, whatever its addresses. Frames from a fabric port leave by a WAN port. b is the frame.
func (d *Domain) Stops(role Role, note packet.Notification, b []byte, p *packet.Parsed, c *packet.CodePoints) (counters.Counter, bool) {
	switch {
	case note == packet.NotANotification, note == packet.StandardCNP:
		return unclassified(role), packet.MayHide(b, p, c)
	case role == WAN:
		return counters.DroppedDomainIn, !d.From(p)
	}
	return counters.DroppedDomainOut, !d.to(b, p)
}

// OnlyObserves reports whether the filter lets a frame pass that it stops, and then counts it.
func (d *Domain) OnlyObserves(c *counters.Ports, port int, reason counters.Counter) bool {
	if d.observe {
		c.Add(port, counters.DomainObservedFirst+reason-counters.DroppedDomainIn, 1)
	}
	return d.observe
}

func unclassified(role Role) counters.Counter {
	if role == WAN {
		return counters.DroppedDomainUnclassifiedIn
	}
	return counters.DroppedDomainUnclassifiedOut
}

// From reports whether a notification has a known source. An IPv4-mapped address, which a table would confuse with an IPv4 host's, never
// matches, as source or destination.
func (d *Domain) From(p *packet.Parsed) bool {
	_, known := d.sources.Lookup(p.Src)
	return known && !p.IPv4Mapped()
}

// to reports whether a notification is for a member. If the member would forward it to another host, it isn't.
func (d *Domain) to(b []byte, p *packet.Parsed) bool {
	_, member := d.members.Lookup(p.Dst)
	return member && !p.IPv4Mapped() && !packet.SourceRouted(b, p)
}
