package config

import (
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// The schema: every key of a configuration file, declared once; yamldoc explains the tags. Sections that a snapshot has as they are are in
// config.go, fleet.go and routing.go. A snapshot has the values of the others in the types of the dataplane. Rules between keys are checked
// after decoding, in resolve.go and in the files of the sections. Only the mode thresholds has the keys with mode:"thresholds".

type document struct {
	Gateway       gatewaySection                `key:"gateway" required:"yes"`
	DPDK          DPDK                          `key:"dpdk" reload:"restart" because:"DPDK takes its memory and its cores once, when it starts"`
	Ports         []portSection                 `key:"ports" required:"yes" items:"2" most:"32" reload:"restart" because:"devices, their peers and their queues are set up once, before the first frame"`
	Profiles      yamldoc.Table[profileSection] `key:"profiles"`
	Flows         flowsSection                  `key:"flows" reload:"restart" because:"the workers read the tables without locks, so they can't move to other memory"`
	Endpoints     []endpointSection             `key:"endpoints"`
	Notifications notificationsSection          `key:"notifications"`
	QPMap         []QPPair                      `key:"qp_map"`
	Pairing       pairingSection                `key:"pairing" reload:"restart" because:"flows have their peer flows by it"`
	Proxy         proxySection                  `key:"proxy" absent:"off"`
	Domain        domainSection                 `key:"domain" absent:"off"`
	Management    Management                    `key:"management"`
	Bypass        *Bypass                       `key:"bypass" absent:"off"`
	Fleet         *Fleet                        `key:"fleet" absent:"off" reload:"restart" because:"the memory for what other gateways see is reserved, and the connections are made, once at the start"`
}

type gatewaySection struct {
	Name string     `key:"name" required:"yes"`
	IPv4 netip.Addr `key:"ipv4" form:"ipv4"`
	IPv6 netip.Addr `key:"ipv6" form:"ipv6"`

	STAMPReflector reflectorSection `key:"stamp_reflector" absent:"off"`
}

type reflectorSection struct {
	Peers []netip.Addr `key:"peers" most:"16" unique:"the address %"`
}

type portSection struct {
	tap bool // role is tap; Role then has the side that the port mirrors

	Name           string             `key:"name" form:"name" required:"yes" unique:"this name"`
	Device         string             `key:"device" form:"device" required:"yes"`
	Role           int                `key:"role" required:"yes" one:"fabric|wan|tap"`
	Mirrors        int                `key:"mirrors" one:"fabric|wan|both"`
	FabricHosts    []netip.Prefix     `key:"fabric_hosts" unique:"the prefix %" reload:"live"`
	Peer           string             `key:"peer" form:"name" required:"yes" expects:"the name of the port by which this port's frames leave"`
	Rate           uint64             `key:"rate" form:"rate" required:"yes" min:"100kbps" max:"10Tbps" reload:"live"`
	RTT            time.Duration      `key:"rtt" default:"0s" min:"0s" max:"10s" reload:"live"`
	RTTSources     []int              `key:"rtt_sources" default:"[configured]" items:"1" most:"3" one:"configured|passive|stamp" unique:"%" reload:"live"`
	RTTBounds      boundsSection      `key:"rtt_bounds" absent:"off" reload:"live"`
	STAMP          stampSection       `key:"stamp" absent:"off" reload:"live"`
	MTU            int64              `key:"mtu" default:"9000" min:"576" max:"16000" because:"each frame's buffer has this size"`
	QueueCapacity  uint64             `key:"queue_capacity" form:"size" max:"4095MiB" reload:"resize"`
	TrafficClasses []classSection     `key:"traffic_classes" items:"1" most:"8" because:"each class has a queue of its own, with frames in it"`
	Profile        string             `key:"profile" form:"name" reload:"live"`
	Bottleneck     string             `key:"bottleneck" form:"name" because:"the fleet shares it from the start"`
	Pacing         pacingSection      `key:"pacing" absent:"off" reload:"live"`
	FlowControl    flowControlSection `key:"flow_control" absent:"off" because:"headroom is taken from the queue's memory, and the other end may be stopped at that moment"`
}

type pacingSection struct {
	Enabled  bool           `key:"enabled" default:"false" reload:"resize"`
	Senders  []netip.Prefix `key:"senders"`
	HostRate uint64         `key:"host_rate" form:"rate" min:"1Mbps" max:"10Tbps"`
	Recovery time.Duration  `key:"recovery" min:"1us" max:"10s"`
	Capacity uint64         `key:"capacity" form:"size" default:"64MB" min:"64KB" max:"4095MiB" reload:"resize"`
	_        struct{}       `key:"floor" removed:"it follows from host_rate now; remove the key"`
	_        struct{}       `key:"keep_percent" removed:"it follows from the port's role now; remove the key"`
	_        struct{}       `key:"interval" removed:"it follows from the port's role and rtt now; remove the key"`
	_        struct{}       `key:"hold" removed:"it follows from the port's role and rtt now; remove the key"`
}

type boundsSection struct {
	Min time.Duration `key:"min" default:"0s" min:"0s" max:"10s"`
	Max time.Duration `key:"max" default:"1s" min:"1us" max:"10s"`
}

type stampSection struct {
	Peer netip.Addr `key:"peer"`
	_    struct{}   `key:"interval" removed:"it is always 1s now; remove the key"`
}

type classSection struct {
	Name     string  `key:"name" form:"name" required:"yes" unique:"this name"`
	DSCP     []int64 `key:"dscp" min:"0" max:"63" reload:"live"`
	Priority int64   `key:"priority" min:"0" max:"7" unique:"this priority"`
	Lossless bool    `key:"lossless" default:"false"`

	_ struct{} `key:"xoff" removed:"it follows from queue_capacity and the headroom now; remove the key"`
	_ struct{} `key:"xon" removed:"it follows from queue_capacity and the headroom now; remove the key"`
}

type flowControlSection struct {
	Cable    int64           `key:"cable" form:"length" default:"100m" min:"1m" max:"100km"`
	Speed    uint64          `key:"speed" form:"rate" min:"100kbps" max:"10Tbps"`
	Response time.Duration   `key:"response" min:"0s" max:"1s"`
	Reaction time.Duration   `key:"reaction" min:"1us" max:"1s"`
	Limit    time.Duration   `key:"xoff_limit" default:"100ms" min:"1ms" max:"1m"`
	Watchdog watchdogSection `key:"watchdog"`
}

type watchdogSection struct {
	Action    int           `key:"action" default:"drop" one:"drop|forward|alert"`
	Detection time.Duration `key:"detection_time" default:"200ms" min:"100ms" max:"5s"`
	_         struct{}      `key:"restoration_time" removed:"it is detection_time now; remove the key"`
}

type profileSection struct {
	Mode        int           `key:"mode" default:"law" one:"law|thresholds"`
	TargetDelay time.Duration `key:"target_delay" mode:"law" min:"10us" max:"1s"`
	Between     int           `key:"fair_between" mode:"law" default:"senders" one:"senders|flows"`
	KBase       uint64        `key:"k_base" form:"size" mode:"thresholds" default:"64KB" min:"100B" max:"4000MiB"`
	Alpha       uint64        `key:"alpha" form:"decimal" mode:"thresholds" default:"1.0" min:"0.000001" max:"100"`
	KMinPercent int64         `key:"k_min_percent" mode:"thresholds" default:"50" min:"1" max:"99"`
	Depth       bool          `key:"depth_trigger" mode:"thresholds" default:"true"`
	VECN        uint64        `key:"v_ecn" form:"decimal" mode:"thresholds" min:"0.0001" max:"100"`    // least: a millionth, as congestion counts
	VGrowth     uint64        `key:"v_growth" form:"rate" mode:"thresholds" min:"8kbps" max:"100Tbps"` // least: a byte a millisecond
	Interval    time.Duration `key:"interval" mode:"thresholds" default:"100us" min:"1us" max:"1h"`
	Actions     []int         `key:"actions" mode:"thresholds" items:"1" one:"mark|notify|rate-reduce|pause|resume"`
	Policy      []rungSection `key:"policy" mode:"thresholds" items:"1" most:"16"`
	Resume      int64         `key:"resume_percent" mode:"thresholds" default:"50" min:"0" max:"100"`
	OnArrival   bool          `key:"ce_on_arrival" default:"false"`
	ClearCE     bool          `key:"clear_ce" default:"false"`
	Adjust      adjustSection `key:"adjust" absent:"off" mode:"thresholds"`
	_           struct{}      `key:"flows_per_round" removed:"it is always 16 now; remove the key"`
}

type adjustSection struct {
	Enabled    bool  `key:"enabled" default:"false"`
	MinPercent int64 `key:"min_percent" default:"50" min:"10" max:"100"`
	MaxPercent int64 `key:"max_percent" default:"200" min:"100" max:"400"`
}

type rungSection struct {
	Level   int64 `key:"level" required:"yes" min:"0" max:"255"`
	Action  int   `key:"action" required:"yes" one:"notify|rate-reduce|pause"`
	Percent int64 `key:"percent" min:"1" max:"100"`
}

type flowsSection struct {
	Capacity int           `key:"capacity" form:"count" default:"1Mi" min:"1024" max:"16Mi"`
	Paired   int           `key:"paired" form:"count" default:"32Ki" min:"1024" max:"16Mi"`
	Followed int           `key:"followed" default:"1024" min:"0" max:"65536"`
	Aging    time.Duration `key:"aging" default:"60s" min:"1s" max:"24h" because:"the workers share claims of RDMA-CM that end by it"`
}

type endpointSection struct {
	Prefix  netip.Prefix `key:"prefix" required:"yes" unique:"the prefix %"`
	Accepts []Format     `key:"accepts" form:"accepted" required:"yes" unique:"%"`
}

// Values of enabled of a kind of notification, by their numbers in the schema: not sent, sent, or counted as if it were sent.
const (
	kindOff = iota
	kindSent
	kindObserved
)

type notificationsSection struct {
	Mode        int             `key:"mode" default:"send" one:"send|observe"`
	DSCP        uint8           `key:"dscp" default:"48" min:"0" max:"63"`
	FlowPKey    bool            `key:"p_key" default:"default" one:"default|flow"`
	FastCNP     fastCNPSection  `key:"fast_cnp"`
	LongHaulCNP longHaulSection `key:"long_haul_cnp"`
	PPFC        switchSection   `key:"ppfc"`
	StandardCNP standardSection `key:"standard_cnp"`
	Limits      limitsSection   `key:"limits"`
}

type fastCNPSection struct {
	Enabled              int      `key:"enabled" default:"false" one:"false|true|observe"`
	OptionType           uint8    `key:"option_type" default:"0x9E" min:"0x80" max:"0x9F"` // act 10, chg 0 (RFC 8200 4.2)
	TraceOptionType      uint8    `key:"trace_option_type" min:"0x80" max:"0x9F"`
	ICRCExtensionHeaders bool     `key:"icrc_extension_headers" default:"true"`
	_                    struct{} `key:"mode" removed:"it is part of enabled now: write enabled: observe for mode: observe, and remove the key"`
}

type longHaulSection struct {
	Enabled         int               `key:"enabled" default:"false" one:"false|true|observe"`
	ICMPv6Type      uint8             `key:"icmpv6_type" default:"200" min:"128" max:"255"`   // informational (RFC 4443 2.1)
	ExtensionClass  uint8             `key:"extension_class" default:"247" min:"1" max:"255"` // RFC 4884 9: 247 to 255 for private use
	ReducePercent   int64             `key:"reduce_percent" mode:"thresholds" default:"30" min:"1" max:"100"`
	DiscloseMetrics bool              `key:"disclose_metrics" default:"true"`
	Metric          int               `key:"metric" default:"trigger" one:"trigger|depth|growth|marking|rtt"`
	Extensions      extensionsSection `key:"extensions"`
	_               struct{}          `key:"mode" removed:"it is part of enabled now: write enabled: observe for mode: observe, and remove the key"`
}

type extensionsSection struct {
	Timestamp bool   `key:"timestamp" default:"false"`
	Device    string `key:"device" form:"name"`
	Path      string `key:"path" form:"name"`
}

// switchSection is a format with one setting: whether it is sent, or only observed.
type switchSection struct {
	Enabled int `key:"enabled" default:"false" one:"false|true|observe"`

	_ struct{} `key:"mode" removed:"it is part of enabled now: write enabled: observe for mode: observe, and remove the key"`
}

type standardSection struct {
	Enabled     int    `key:"enabled" default:"false" one:"false|true|observe"`
	FromGateway bool   `key:"source" default:"receiver" one:"receiver|gateway"`
	ECN         int    `key:"ecn" default:"not-ect" one:"not-ect|ect-1|ect-0"` // in the order of the code points
	TTL         uint8  `key:"ttl" default:"64" min:"1" max:"255"`
	SourcePort  uint16 `key:"source_port" min:"0" max:"65535"`

	_ struct{} `key:"dscp" removed:"notifications.dscp is that of all kinds; remove the key"`
	_ struct{} `key:"dont_fragment" removed:"Don't Fragment is always set now; remove the key"`
	_ struct{} `key:"mode" removed:"it is part of enabled now: write enabled: observe for mode: observe, and remove the key"`
}

type limitsSection struct {
	PerFlow        time.Duration `key:"per_flow" mode:"thresholds" min:"0s" max:"1h"`
	PerDestination uint64        `key:"per_destination" form:"per-second" default:"1000000/s" max:"1000000000/s"`
	PerPort        uint64        `key:"per_port" form:"per-second" default:"10000000/s" max:"1000000000/s"`
}

type pairingSection struct {
	StatedScopes bool        `key:"learn_scopes" default:"always" one:"always|never"`
	Scopes       []ScopePair `key:"scopes" most:"64"`
}

type domainSection struct {
	Mode                int            `key:"mode" default:"drop" one:"drop|observe"`
	Members             []netip.Prefix `key:"members" required:"given" expects:"a list of prefixes, such as [10.1.0.0/16], or no domain section for no domain filter" unique:"the prefix %"`
	NotificationSources []netip.Prefix `key:"notification_sources" required:"given" expects:"a list of prefixes, which may be empty: []" unique:"the prefix %"`
}

type proxySection struct {
	Enabled int                `key:"enabled" default:"false" one:"false|true|observe"`
	Listen  netip.Addr         `key:"listen"`
	Port    uint16             `key:"port" default:"1022" min:"1" max:"65535"` // RFC 4727 6
	Senders []senderSection    `key:"senders"`
	Sources []netip.Prefix     `key:"sources" unique:"the prefix %"`
	Limits  proxyLimitsSection `key:"limits"`
	BGP     *BGP               `key:"bgp" absent:"off"`
	OSPF    *OSPF              `key:"ospf" absent:"off"`
	OSPF6   *OSPF6             `key:"ospf6" absent:"off"`
	_       struct{}           `key:"mode" removed:"it is part of enabled now: write enabled: observe for mode: observe, and remove the key"`
}

type proxyLimitsSection struct {
	PerProxy  uint64 `key:"per_proxy" form:"per-second" default:"100000/s" max:"1000000000/s"`
	PerSource uint64 `key:"per_source" form:"per-second" default:"5000/s" max:"1000000000/s"`
	Received  uint64 `key:"received" form:"per-second" default:"10000/s" max:"1000000000/s"`
}

type senderSection struct {
	Prefix netip.Prefix `key:"prefix" required:"yes" unique:"the prefix %"`
	Proxy  netip.Addr   `key:"proxy" form:"routed" required:"yes"`
}
