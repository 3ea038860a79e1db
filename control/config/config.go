// Package config reads cnpgate's configuration: one strict YAML file becomes one immutable, fully resolved snapshot, or an error that
// lists every mistake with file, line and column. Defaults are filled in, names are replaced by indices and the queue thresholds
// are calculated here, so that users of a snapshot need no defaults. It reads only the given file: it opens no device, reads no
// clock and has no state. The keys are declared once, in schema.go; docs/configuration.md describes them, and a test compares the
// two.
package config

import (
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/lossless"
	"github.com/cnpgate/cnpgate/proxy"
)

// Config is one snapshot. It is immutable, so goroutines share it without locks. Changes lists the differences between two.
type Config struct {
	File          File
	Gateway       Gateway
	DPDK          DPDK
	Ports         []Port // at least two, in the file's order
	Flows         Flows
	Endpoints     []Endpoint // in the file's order; the longest prefix that contains an address applies
	Notifications Notifications
	QPMap         []QPPair
	Proxy         Proxy
	Domain        *Domain // nil: no domain filter
	Management    Management
	Bypass        *Bypass // nil: no heartbeat
	Warnings      []Warning

	document *document // that it comes from
}

// Gateway is the gateway itself. Its addresses are the sources of its notifications.
type Gateway struct {
	Name       string
	IPv4, IPv6 netip.Addr   // the zero Addr if the file has none
	STAMPPeers []netip.Addr // whose STAMP test packets are answered
}

// DPDK has the settings of the environment abstraction layer (EAL) and of the workers' polling.
type DPDK struct {
	Hugepages, InMemory bool
	EALArgs             []string // passed unchanged, after the gateway's own
	Workers             []int    // cores, one worker each; at least one
	Burst               int      // frames per port and direction in one cgo call, 1 to 64
	Idle                Idle
}

// Port is one port with the parameters of its egress queue.
type Port struct {
	Name, Device  string
	Role          Role
	Peer          int           // index in Config.Ports of the port by which this one's frames leave
	Rate          uint64        // bit/s on the line: each frame counts its bytes + 24
	RTT           time.Duration // 0: not known
	MTU           int           // bytes of an IP packet
	QueueCapacity uint64        // bytes of frames without FCS, for each class; above KMax
	QueueFrames   int           // frames a class may hold: QueueCapacity / 1024, at least 64
	Classes       []Class       // highest priority first; every DSCP is in exactly one
	KMin, KMax    uint64        // bytes; draft-tian 5.3.2; 0 < KMin < KMax
	Response      congestion.Response
	Law           congestion.Law // off: mode thresholds, or a fabric port
	PerFlow       time.Duration  // least time between two notifications of one flow; 0: no limit
	PerFlowIsRTT  bool           // it follows RTT_est, because the file gives none
	RTTFrom       congestion.RTTPolicy
	STAMP         STAMP
	Sizing        congestion.Sizing       // of the thresholds
	Adjust        congestion.AdjustPolicy // of the port's response
	Pacing        *congestion.Pacing      // of frames to hosts behind the port that have sent a CNP, or of flows of Enforce; nil: none
	Paced         uint64                  // bytes of frames that pacing may hold back
	Tap           bool                    // a mirror port of the side Role, which never transmits
	FabricHosts   []netip.Prefix          // of a mirror port of both directions: what these hosts send comes from the fabric
	Enforce       []netip.Prefix          // senders whose flows a WAN port paces as notifications to them ask
	FlowControl   *FlowControl            // nil: the port ignores PAUSE and PFC, and sends no PFC
}

// STAMP is a STAMP session (RFC 8762) that measures the path behind a port.
type STAMP struct {
	Peer     netip.Addr    // the zero Addr: no session
	Interval time.Duration // between test packets
}

// Class is a traffic class of a port's egress queue.
type Class struct {
	Name string
	DSCP uint64 // bit n set: the class takes DSCP n
	// Priority is the PFC priority of the class, 0 to 7, or -1: only PAUSE stops the class.
	Priority int
	Lossless *lossless.Thresholds // nil: the class isn't lossless
}

// FlowControl is a port's part in the flow control of its link (IEEE 802.3 31B, IEEE 802.1Q 36).
type FlowControl struct {
	Link     lossless.Link // Shared is 0
	Limit    time.Duration // longest time for which the gateway stops the other end without interruption
	Watchdog lossless.Watchdog
}

// Flows sizes the flow table.
type Flows struct {
	Capacity int           // entries
	Paired   int           // flows that are paired at a time
	Aging    time.Duration // a flow without packets for this long is removed
}

// Endpoint has the formats that the hosts of a prefix accept.
type Endpoint struct {
	Prefix  netip.Prefix
	Accepts []Format // in order of preference; empty: these hosts are never notified
}

// Notifications has the formats that may be sent to endpoints that accept them.
type Notifications struct {
	Observe bool // decide and count, but don't send or mark
	// ObserveKind are the kinds that are counted instead of sent.
	ObserveKind [packet.SentNotifications]bool
	DSCP        uint8
	FlowPKey    bool // CNPs have the flow's P_Key, not 0xFFFF (draft-tian 6.2.3)
	FastCNP     FastCNPConfig
	LongHaul    LongHaulConfig
	PPFC        bool // enabled
	Standard    bool // standard CNP enabled
	Limits      Limits
}

// FastCNPConfig is Fast CNP (rocev2-fast-cnp-05).
type FastCNPConfig struct {
	Enabled              bool
	OptionType           uint8 // of Destination option 1; its high bits are act 10, chg 0
	TraceOptionType      uint8 // of option 2, which carries an IOAM trace; by default that of option 1
	ICRCExtensionHeaders bool  // the ICRC covers IPv6 extension headers; no specification defines whether it does
}

// LongHaulConfig is Long-haul CNP in both its formats (draft-tian 6).
type LongHaulConfig struct {
	Enabled         bool
	ICMPv6Type      uint8
	ExtensionClass  uint8 // Class-Num of Extension Objects (draft-tian 10.3)
	ReducePercent   uint8 // Parameter of the action Rate Reduce (draft-tian 5.5.1)
	DiscloseMetrics bool  // false: Metric Type and Congestion Metric Value are 0 (draft-tian 9)
	// Extension Objects (draft-tian 6.1.1): whether the time of sending is included; identifiers of the gateway and of the path, "" for none.
	Timestamp    bool
	Device, Path string
}

// Limits bounds the notifications sent; the least interval of a flow is in Port.PerFlow.
type Limits struct {
	PerDestination, PerPort uint64 // per second; 0: no limit
}

// QPPair is a connection that the operator configured: packets from Source to QP DestinationQP at Destination come from QP SourceQP,
// and vice versa.
type QPPair struct {
	Source, Destination     netip.Addr
	SourceQP, DestinationQP uint32 // 24 bits
	Tags, Tunnel            string // of the connection, as in a file; "" for both: whichever is the only one with such flows
}

// Proxy has the settings of notifications to proxies. A proxy notifies senders behind it in a format that they accept (draft-xiao-proxy).
type Proxy struct {
	Enabled  bool           // this gateway notifies the proxies of Senders, and is itself one for notifications from Sources
	Port     uint16         // UDP port at which proxies listen; valid also if they are not enabled
	Senders  []proxy.Sender // in the file's order
	PerProxy uint64         // notifications to one proxy a second; 0: no limit
	// Listen is the address that receives notifications; the zero Addr: the gateway's addresses.
	Listen  netip.Addr
	Sources []netip.Prefix // whose notifications are accepted; none: the gateway is no proxy
	// PerSource and Received bound the notifications that are accepted a second, from one source and from all; 0: no limit.
	PerSource, Received uint64
	BGP                 *BGP   // nil: no BGP
	OSPF                *OSPF  // nil: no OSPF
	OSPF6               *OSPF6 // nil: no OSPFv3
}

// Domain is the domain filter: which notifications may pass a WAN port inwards and outwards.
type Domain struct {
	Observe             bool           // count what the filter would drop, and drop nothing
	Members             []netip.Prefix // allowed destinations of notifications that leave
	NotificationSources []netip.Prefix // allowed sources of notifications that arrive
}

// Management has the addresses of the API and the metrics.
type Management struct {
	Socket  string // path of the API's Unix socket; empty: no API
	Metrics string // address and port for Prometheus; empty: none
	// LogLevel is the lowest level that is logged: debug, info, warn or error.
	LogLevel string
}

// Role is the side a port is on.
type Role uint8

const (
	Fabric Role = iota // the data centre
	WAN                // the other side
)

// Idle is what an idle worker does.
type Idle uint8

const (
	Poll    Idle = iota // never sleeps
	Backoff             // sleeps after empty polls
)

// The words of notifications.mode.
const (
	ModeSend    = "send"
	ModeObserve = "observe"
)

// Modes are both.
var Modes = []string{ModeSend, ModeObserve}

// LogLevels are the levels of the log, the lowest first.
var LogLevels = []string{"debug", "info", "warn", "error"}

// Format is a kind of notification that an endpoint may accept.
type Format = packet.Notification

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
