// Package scenario reads scenarios (YAML) and runs them. A scenario has a topology, traffic, and the responses to congestion to compare.
// The package reads no file itself and starts no goroutine. docs/simulator.md describes the keys.
package scenario

import (
	"time"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// The schema: every key of a scenario, declared once. internal/yamldoc explains the tags.

type document struct {
	Name      string                        `key:"name" required:"yes"`
	Seed      int64                         `key:"seed" default:"1" min:"0" max:"9007199254740991"`
	Length    time.Duration                 `key:"length" required:"yes" min:"1us" max:"24h"`
	Sample    time.Duration                 `key:"sample" min:"100ns" max:"1h"`
	Topology  topologySection               `key:"topology" required:"yes"`
	Switches  switchesSection               `key:"switches"`
	Hosts     hostsSection                  `key:"hosts"`
	Gateways  yamldoc.Table[gatewaySection] `key:"gateways"`
	Fleet     fleetSection                  `key:"fleet"`
	Traffic   []trafficSection              `key:"traffic" required:"yes" items:"1" most:"64"`
	Responses []int                         `key:"responses" default:"[ecn, fast-cnp, long-haul-cnp, standard-cnp, fast-cnp-hpcc, ppfc]" items:"1" most:"8" one:"ecn|fast-cnp|long-haul-cnp|standard-cnp|fast-cnp-hpcc|ppfc|configured|proxy"`
}

type topologySection struct {
	Dumbbell dumbbellSection  `key:"dumbbell"`
	TwoDCs   twoDCsSection    `key:"two_dcs"`
	File     string           `key:"file"`
	Gateways []betweenSection `key:"gateways" most:"64"`
}

// dumbbellSection is senders at a switch, a chain of spans, and receivers at another switch.
type dumbbellSection struct {
	Senders   int64         `key:"senders" default:"8" min:"1" max:"4096"`
	Receivers int64         `key:"receivers" default:"1" min:"1" max:"4096"`
	Rate      uint64        `key:"rate" form:"rate" default:"100Gbps" min:"1Mbps" max:"10Tbps"`
	Delay     time.Duration `key:"delay" default:"1us" min:"0s" max:"1s"`
	// FarReceivers are the last receivers, with links of FarDelay.
	FarReceivers int64         `key:"far_receivers" default:"0" min:"0" max:"4096"`
	FarDelay     time.Duration `key:"far_delay" default:"0s" min:"0s" max:"1s"`
	Spans        []spanSection `key:"spans" items:"1" most:"16"`
}

// spanSection is a long link, optionally with a gateway in front of it.
type spanSection struct {
	Rate    uint64        `key:"rate" form:"rate" required:"yes" min:"1Mbps" max:"10Tbps"`
	Delay   time.Duration `key:"delay" required:"yes" min:"0s" max:"1s"`
	Loss    uint64        `key:"loss" form:"decimal" default:"0" max:"1"`
	Gateway string        `key:"gateway" form:"name"`
	Paths   int64         `key:"paths" default:"1" min:"1" max:"64"`
	// Changes are of the rate, as when members of a LAG fail and return. The gateways' configurations are reloaded then.
	Changes []changeSection `key:"changes" most:"1000"`
}

type changeSection struct {
	At   time.Duration `key:"at" required:"yes" min:"1ns" max:"24h"`
	Rate uint64        `key:"rate" form:"rate" required:"yes" min:"1Mbps" max:"10Tbps"`
}

// twoDCsSection is two leaf-spine fabrics with a border switch each, and a long link between the border switches.
type twoDCsSection struct {
	ToRs       int64         `key:"tors" default:"4" min:"1" max:"256"`
	Hosts      int64         `key:"hosts_per_tor" default:"4" min:"1" max:"256"`
	Spines     int64         `key:"spines" default:"4" min:"1" max:"256"`
	Rate       uint64        `key:"rate" form:"rate" default:"100Gbps" min:"1Mbps" max:"10Tbps"`
	BorderRate uint64        `key:"border_rate" form:"rate" default:"400Gbps" min:"1Mbps" max:"10Tbps"`
	Delay      time.Duration `key:"delay" default:"1us" min:"0s" max:"1s"`
	WAN        wanSection    `key:"wan"`
}

// wanSection is the long link between two data centres, optionally with a gateway at each end.
type wanSection struct {
	Rate  uint64        `key:"rate" form:"rate" default:"1600Gbps" min:"1Mbps" max:"10Tbps"`
	Delay time.Duration `key:"delay" default:"500us" min:"0s" max:"1s"`
	Loss  uint64        `key:"loss" form:"decimal" default:"0" max:"1"`
	West  string        `key:"west" form:"name"`
	East  string        `key:"east" form:"name"`
}

// betweenSection puts a gateway on a link of a topology file.
type betweenSection struct {
	Gateway string `key:"gateway" form:"name" required:"yes"`
	Fabric  int64  `key:"fabric" required:"yes" min:"0" max:"65535"`
	WAN     int64  `key:"wan" required:"yes" min:"0" max:"65535"`
}

type switchesSection struct {
	Buffer      uint64          `key:"buffer" form:"size" default:"32MB" min:"64KB" max:"1TB"`
	Alpha       uint64          `key:"alpha" form:"decimal" default:"0.125" min:"0.001" max:"128"`
	AlphaByRate bool            `key:"alpha_by_rate" default:"true"`
	EgressAlpha uint64          `key:"egress_alpha" form:"decimal" default:"1" min:"0.001" max:"128"`
	PFC         bool            `key:"pfc" default:"true"`
	PFCReach    time.Duration   `key:"pfc_reach" default:"10us" min:"0s" max:"1s"`
	ECN         []ecnSection    `key:"ecn" most:"16"`
	Overrides   []switchSection `key:"overrides" most:"256"`
}

// switchSection gives some switches other values.
type switchSection struct {
	Switches    string `key:"switches" required:"yes"`
	Buffer      uint64 `key:"buffer" form:"size" min:"64KB" max:"1TB"`
	Alpha       uint64 `key:"alpha" form:"decimal" min:"0.001" max:"128"`
	EgressAlpha uint64 `key:"egress_alpha" form:"decimal" min:"0.001" max:"128"`
}

type ecnSection struct {
	Rate uint64 `key:"rate" form:"rate" required:"yes" min:"0bps" max:"10Tbps"`
	KMin uint64 `key:"k_min" form:"size" required:"yes" max:"1TB"`
	KMax uint64 `key:"k_max" form:"size" required:"yes" max:"1TB"`
	PMax uint64 `key:"p_max" form:"decimal" default:"0.2" min:"0" max:"1"`
}

type hostsSection struct {
	NIC             string        `key:"nic" default:"paper"`
	MTU             int64         `key:"mtu" default:"4096" min:"256" max:"9000"`
	Window          int           `key:"window" default:"none" one:"none|bdp"`
	VariableWindow  bool          `key:"variable_window" default:"false"`
	AckEvery        int64         `key:"ack_every" default:"1" min:"0" max:"65535"`
	AckPriority     bool          `key:"ack_priority" default:"true"`
	CNPInterval     time.Duration `key:"cnp_interval" default:"50us" min:"0s" max:"1s"`
	Timeout         time.Duration `key:"timeout" min:"1us" max:"1m"`
	SelectiveRepeat bool          `key:"selective_repeat" default:"false"`
	Legacy          string        `key:"legacy"`
	Unresponsive    string        `key:"unresponsive"`
	Hops            int64         `key:"ioam_hops" default:"3" min:"1" max:"8"`
	HPCCRTT         time.Duration `key:"hpcc_base_rtt" min:"1us" max:"10s"`
	Obeys           []int         `key:"obeys" default:"[standard-cnp, fast-cnp, long-haul-cnp, ppfc]" most:"4" one:"standard-cnp|fast-cnp|long-haul-cnp|ppfc"`
	Delay           time.Duration `key:"reaction_delay" default:"0s" min:"0s" max:"1s"`
	DelayMax        time.Duration `key:"reaction_delay_max" min:"0s" max:"1s"`
	DCQCN           dcqcnSection  `key:"dcqcn"`
}

// nicDocument is the file of a NIC. Its keys, apart from name and source, are those of hosts.
type nicDocument struct {
	Name        string        `key:"name" required:"yes"`
	Source      string        `key:"source" required:"yes"`
	CNPInterval time.Duration `key:"cnp_interval" min:"0s" max:"1s"`
	Obeys       []int         `key:"obeys" most:"4" one:"standard-cnp|fast-cnp|long-haul-cnp|ppfc"`
	Delay       time.Duration `key:"reaction_delay" min:"0s" max:"1s"`
	DelayMax    time.Duration `key:"reaction_delay_max" min:"0s" max:"1s"`
	DCQCN       dcqcnSection  `key:"dcqcn"`
}

// dcqcnSection has the parameters of DCQCN: see endpoint.DCQCNConfig.
type dcqcnSection struct {
	Gain             uint64        `key:"g" form:"decimal" default:"0.003906" min:"0.000001" max:"1"`
	AlphaTimer       time.Duration `key:"alpha_timer" default:"55us" min:"100ns" max:"1s"`
	DecreaseInterval time.Duration `key:"decrease_interval" default:"50us" min:"100ns" max:"1s"`
	RateTimer        time.Duration `key:"rate_timer" default:"55us" min:"100ns" max:"1s"`
	ByteCounter      uint64        `key:"byte_counter" form:"size" default:"10MB" max:"1TB"`
	FastRecovery     int64         `key:"fast_recovery" default:"5" min:"1" max:"1000"`
	AdditiveIncrease uint64        `key:"additive_increase" form:"rate" default:"40Mbps" min:"1kbps" max:"10Tbps"`
	HyperIncrease    uint64        `key:"hyper_increase" form:"rate" default:"400Mbps" min:"1kbps" max:"10Tbps"`
	MinRate          uint64        `key:"min_rate" form:"rate" default:"40Mbps" min:"1kbps" max:"10Tbps"`
	Clamp            bool          `key:"clamp_target" default:"true"`
	Cut              int           `key:"cut" default:"at-once" one:"at-once|period"`
}

type gatewaySection struct {
	Loop      time.Duration    `key:"loop" default:"1us" min:"100ns" max:"1ms"`
	Workers   int64            `key:"workers" default:"1" min:"1" max:"64"`
	SourceQPs int              `key:"source_qps" default:"known" one:"known|learned"`
	Config    yamldoc.Embedded `key:"config"`
}

// fleetSection connects the gateways by a bus.
type fleetSection struct {
	Delay      time.Duration `key:"delay" default:"200us" min:"0s" max:"10s"`
	Jitter     time.Duration `key:"jitter" default:"0s" min:"0s" max:"10s"`
	Loss       uint64        `key:"loss" form:"decimal" default:"0" max:"1"`
	Bottleneck bool          `key:"bottleneck" default:"false"`
}

// trafficSection is one entry of the traffic.
type trafficSection struct {
	Incast   incastSection     `key:"incast"`
	AllToAll collectiveSection `key:"all_to_all"`
	Ring     collectiveSection `key:"ring"`
	Tree     collectiveSection `key:"tree"`
	Poisson  poissonSection    `key:"poisson"`
	File     string            `key:"file"`
}

type incastSection struct {
	From   string        `key:"from" default:"0"`
	To     string        `key:"to" default:"1"`
	Bytes  uint64        `key:"bytes" form:"size" default:"1MB" min:"1B" max:"1000TB"`
	QPs    int64         `key:"qps" default:"1" min:"1" max:"4096"`
	Bursts int64         `key:"bursts" default:"1" min:"1" max:"1000000"`
	Every  time.Duration `key:"every" default:"1ms" min:"1ns" max:"1h"`
	Start  time.Duration `key:"start" default:"0s" min:"0s" max:"24h"`
	Spread time.Duration `key:"spread" default:"0s" min:"0s" max:"1h"`
}

type collectiveSection struct {
	Ranks string        `key:"ranks" default:"all"`
	Bytes uint64        `key:"bytes" form:"size" default:"1MB" min:"1B" max:"1000TB"`
	Start time.Duration `key:"start" default:"0s" min:"0s" max:"24h"`
}

type poissonSection struct {
	Sizes  int           `key:"sizes" default:"web-search" one:"web-search|hadoop|storage"`
	Load   int64         `key:"load" default:"50" min:"1" max:"100"`
	Length time.Duration `key:"length" default:"10ms" min:"1us" max:"1h"`
}
