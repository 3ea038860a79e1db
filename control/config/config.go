// Package config reads cnpgate's configuration: one strict YAML file becomes one immutable, fully resolved snapshot, or an error that
// lists every mistake with file, line and column. The snapshot consists of the types that use it: those of the dataplane, and the few below.
// Defaults are filled in, names are replaced by indices and the queue thresholds are calculated here, so that users of a snapshot need no
// defaults. The package reads only the given file: it opens no device, reads no clock and has no state. The keys are declared once, in
// schema.go; docs/configuration.md describes them, and a test compares the two.
package config

import (
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/proxy"
)

// Config is one snapshot. It is immutable, so goroutines share it without locks. Changes lists the differences between two.
type Config struct {
	File  File
	Name  string // of the gateway
	DPDK  DPDK
	Ports []Port // at least two, in the file's order
	// Dataplane has the sizes of all workers' tables together, and the policy without its Ports, QPMap and Proxies; package assemble adds the rest.
	Dataplane  dataplane.Config
	Endpoints  []Endpoint // in the file's order; Policy.Who has them too
	QPMap      []QPPair
	Scopes     []ScopePair    // of the two directions of connections
	Senders    []proxy.Sender // in the file's order; notifications to a proxy are enabled in Policy.Who
	BGP        *BGP           // nil: no BGP
	OSPF       *OSPF          // nil: no OSPF
	OSPF6      *OSPF6         // nil: no OSPFv3
	Management Management
	Bypass     *Bypass // nil: no heartbeat
	Fleet      *Fleet  // nil: the gateway is alone
	Warnings   []Warning

	document *document // that it comes from
}

// DPDK has the settings of the environment abstraction layer (EAL) and of the workers' polling.
type DPDK struct {
	Hugepages, InMemory bool
	EALArgs             []string // passed unchanged, after the gateway's own
	Workers             []int    // cores, one worker each; at least one
	Burst               int      // frames per port and direction in one cgo call, 1 to 64
	Backoff             bool     // an idle worker sleeps after empty polls; else it never does
}

// Port is one port with its egress queue and the queue's part of the policy. Paced is that of all workers together. Frames, at least 64, is a
// frame for each KiB of the queue.
type Port struct {
	Name, Device string
	MTU          int      // bytes of an IP packet
	Bottleneck   string   // that it shares with other gateways'; "": none
	ClassNames   []string // of the queue's classes, the highest priority first
	dataplane.PortConfig
	Policy dataplane.PortPolicy // its Queue is nil: that of the PortConfig
}

// Endpoint has the formats that the hosts of a prefix accept. Without any, they are never notified.
type Endpoint = prefix.Entry[congestion.Preference]

// QPPair is a connection that the operator configured: packets from Source to QP DestinationQP at Destination come from QP SourceQP,
// and vice versa.
type QPPair struct {
	Source, Destination     netip.Addr
	SourceQP, DestinationQP uint32 // 24 bits
	Tags, Tunnel            string // of the connection, as in a file; "" for both: whichever is the only one with such flows
}

// ScopePair is the VLANs or tunnels of the two directions of some connections, as in a file; "" for none.
type ScopePair struct{ Tags, Tunnel, OtherTags, OtherTunnel string }

// Management has the addresses of the API and the metrics.
type Management struct {
	Socket  string // path of the API's Unix socket; empty: no API
	Metrics string // address and port for Prometheus; empty: none
	IPFIX   string // address and UDP port of a collector of flow records; empty: none
	Web     *Web   // nil: no page
	// LogLevel is the lowest level that is logged: debug, info, warn or error.
	LogLevel string
	// LogFormat is text or json; "": as it suits where the log goes.
	LogFormat string
	// Sandbox is enforce, audit or off.
	Sandbox string
}

// Web is where the gateway serves its page, and what protects it.
type Web struct {
	Listen           string // address and port
	Certificate, Key string // paths of PEM files; empty: HTTP without TLS
	TokenFile        string // path; empty: no token
}

// Bypass is the heartbeat to a device that connects the two sides past the gateway once the heartbeat stops.
type Bypass struct {
	File        string        // "": Command
	Values      []string      // written to File in turn
	Command     []string      // run at each beat
	Interval    time.Duration // between two beats
	WorkersOnly bool          // the heartbeat goes on while a port doesn't forward
}

// BGP has the settings of the BGP speaker, which announces and learns by which proxy senders are notified.
type BGP struct {
	AS       uint32
	RouterID netip.Addr // IPv4
	// IPv4 and IPv6 are the addresses of a kernel interface from which sessions are opened and at which they are accepted. The zero Addr: none.
	IPv4, IPv6     netip.Addr
	Port           uint16 // at which sessions are accepted; 0: none are
	Characteristic uint16 // code of the PNC characteristic
	Announce       []netip.Prefix
	// NextHopIPv4 and NextHopIPv6 are the next hops of the prefixes announced, by IP version. The zero Addr: no prefix of that version is announced.
	NextHopIPv4, NextHopIPv6 netip.Addr
	// ProxyIPv4 and ProxyIPv6 are the addresses at which this gateway receives notifications about the announced prefixes. At least one is set.
	ProxyIPv4, ProxyIPv6 netip.Addr
	Accept               []BGPAccept
	GracefulRestart      bool // routes of a peer that restarts stay for its restart time
	HoldTime             time.Duration
	ConnectRetry         time.Duration
	Peers                []BGPPeer
}

// BGPAccept accepts the prefixes within a prefix that are at most MaxLength bits long.
type BGPAccept struct {
	Prefix    netip.Prefix
	MaxLength int
}

// Accepts reports whether an entry accepts a prefix.
func (a *BGPAccept) Accepts(p netip.Prefix) bool {
	return a.Prefix.Bits() <= p.Bits() && p.Bits() <= a.MaxLength && a.Prefix.Contains(p.Addr())
}

// BGPPeer is a BGP neighbor.
type BGPPeer struct {
	Address      netip.Addr
	AS           uint32
	Port         uint16
	PasswordFile string // has the password of TCP-MD5 (RFC 2385); "" for none
	Passive      bool   // the peer opens the session
	Multihop     uint8  // TTL of packets to a peer of another AS that isn't on the link; 0: it is
	TTLSecurity  uint8  // hops at most to the peer (RFC 5082); 0: not checked
	IPv4, IPv6   bool   // families of prefixes exchanged
	MaxPrefixes  int    // of a family; the session ends if the peer sends more
}

// OSPF has the settings of the client of ospfd, which announces and learns by which proxy senders are notified.
type OSPF struct {
	API      netip.AddrPort // of ospfd: an IPv4 address
	Announce []netip.Prefix // IPv4
	// Proxy is the IPv4 address at which this gateway receives notifications about the announced prefixes. The zero Addr: it announces none.
	Proxy  netip.Addr
	Accept []BGPAccept // as of BGP
}

// OSPF6 has the settings of the client of ospf6d, which learns by which proxy senders are notified.
type OSPF6 struct {
	Socket   string // path of ospf6d's vty socket
	Interval time.Duration
	Proxy    netip.Addr // the gateway's IPv6 address as a proxy, from which it learns nothing; the zero Addr: none
	Accept   []BGPAccept
}

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
