package config

// The schema: every key of a configuration file, declared once. A field's type gives the form of its value; its tags give the key,
// whether it is required, the default and the bounds. Rules between keys are checked after decoding, in resolve.go.
//
//	key       the key's name; fields without it are not read
//	required  "yes": must be given
//	default   the value of an absent key, as the file would have it
//	min, max  bounds of a value, or of each value in a list
//	items     least number of entries in a list; most: greatest
//	one       the words a choice takes, in the order of the constants they become
//	unique    what an error calls a value that two entries of a list have; % is the value
//	mode      "thresholds": only the mode thresholds has the key
//	absent    "off": without the section the gateway doesn't do what it is about, so that its defaults don't apply
//	to        the field that uses the value, if it hasn't the name of the schema's; see fill
//	because   why a change of the key, and of keys below it without this tag, needs a restart
//	reload    what a change of the key, and of keys below it without this tag, needs: live, resize or restart; see Reload

type document struct {
	place
	Gateway       gatewaySection        `key:"gateway" required:"yes"`
	DPDK          dpdkSection           `key:"dpdk" reload:"restart" because:"DPDK takes its memory and its cores once, when it starts"`
	Ports         list[portSection]     `key:"ports" required:"yes" items:"2" most:"32" reload:"restart" because:"devices, their peers and their queues are set up once, before the first frame"`
	Profiles      table[profileSection] `key:"profiles"`
	Flows         flowsSection          `key:"flows" to:"Dataplane" reload:"restart" because:"the workers read the tables without locks, so they can't move to other memory"`
	Endpoints     list[endpointSection] `key:"endpoints" to:"-"`
	Notifications notificationsSection  `key:"notifications" to:"Dataplane.Policy"`
	QPMap         list[qpPairSection]   `key:"qp_map"`
	Pairing       pairingSection        `key:"pairing" reload:"restart" because:"flows have their peer flows by it"`
	Proxy         proxySection          `key:"proxy" absent:"off"`
	Domain        domainSection         `key:"domain" absent:"off"`
	Management    managementSection     `key:"management"`
	Bypass        bypassSection         `key:"bypass" absent:"off"`
	Fleet         fleetSection          `key:"fleet" absent:"off" reload:"restart" because:"the memory for what other gateways see is reserved, and the connections are made, once at the start"`
}

type gatewaySection struct {
	place
	Name text     `key:"name" required:"yes" to:"Name"`
	IPv4 address4 `key:"ipv4" to:"Dataplane.Policy.Build.IPv4"`
	IPv6 address6 `key:"ipv6" to:"Dataplane.Policy.Build.IPv6"`

	STAMPReflector reflectorSection `key:"stamp_reflector" absent:"off"`
}

type reflectorSection struct {
	place
	Peers list[address] `key:"peers" most:"16" unique:"the address %" to:"Dataplane.Policy.Reflects"`
}

type dpdkSection struct {
	place
	Hugepages toggle        `key:"hugepages" default:"true"`
	InMemory  toggle        `key:"in_memory" default:"false"`
	EALArgs   list[text]    `key:"eal_args"`
	Workers   list[integer] `key:"workers" default:"[1]" items:"1" min:"0" max:"1023" unique:"this core"`
	Burst     integer       `key:"burst" default:"32" min:"1" max:"64"`
	Idle      choice        `key:"idle" default:"poll" one:"poll|backoff" to:"Backoff" because:"the default reaction of flow_control, and with it the headroom, depends on it"`
}

type portSection struct {
	place
	tap bool // role is tap; Role then has the side that the port mirrors

	Name           name               `key:"name" required:"yes" unique:"this name"`
	Device         device             `key:"device" required:"yes"`
	Role           choice             `key:"role" required:"yes" one:"fabric|wan|tap"`
	Mirrors        choice             `key:"mirrors" one:"fabric|wan|both"`
	FabricHosts    list[cidr]         `key:"fabric_hosts" unique:"the prefix %" to:"Policy.FabricHosts" reload:"live"`
	Peer           name               `key:"peer" required:"yes" to:"-"`
	Rate           rate               `key:"rate" required:"yes" min:"100kbps" max:"10Tbps" reload:"live"`
	RTT            duration           `key:"rtt" default:"0s" min:"0s" max:"10s" to:"Policy.RTT" reload:"live"`
	RTTSources     list[choice]       `key:"rtt_sources" default:"[configured]" items:"1" most:"3" one:"configured|passive|stamp" unique:"%" reload:"live"`
	RTTBounds      boundsSection      `key:"rtt_bounds" absent:"off" to:"Policy.RTTFrom" reload:"live"`
	STAMP          stampSection       `key:"stamp" absent:"off" reload:"live"`
	MTU            integer            `key:"mtu" default:"9000" min:"576" max:"16000" because:"each frame's buffer has this size"`
	QueueCapacity  size               `key:"queue_capacity" max:"4095MiB" reload:"resize"`
	TrafficClasses list[classSection] `key:"traffic_classes" items:"1" most:"8" because:"each class has a queue of its own, with frames in it"`
	Profile        name               `key:"profile" reload:"live"`
	Bottleneck     name               `key:"bottleneck" because:"the fleet shares it from the start"`
	Pacing         pacingSection      `key:"pacing" absent:"off" reload:"live"`
	FlowControl    flowControlSection `key:"flow_control" absent:"off" because:"headroom is taken from the queue's memory, and the other end may be stopped at that moment"`
}

type pacingSection struct {
	place
	Enabled  toggle     `key:"enabled" default:"false" reload:"resize"`
	Senders  list[cidr] `key:"senders"`
	HostRate rate       `key:"host_rate" min:"1Mbps" max:"10Tbps"`
	Floor    rate       `key:"floor" min:"100kbps" max:"10Tbps"`
	Keep     integer    `key:"keep_percent" min:"1" max:"99"`
	Interval duration   `key:"interval" min:"0s" max:"1s"`
	Hold     duration   `key:"hold" min:"0s" max:"10s"`
	Recovery duration   `key:"recovery" min:"1us" max:"10s"`
	Capacity size       `key:"capacity" default:"64MB" min:"64KB" max:"4095MiB" reload:"resize"`
}

type boundsSection struct {
	place
	Min duration `key:"min" default:"0s" min:"0s" max:"10s"`
	Max duration `key:"max" default:"1s" min:"1us" max:"10s"`
}

type stampSection struct {
	place
	Peer     address  `key:"peer"`
	Interval duration `key:"interval" default:"1s" min:"10ms" max:"10s"`
}

type classSection struct {
	place
	Name     name          `key:"name" required:"yes" unique:"this name"`
	DSCP     list[integer] `key:"dscp" min:"0" max:"63" reload:"live"`
	Priority integer       `key:"priority" min:"0" max:"7" unique:"this priority"`
	Lossless toggle        `key:"lossless" default:"false"`
	XOff     size          `key:"xoff" min:"1KB" max:"4095MiB"`
	XOn      size          `key:"xon" min:"1B" max:"4095MiB"`
}

type flowControlSection struct {
	place
	Cable    length          `key:"cable" default:"100m" min:"1m" max:"100km"`
	Speed    rate            `key:"speed" min:"100kbps" max:"10Tbps"`
	Response duration        `key:"response" min:"0s" max:"1s"`
	Reaction duration        `key:"reaction" min:"1us" max:"1s"`
	Limit    duration        `key:"xoff_limit" default:"100ms" min:"1ms" max:"1m"`
	Watchdog watchdogSection `key:"watchdog"`
}

type watchdogSection struct {
	place
	Action      choice   `key:"action" default:"drop" one:"drop|forward|alert"`
	Detection   duration `key:"detection_time" default:"200ms" min:"100ms" max:"5s"`
	Restoration duration `key:"restoration_time" default:"200ms" min:"100ms" max:"1m"`
}

type profileSection struct {
	place
	Mode        choice            `key:"mode" default:"law" one:"law|thresholds"`
	TargetDelay duration          `key:"target_delay" min:"10us" max:"1s"`
	KBase       size              `key:"k_base" mode:"thresholds" default:"64KB" min:"100B" max:"4000MiB" to:"Sizing.KBase"`
	Alpha       decimal           `key:"alpha" mode:"thresholds" default:"1.0" min:"0.000001" max:"100"`
	KMinPercent integer           `key:"k_min_percent" mode:"thresholds" default:"50" min:"1" max:"99" to:"Sizing.KMinPercent"`
	Depth       toggle            `key:"depth_trigger" mode:"thresholds" default:"true"`
	VECN        decimal           `key:"v_ecn" mode:"thresholds" min:"0.0001" max:"100"`       // least: a millionth, as congestion counts
	VGrowth     rate              `key:"v_growth" mode:"thresholds" min:"8kbps" max:"100Tbps"` // least: a byte a millisecond
	Interval    duration          `key:"interval" mode:"thresholds" default:"100us" min:"1us" max:"1h"`
	Flows       integer           `key:"flows_per_round" mode:"thresholds" default:"16" min:"1" max:"16" to:"FlowsPerRound"`
	Actions     list[choice]      `key:"actions" mode:"thresholds" items:"1" one:"mark|notify|rate-reduce|pause|resume"`
	Policy      list[rungSection] `key:"policy" mode:"thresholds" items:"1" most:"16"`
	Resume      integer           `key:"resume_percent" mode:"thresholds" default:"50" min:"0" max:"100" to:"ResumePercent"`
	OnArrival   toggle            `key:"ce_on_arrival" default:"false"`
	ClearCE     toggle            `key:"clear_ce" default:"false"`
	Adjust      adjustSection     `key:"adjust" absent:"off" mode:"thresholds"`
}

type adjustSection struct {
	place
	Enabled    toggle  `key:"enabled" default:"false"`
	MinPercent integer `key:"min_percent" default:"50" min:"10" max:"100"`
	MaxPercent integer `key:"max_percent" default:"200" min:"100" max:"400"`
}

type rungSection struct {
	place
	Level   integer `key:"level" required:"yes" min:"0" max:"255"`
	Action  choice  `key:"action" required:"yes" one:"notify|rate-reduce|pause"`
	Percent integer `key:"percent" min:"1" max:"100"`
}

type flowsSection struct {
	place
	Capacity count    `key:"capacity" default:"1Mi" min:"1024" max:"16Mi" to:"Flows"`
	Paired   count    `key:"paired" default:"32Ki" min:"1024" max:"16Mi"`
	Followed integer  `key:"followed" default:"1024" min:"0" max:"65536"`
	Aging    duration `key:"aging" default:"60s" min:"1s" max:"24h" because:"the workers share claims of RDMA-CM that end by it"`
}

type endpointSection struct {
	place
	Prefix  cidr           `key:"prefix" required:"yes" unique:"the prefix %"`
	Accepts list[accepted] `key:"accepts" required:"yes" unique:"%" one:"fast-cnp|long-haul-cnp|long-haul-cnp-icmpv6|ppfc|standard-cnp"`
}

type notificationsSection struct {
	place
	Mode        choice          `key:"mode" default:"send" one:"send|observe" to:"Observe"`
	DSCP        integer         `key:"dscp" default:"48" min:"0" max:"63" to:"Build.DSCP"`
	PKey        choice          `key:"p_key" default:"default" one:"default|flow" to:"Build.FlowPKey"`
	FastCNP     fastCNPSection  `key:"fast_cnp"`
	LongHaulCNP longHaulSection `key:"long_haul_cnp"`
	PPFC        switchSection   `key:"ppfc"`
	StandardCNP standardSection `key:"standard_cnp"`
	Limits      limitsSection   `key:"limits"`
}

type fastCNPSection struct {
	place
	Enabled              toggle  `key:"enabled" default:"false"`
	OptionType           integer `key:"option_type" default:"0x9E" min:"0x80" max:"0x9F" to:"Build.Code.FastCNPOption"` // act 10, chg 0 (RFC 8200 4.2)
	TraceOptionType      integer `key:"trace_option_type" min:"0x80" max:"0x9F"`
	ICRCExtensionHeaders toggle  `key:"icrc_extension_headers" default:"true" to:"Build.ICRCExtensionHeaders"`
	Mode                 choice  `key:"mode" default:"send" one:"send|observe"`
}

type longHaulSection struct {
	place
	Enabled         toggle            `key:"enabled" default:"false"`
	ICMPv6Type      integer           `key:"icmpv6_type" default:"200" min:"128" max:"255" to:"Build.Code.LongHaulICMPv6Type"` // informational (RFC 4443 2.1)
	ExtensionClass  integer           `key:"extension_class" default:"247" min:"1" max:"255" to:"Build.Code.ExtensionClass"`   // RFC 4884 9: 247 to 255 for private use
	ReducePercent   integer           `key:"reduce_percent" mode:"thresholds" default:"30" min:"1" max:"100"`
	DiscloseMetrics toggle            `key:"disclose_metrics" default:"true"`
	Metric          choice            `key:"metric" default:"trigger" one:"trigger|depth|growth|marking|rtt"`
	Extensions      extensionsSection `key:"extensions"`
	Mode            choice            `key:"mode" default:"send" one:"send|observe"`
}

type extensionsSection struct {
	place
	Timestamp toggle `key:"timestamp" default:"false" to:"Timestamp"`
	Device    name   `key:"device"`
	Path      name   `key:"path"`
}

// switchSection is a format with only two settings: whether it is enabled, and whether it is sent or only observed.
type switchSection struct {
	place
	Enabled toggle `key:"enabled" default:"false"`
	Mode    choice `key:"mode" default:"send" one:"send|observe"`
}

type standardSection struct {
	place
	Enabled      toggle  `key:"enabled" default:"false"`
	Source       choice  `key:"source" default:"receiver" one:"receiver|gateway" to:"Build.CNP.FromGateway"`
	DSCP         integer `key:"dscp" min:"0" max:"63" to:"-"`
	ECN          choice  `key:"ecn" default:"not-ect" one:"not-ect|ect-1|ect-0" to:"-"` // in the order of the code points
	DontFragment toggle  `key:"dont_fragment" default:"true"`
	TTL          integer `key:"ttl" default:"64" min:"1" max:"255" to:"Build.CNP.HopLimit"`
	SourcePort   integer `key:"source_port" min:"0" max:"65535" to:"-"`
	Mode         choice  `key:"mode" default:"send" one:"send|observe"`
}

type limitsSection struct {
	place
	PerFlow        duration  `key:"per_flow" mode:"thresholds" min:"0s" max:"1h"`
	PerDestination perSecond `key:"per_destination" default:"1000000/s" max:"1000000000/s" to:"PerDestination"`
	PerPort        perSecond `key:"per_port" default:"10000000/s" max:"1000000000/s" to:"PerPort"`
}

type qpPairSection struct {
	place
	Source        address `key:"source_ip" required:"yes"`
	Destination   address `key:"destination_ip" required:"yes"`
	SourceQP      integer `key:"source_qp" required:"yes" min:"2" max:"16777214"`
	DestinationQP integer `key:"destination_qp" required:"yes" min:"2" max:"16777214"`
	Tags          tags    `key:"tags"`
	Tunnel        tunnel  `key:"tunnel"`
}

type pairingSection struct {
	place
	LearnScopes choice                 `key:"learn_scopes" default:"always" one:"always|never" to:"Dataplane.StatedScopes"`
	Scopes      list[scopePairSection] `key:"scopes" most:"64" to:"Scopes"`
}

type scopePairSection struct {
	place
	Tags        tags   `key:"tags"`
	Tunnel      tunnel `key:"tunnel"`
	OtherTags   tags   `key:"other_tags"`
	OtherTunnel tunnel `key:"other_tunnel"`
}

type domainSection struct {
	place
	Mode                choice     `key:"mode" default:"drop" one:"drop|observe"`
	Members             list[cidr] `key:"members" unique:"the prefix %"`
	NotificationSources list[cidr] `key:"notification_sources" unique:"the prefix %"`
}

type managementSection struct {
	place
	Listen    listener   `key:"listen" to:"Socket"`
	Metrics   socket     `key:"metrics"`
	IPFIX     socket     `key:"ipfix"`
	Web       webSection `key:"web" absent:"off"`
	LogLevel  choice     `key:"log_level" default:"info" one:"debug|info|warn|error"`
	LogFormat choice     `key:"log_format" one:"text|json" reload:"restart" because:"the log is opened before everything else"`
	Sandbox   choice     `key:"sandbox" default:"enforce" one:"enforce|audit|off" reload:"restart" because:"a process can't leave it"`
}

type webSection struct {
	place
	Listen      socket `key:"listen"`
	Certificate text   `key:"certificate"`
	Key         text   `key:"key"`
	TokenFile   text   `key:"token_file"`
}

type bypassSection struct {
	place
	File     text       `key:"file"`
	Values   list[text] `key:"values" default:"['1', '0']" items:"1" most:"2"`
	Command  list[text] `key:"command" items:"1" most:"16"`
	Interval duration   `key:"interval" default:"100ms" min:"10ms" max:"10s"`
	Requires choice     `key:"requires" default:"ports" one:"ports|workers" to:"WorkersOnly"`
}

// resolver makes a snapshot from a decoded document.
type resolver struct {
	*report
	doc *document
}

// portResolver makes one port of the snapshot.
type portResolver struct {
	*resolver
	s       *portSection
	p       *Port
	profile *profileSection // nil: the one that the port names doesn't exist
	law     bool            // it responds by the control law
}

type fleetSection struct {
	place
	Site     name                     `key:"site"`
	Name     name                     `key:"name" to:"Name"`
	Key      text                     `key:"key"`
	Members  list[fleetMemberSection] `key:"members" most:"64"`
	Hosts    list[fleetHostSection]   `key:"hosts"`
	Embedded toggle                   `key:"embedded" default:"false"`
	Listen   socket                   `key:"listen" default:"0.0.0.0:4222"`
	Peers    list[text]               `key:"peers" most:"63"`
	Servers  list[text]               `key:"servers" most:"16"`
	TLS      fleetTLSSection          `key:"tls"`
	Flows    count                    `key:"flows" default:"32Ki" min:"1Ki" max:"16Mi"`
	Pairs    count                    `key:"pairs" default:"64Ki" min:"1Ki" max:"16Mi"`
	Episodes fleetEpisodesSection     `key:"episodes"`
}

type fleetMemberSection struct {
	place
	Name name `key:"name" required:"yes" unique:"the name %"`
	Key  text `key:"key" required:"yes" unique:"the key %"`
}

type fleetHostSection struct {
	place
	Name      name       `key:"name" required:"yes" unique:"the name %"`
	Key       text       `key:"key" required:"yes" unique:"the key %"`
	Addresses list[cidr] `key:"addresses" required:"yes" items:"1" most:"64"`
}

type fleetTLSSection struct {
	place
	CA   text `key:"ca"`
	Cert text `key:"cert"`
	Key  text `key:"key"`
}

type fleetEpisodesSection struct {
	place
	Store    text     `key:"store"`
	Keep     duration `key:"keep" default:"168h" min:"1h" max:"8760h"`
	MaxBytes size     `key:"max_bytes" default:"64MB" min:"1MB" max:"4095MiB"`
}
