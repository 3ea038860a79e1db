// Package config reads cnpgate's configuration: one strict YAML file becomes one immutable, fully resolved snapshot, or an error that
// lists every mistake with file, line and column. The snapshot consists of the types that use it: those of the dataplane, and the few below.
// Defaults are filled in, names are replaced by indices and the queue thresholds are calculated here, so that users of a snapshot need no
// defaults. The package reads only the given file: it opens no device, reads no clock and has no state.
//
// A section of the file is a struct whose tags declare its keys (schema.go; internal/yamldoc explains the tags): form, default, bounds, and what a
// change of it needs. Parsing, errors with positions, the JSON Schema, the effective configuration and the reload class of a change come from one walk
// over these structs. What remains here are the rules between keys and what is calculated of them, a file a section, beginning at resolve.
// docs/configuration.md describes the keys, and a test compares the two.
package config

import (
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
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
	Warnings   []Problem

	doc  *yamldoc.Document // that it comes from
	root *yamldoc.Node
	file *document
}

type (
	// Error is all that is wrong with a file.
	Error = yamldoc.Error
	// Problem is one mistake.
	Problem = yamldoc.Problem
	// Position is where it is.
	Position = yamldoc.Position
)

// DPDK has the settings of the environment abstraction layer (EAL) and of the workers' polling.
type DPDK struct {
	Hugepages bool     `key:"hugepages" default:"true"`
	InMemory  bool     `key:"in_memory" default:"false"`
	EALArgs   []string `key:"eal_args"`                                                              // passed unchanged, after the gateway's own
	Workers   []int    `key:"workers" default:"[1]" items:"1" min:"0" max:"1023" unique:"this core"` // cores, one worker each
	Burst     int      `key:"burst" default:"32" min:"1" max:"64"`                                   // frames per port and direction in one cgo call
	// Backoff: an idle worker sleeps after empty polls; else it never does.
	Backoff bool `key:"idle" default:"poll" one:"poll|backoff" because:"the default reaction of flow_control, and with it the headroom, depends on it"`
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
	Source        netip.Addr `key:"source_ip" required:"yes"`
	Destination   netip.Addr `key:"destination_ip" required:"yes"`
	SourceQP      uint32     `key:"source_qp" required:"yes" min:"2" max:"16777214"`
	DestinationQP uint32     `key:"destination_qp" required:"yes" min:"2" max:"16777214"`
	// Tags and Tunnel are of the connection; "" for both: whichever is the only one with such flows.
	Tags   string `key:"tags" form:"tags"`
	Tunnel string `key:"tunnel" form:"tunnel"`
}

// ScopePair is the VLANs or tunnels of the two directions of some connections; "" for none.
type ScopePair struct {
	Tags        string `key:"tags" form:"tags"`
	Tunnel      string `key:"tunnel" form:"tunnel"`
	OtherTags   string `key:"other_tags" form:"tags"`
	OtherTunnel string `key:"other_tunnel" form:"tunnel"`
}

// Management has the addresses of the API and the metrics; "" for none.
type Management struct {
	Socket   string `key:"listen" form:"listener"` // path of the API's Unix socket
	Metrics  string `key:"metrics" form:"socket"`  // address and port for Prometheus
	IPFIX    string `key:"ipfix" form:"socket"`    // address and UDP port of a collector of flow records
	Web      *Web   `key:"web" absent:"off"`       // nil: no page
	LogLevel string `key:"log_level" default:"info" one:"debug|info|warn|error"`
	// LogFormat is "" if it is as it suits where the log goes.
	LogFormat string `key:"log_format" one:"text|json" reload:"restart" because:"the log is opened before everything else"`
	Sandbox   string `key:"sandbox" default:"enforce" one:"enforce|audit|off" reload:"restart" because:"a process can't leave it"`
}

// Web is where the gateway serves its page, and what protects it: without Certificate, HTTP without TLS.
type Web struct {
	Listen      string `key:"listen" form:"socket" required:"given" expects:"an address and a port, such as 127.0.0.1:8420, or no web section for no page"`
	Certificate string `key:"certificate" form:"file" expects:"/etc/cnpgate/web-certificate" with:"key"`
	Key         string `key:"key" form:"file" expects:"/etc/cnpgate/web-key" with:"certificate"`
	TokenFile   string `key:"token_file" form:"file" expects:"/etc/cnpgate/web-token_file"`
}

// Bypass is the heartbeat to a device that connects the two sides past the gateway once the heartbeat stops.
type Bypass struct {
	File        string        `key:"file" form:"file" expects:"/sys/class/gpio/gpio17/value or /dev/watchdog1"` // "": Command
	Values      []string      `key:"values" default:"['1', '0']" items:"1" most:"2"`                            // written to File in turn
	Command     []string      `key:"command" items:"1" most:"16" without:"file"`                                // run at each beat
	Interval    time.Duration `key:"interval" default:"100ms" min:"10ms" max:"10s"`                             // between two beats
	WorkersOnly bool          `key:"requires" default:"ports" one:"ports|workers"`                              // the heartbeat goes on while a port doesn't forward
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
