// Package scenario reads scenarios (YAML) and runs them. A scenario has a topology, traffic, and the responses to congestion to compare.
// The package reads no file itself and starts no goroutine. docs/simulator.md describes the keys.
package scenario

import "github.com/cnpgate/cnpgate/control/config"

// The schema: every key of a scenario, declared once. control/config/schema.go explains the tags.

type document struct {
	config.Section
	Name      config.Text                  `key:"name" required:"yes"`
	Seed      config.Integer               `key:"seed" default:"1" min:"0" max:"9007199254740991"`
	Length    config.Duration              `key:"length" required:"yes" min:"1us" max:"24h"`
	Sample    config.Duration              `key:"sample" min:"100ns" max:"1h"`
	Topology  topologySection              `key:"topology" required:"yes"`
	Switches  switchesSection              `key:"switches"`
	Hosts     hostsSection                 `key:"hosts"`
	Gateways  config.Table[gatewaySection] `key:"gateways"`
	Fleet     fleetSection                 `key:"fleet"`
	Traffic   config.List[trafficSection]  `key:"traffic" required:"yes" items:"1" most:"64"`
	Responses config.List[config.Choice]   `key:"responses" default:"[ecn, fast-cnp, long-haul-cnp, standard-cnp, fast-cnp-hpcc, ppfc]" items:"1" most:"8" one:"ecn|fast-cnp|long-haul-cnp|standard-cnp|fast-cnp-hpcc|ppfc|configured|proxy"`
}

type topologySection struct {
	config.Section
	Dumbbell dumbbellSection             `key:"dumbbell"`
	TwoDCs   twoDCsSection               `key:"two_dcs"`
	File     config.Text                 `key:"file"`
	Gateways config.List[betweenSection] `key:"gateways" most:"64"`
}

// dumbbellSection is senders at a switch, a chain of spans, and receivers at another switch.
type dumbbellSection struct {
	config.Section
	Senders   config.Integer  `key:"senders" default:"8" min:"1" max:"4096"`
	Receivers config.Integer  `key:"receivers" default:"1" min:"1" max:"4096"`
	Rate      config.Rate     `key:"rate" default:"100Gbps" min:"1Mbps" max:"10Tbps"`
	Delay     config.Duration `key:"delay" default:"1us" min:"0s" max:"1s"`
	// FarReceivers are the last receivers, with links of FarDelay.
	FarReceivers config.Integer           `key:"far_receivers" default:"0" min:"0" max:"4096"`
	FarDelay     config.Duration          `key:"far_delay" default:"0s" min:"0s" max:"1s"`
	Spans        config.List[spanSection] `key:"spans" items:"1" most:"16"`
}

// spanSection is a long link, optionally with a gateway in front of it.
type spanSection struct {
	config.Section
	Rate    config.Rate     `key:"rate" required:"yes" min:"1Mbps" max:"10Tbps"`
	Delay   config.Duration `key:"delay" required:"yes" min:"0s" max:"1s"`
	Loss    config.Decimal  `key:"loss" default:"0" max:"1"`
	Gateway config.Name     `key:"gateway"`
	Paths   config.Integer  `key:"paths" default:"1" min:"1" max:"64"`
	// Changes are of the rate, as when members of a LAG fail and return. The gateways' configurations are reloaded then.
	Changes config.List[changeSection] `key:"changes" most:"1000"`
}

type changeSection struct {
	config.Section
	At   config.Duration `key:"at" required:"yes" min:"1ns" max:"24h"`
	Rate config.Rate     `key:"rate" required:"yes" min:"1Mbps" max:"10Tbps"`
}

// twoDCsSection is two leaf-spine fabrics with a border switch each, and a long link between the border switches.
type twoDCsSection struct {
	config.Section
	ToRs       config.Integer  `key:"tors" default:"4" min:"1" max:"256"`
	Hosts      config.Integer  `key:"hosts_per_tor" default:"4" min:"1" max:"256"`
	Spines     config.Integer  `key:"spines" default:"4" min:"1" max:"256"`
	Rate       config.Rate     `key:"rate" default:"100Gbps" min:"1Mbps" max:"10Tbps"`
	BorderRate config.Rate     `key:"border_rate" default:"400Gbps" min:"1Mbps" max:"10Tbps"`
	Delay      config.Duration `key:"delay" default:"1us" min:"0s" max:"1s"`
	WAN        wanSection      `key:"wan"`
}

// wanSection is the long link between two data centres, optionally with a gateway at each end.
type wanSection struct {
	config.Section
	Rate  config.Rate     `key:"rate" default:"1600Gbps" min:"1Mbps" max:"10Tbps"`
	Delay config.Duration `key:"delay" default:"500us" min:"0s" max:"1s"`
	Loss  config.Decimal  `key:"loss" default:"0" max:"1"`
	West  config.Name     `key:"west"`
	East  config.Name     `key:"east"`
}

// betweenSection puts a gateway on a link of a topology file.
type betweenSection struct {
	config.Section
	Gateway config.Name    `key:"gateway" required:"yes"`
	Fabric  config.Integer `key:"fabric" required:"yes" min:"0" max:"65535"`
	WAN     config.Integer `key:"wan" required:"yes" min:"0" max:"65535"`
}

type switchesSection struct {
	config.Section
	Buffer      config.Size                `key:"buffer" default:"32MB" min:"64KB" max:"1TB"`
	Alpha       config.Decimal             `key:"alpha" default:"0.125" min:"0.001" max:"128"`
	AlphaByRate config.Toggle              `key:"alpha_by_rate" default:"true"`
	EgressAlpha config.Decimal             `key:"egress_alpha" default:"1" min:"0.001" max:"128"`
	PFC         config.Toggle              `key:"pfc" default:"true"`
	PFCReach    config.Duration            `key:"pfc_reach" default:"10us" min:"0s" max:"1s"`
	ECN         config.List[ecnSection]    `key:"ecn" most:"16"`
	Overrides   config.List[switchSection] `key:"overrides" most:"256"`
}

// switchSection gives some switches other values.
type switchSection struct {
	config.Section
	Switches    config.Text    `key:"switches" required:"yes"`
	Buffer      config.Size    `key:"buffer" min:"64KB" max:"1TB"`
	Alpha       config.Decimal `key:"alpha" min:"0.001" max:"128"`
	EgressAlpha config.Decimal `key:"egress_alpha" min:"0.001" max:"128"`
}

type ecnSection struct {
	config.Section
	Rate config.Rate    `key:"rate" required:"yes" min:"0bps" max:"10Tbps"`
	KMin config.Size    `key:"k_min" required:"yes" max:"1TB"`
	KMax config.Size    `key:"k_max" required:"yes" max:"1TB"`
	PMax config.Decimal `key:"p_max" default:"0.2" min:"0" max:"1"`
}

type hostsSection struct {
	config.Section
	NIC             config.Text                `key:"nic" default:"paper"`
	MTU             config.Integer             `key:"mtu" default:"4096" min:"256" max:"9000"`
	Window          config.Choice              `key:"window" default:"none" one:"none|bdp"`
	VariableWindow  config.Toggle              `key:"variable_window" default:"false"`
	AckEvery        config.Integer             `key:"ack_every" default:"1" min:"0" max:"65535"`
	AckPriority     config.Toggle              `key:"ack_priority" default:"true"`
	CNPInterval     config.Duration            `key:"cnp_interval" default:"50us" min:"0s" max:"1s"`
	Timeout         config.Duration            `key:"timeout" min:"1us" max:"1m"`
	SelectiveRepeat config.Toggle              `key:"selective_repeat" default:"false"`
	Legacy          config.Text                `key:"legacy"`
	Unresponsive    config.Text                `key:"unresponsive"`
	Hops            config.Integer             `key:"ioam_hops" default:"3" min:"1" max:"8"`
	HPCCRTT         config.Duration            `key:"hpcc_base_rtt" min:"1us" max:"10s"`
	Obeys           config.List[config.Choice] `key:"obeys" default:"[standard-cnp, fast-cnp, long-haul-cnp, ppfc]" most:"4" one:"standard-cnp|fast-cnp|long-haul-cnp|ppfc"`
	Delay           config.Duration            `key:"reaction_delay" default:"0s" min:"0s" max:"1s"`
	DelayMax        config.Duration            `key:"reaction_delay_max" min:"0s" max:"1s"`
	DCQCN           dcqcnSection               `key:"dcqcn"`
}

// nicDocument is the file of a NIC. Its keys, apart from name and source, are those of hosts.
type nicDocument struct {
	config.Section
	Name        config.Text                `key:"name" required:"yes"`
	Source      config.Text                `key:"source" required:"yes"`
	CNPInterval config.Duration            `key:"cnp_interval" min:"0s" max:"1s"`
	Obeys       config.List[config.Choice] `key:"obeys" most:"4" one:"standard-cnp|fast-cnp|long-haul-cnp|ppfc"`
	Delay       config.Duration            `key:"reaction_delay" min:"0s" max:"1s"`
	DelayMax    config.Duration            `key:"reaction_delay_max" min:"0s" max:"1s"`
	DCQCN       dcqcnSection               `key:"dcqcn"`
}

// dcqcnSection has the parameters of DCQCN: see endpoint.DCQCNConfig.
type dcqcnSection struct {
	config.Section
	Gain             config.Decimal  `key:"g" default:"0.003906" min:"0.000001" max:"1"`
	AlphaTimer       config.Duration `key:"alpha_timer" default:"55us" min:"100ns" max:"1s"`
	DecreaseInterval config.Duration `key:"decrease_interval" default:"50us" min:"100ns" max:"1s"`
	RateTimer        config.Duration `key:"rate_timer" default:"55us" min:"100ns" max:"1s"`
	ByteCounter      config.Size     `key:"byte_counter" default:"10MB" max:"1TB"`
	FastRecovery     config.Integer  `key:"fast_recovery" default:"5" min:"1" max:"1000"`
	AdditiveIncrease config.Rate     `key:"additive_increase" default:"40Mbps" min:"1kbps" max:"10Tbps"`
	HyperIncrease    config.Rate     `key:"hyper_increase" default:"400Mbps" min:"1kbps" max:"10Tbps"`
	MinRate          config.Rate     `key:"min_rate" default:"40Mbps" min:"1kbps" max:"10Tbps"`
	Clamp            config.Toggle   `key:"clamp_target" default:"true"`
	Cut              config.Choice   `key:"cut" default:"at-once" one:"at-once|period"`
}

type gatewaySection struct {
	config.Section
	Loop      config.Duration `key:"loop" default:"1us" min:"100ns" max:"1ms"`
	Workers   config.Integer  `key:"workers" default:"1" min:"1" max:"64"`
	SourceQPs config.Choice   `key:"source_qps" default:"known" one:"known|learned"`
	Config    config.Embedded `key:"config"`
}

// fleetSection connects the gateways by a bus.
type fleetSection struct {
	config.Section
	Delay      config.Duration `key:"delay" default:"200us" min:"0s" max:"10s"`
	Jitter     config.Duration `key:"jitter" default:"0s" min:"0s" max:"10s"`
	Loss       config.Decimal  `key:"loss" default:"0" max:"1"`
	Bottleneck config.Toggle   `key:"bottleneck" default:"false"`
}

// trafficSection is one entry of the traffic.
type trafficSection struct {
	config.Section
	Incast   incastSection     `key:"incast"`
	AllToAll collectiveSection `key:"all_to_all"`
	Ring     collectiveSection `key:"ring"`
	Tree     collectiveSection `key:"tree"`
	Poisson  poissonSection    `key:"poisson"`
	File     config.Text       `key:"file"`
}

type incastSection struct {
	config.Section
	From   config.Text     `key:"from" default:"0"`
	To     config.Text     `key:"to" default:"1"`
	Bytes  config.Size     `key:"bytes" default:"1MB" min:"1B" max:"1000TB"`
	QPs    config.Integer  `key:"qps" default:"1" min:"1" max:"4096"`
	Bursts config.Integer  `key:"bursts" default:"1" min:"1" max:"1000000"`
	Every  config.Duration `key:"every" default:"1ms" min:"1ns" max:"1h"`
	Start  config.Duration `key:"start" default:"0s" min:"0s" max:"24h"`
	Spread config.Duration `key:"spread" default:"0s" min:"0s" max:"1h"`
}

type collectiveSection struct {
	config.Section
	Ranks config.Text     `key:"ranks" default:"all"`
	Bytes config.Size     `key:"bytes" default:"1MB" min:"1B" max:"1000TB"`
	Start config.Duration `key:"start" default:"0s" min:"0s" max:"24h"`
}

type poissonSection struct {
	config.Section
	Sizes  config.Choice   `key:"sizes" default:"web-search" one:"web-search|hadoop|storage"`
	Load   config.Integer  `key:"load" default:"50" min:"1" max:"100"`
	Length config.Duration `key:"length" default:"10ms" min:"1us" max:"1h"`
}
