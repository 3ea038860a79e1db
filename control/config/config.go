// Package config reads cnpgate's configuration: one strict YAML file becomes one immutable, fully resolved snapshot, or an error that
// lists every mistake with file, line and column. Defaults are filled in, names are replaced by indices and the queue thresholds
// are calculated here, so that no reader of a snapshot has to know a default. It reads the one file it is given and nothing else:
// it opens no device, asks no clock and keeps no state. The keys are declared once, in schema.go; docs/configuration.md describes
// them, and a test keeps the two in step.
package config

import (
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
)

// Config is one snapshot. It is never changed once made, so goroutines share it without locks. Two snapshots are compared with
// reflect.DeepEqual; set Warnings aside first, which hold positions in the file.
type Config struct {
	Gateway       Gateway
	DPDK          DPDK
	Ports         []Port // at least two, in the file's order
	Flows         Flows
	Endpoints     []Endpoint // in the file's order; the longest prefix that contains an address decides
	Notifications Notifications
	QPMap         []QPPair
	Proxy         Proxy
	Domain        *Domain // nil: no border policy
	Management    Management
	Warnings      []Warning
}

// Gateway is the box itself. Its addresses are the source of the notifications it makes.
type Gateway struct {
	Name       string
	IPv4, IPv6 netip.Addr // the zero Addr where the file gives none
}

// DPDK is how the environment abstraction layer starts and how the workers poll.
type DPDK struct {
	Hugepages, InMemory bool
	EALArgs             []string // passed on as they are, after the gateway's own
	Workers             []int    // cores, one worker each; at least one
	Burst               int      // frames a port and direction in one crossing, 1 to 64
	Idle                Idle
}

// Port is one port with all that its egress queue needs.
type Port struct {
	Name, Device  string
	Role          Role
	Peer          int           // index in Config.Ports of the port that this one's frames leave by
	Rate          uint64        // bit/s on the line: each frame counts its octets + 24
	RTT           time.Duration // 0: not known
	MTU           int           // octets of an IP packet
	QueueCapacity uint64        // octets of frames without FCS, for each class; above KMax
	QueueFrames   int           // frames a class may hold: QueueCapacity / 1024, at least 64
	Classes       []Class       // highest priority first; every DSCP is in exactly one
	KMin, KMax    uint64        // octets; draft-tian 5.3.2; 0 < KMin < KMax
	PerFlow       time.Duration // least time between two notifications of one flow; 0: no limit
}

// Class is a traffic class of a port's egress queue.
type Class struct {
	Name string
	DSCP uint64 // bit n set: the class takes DSCP n
}

// Flows sizes the flow table.
type Flows struct {
	Capacity int           // entries
	Paired   int           // flows whose source QP is looked for at a time
	Aging    time.Duration // a flow not seen for this long is forgotten
}

// Endpoint says what the hosts of a prefix understand.
type Endpoint struct {
	Prefix  netip.Prefix
	Accepts []Format // in order of preference; empty: these hosts are never told anything
}

// Notifications says what may be sent to endpoints that accept it.
type Notifications struct {
	DSCP     uint8
	FastCNP  FastCNPConfig
	LongHaul LongHaulConfig
	Limits   Limits
}

// FastCNPConfig is Fast CNP (rocev2-fast-cnp-05).
type FastCNPConfig struct {
	Enabled              bool
	OptionType           uint8 // of Destination option 1; its high bits are act 10, chg 0
	TraceOptionType      uint8 // of option 2, which carries an IOAM trace; the same unless configured
	ICRCExtensionHeaders bool  // the ICRC covers IPv6 extension headers, which no specification says or denies
}

// LongHaulConfig is Long-haul CNP in both its formats (draft-tian 6).
type LongHaulConfig struct {
	Enabled         bool
	ICMPv6Type      uint8
	ExtensionClass  uint8 // Class-Num of Extension Objects (draft-tian 10.3)
	ReducePercent   uint8 // Parameter of the action Rate Reduce (draft-tian 5.5.1)
	DiscloseMetrics bool  // false: Metric Type and Congestion Metric Value are 0 (draft-tian 9)
}

// Limits bounds the notifications sent; the least interval of a flow is in Port.PerFlow.
type Limits struct {
	PerDestination, PerPort uint64 // a second; 0: no limit
}

// QPPair ties a flow to its reverse by hand: packets from Source to QP DestinationQP at Destination come from QP SourceQP, and
// the other way round.
type QPPair struct {
	Source, Destination     netip.Addr
	SourceQP, DestinationQP uint32 // 24 bits
}

// Proxy is what is known of the domain's notification proxies.
type Proxy struct {
	Port uint16 // UDP port that they listen at
}

// Domain is the border: which notifications may pass a WAN port inward and outward.
type Domain struct {
	Members             []netip.Prefix // destinations that notifications may leave to
	NotificationSources []netip.Prefix // sources that notifications may come in from
}

// Management is where the gateway is asked.
type Management struct {
	Socket string // path of the API's Unix socket; empty: no API
}

// Role is the side a port is on.
type Role uint8

const (
	Fabric Role = iota // the data centre
	WAN                // the other side
)

// Idle is what a worker does when there is nothing to do.
type Idle uint8

const (
	Poll    Idle = iota // never sleeps
	Backoff             // sleeps after empty polls
)

// Format is a kind of notification that an endpoint may accept.
type Format = congestion.Format

var (
	roleNames = []string{"fabric", "wan"}
	idleNames = []string{"poll", "backoff"}
)

// String gives the name the configuration uses.
func (r Role) String() string { return nameOf(roleNames, int(r)) }

// String gives the name the configuration uses.
func (i Idle) String() string { return nameOf(idleNames, int(i)) }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
