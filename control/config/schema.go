package config

// The schema: every key of a configuration file, declared once. A field's type says how its value is written, its tags say the key,
// whether it is required, the default and the bounds. What keys mean for each other is checked after decoding, in resolve.go.
//
//	key       the key's name; fields without it are not read
//	required  "yes": must be given
//	default   what stands for an absent key, as the file would write it
//	min, max  bounds of a value, or of each value in a list
//	items     least number of entries in a list; most: greatest
//	one       the words a choice takes, in the order of the constants they become

type document struct {
	place
	Gateway       gatewaySection        `key:"gateway" required:"yes"`
	DPDK          dpdkSection           `key:"dpdk"`
	Ports         list[portSection]     `key:"ports" required:"yes" items:"2" most:"32"`
	Profiles      table[profileSection] `key:"profiles"`
	Flows         flowsSection          `key:"flows"`
	Endpoints     list[endpointSection] `key:"endpoints"`
	Notifications notificationsSection  `key:"notifications"`
	QPMap         list[qpPairSection]   `key:"qp_map"`
	Proxy         proxySection          `key:"proxy"`
	Domain        domainSection         `key:"domain"`
	Management    managementSection     `key:"management"`
}

type gatewaySection struct {
	place
	Name text     `key:"name" required:"yes"`
	IPv4 address4 `key:"ipv4"`
	IPv6 address6 `key:"ipv6"`
}

type dpdkSection struct {
	place
	Hugepages toggle        `key:"hugepages" default:"true"`
	InMemory  toggle        `key:"in_memory" default:"false"`
	EALArgs   list[text]    `key:"eal_args"`
	Workers   list[integer] `key:"workers" default:"[1]" items:"1" min:"0" max:"1023"`
	Burst     integer       `key:"burst" default:"32" min:"1" max:"64"`
	Idle      choice        `key:"idle" default:"poll" one:"poll|backoff"`
}

type portSection struct {
	place
	Name           name               `key:"name" required:"yes"`
	Device         device             `key:"device" required:"yes"`
	Role           choice             `key:"role" required:"yes" one:"fabric|wan"`
	Peer           name               `key:"peer" required:"yes"`
	Rate           rate               `key:"rate" required:"yes" min:"100kbps" max:"10Tbps"`
	RTT            duration           `key:"rtt" default:"0s" min:"0s" max:"10s"`
	MTU            integer            `key:"mtu" default:"9000" min:"576" max:"16000"`
	QueueCapacity  size               `key:"queue_capacity" max:"4095MiB"`
	TrafficClasses list[classSection] `key:"traffic_classes" items:"1" most:"8"`
	Profile        name               `key:"profile"`
}

type classSection struct {
	place
	Name name          `key:"name" required:"yes"`
	DSCP list[integer] `key:"dscp" min:"0" max:"63"`
}

type profileSection struct {
	place
	KBase       size         `key:"k_base" default:"64KB" min:"100B" max:"4000MiB"`
	Alpha       decimal      `key:"alpha" default:"1.0" min:"0.000001" max:"100"`
	KMinPercent integer      `key:"k_min_percent" default:"50" min:"1" max:"99"`
	VECN        decimal      `key:"v_ecn" min:"0" max:"100"`
	VGrowth     rate         `key:"v_growth"`
	Interval    duration     `key:"interval" min:"1us" max:"1h"`
	Actions     list[choice] `key:"actions" items:"1" one:"mark|notify|rate-reduce|pause|resume"`
}

type flowsSection struct {
	place
	Capacity count    `key:"capacity" default:"1Mi" min:"1024" max:"16Mi"`
	Paired   count    `key:"paired" default:"32Ki" min:"1024" max:"16Mi"`
	Aging    duration `key:"aging" default:"60s" min:"1s" max:"24h"`
}

type endpointSection struct {
	place
	Prefix  prefix       `key:"prefix" required:"yes"`
	Accepts list[choice] `key:"accepts" required:"yes" one:"fast-cnp|long-haul-cnp|long-haul-cnp-icmpv6|ppfc|standard-cnp"`
}

type notificationsSection struct {
	place
	DSCP        integer         `key:"dscp" default:"48" min:"0" max:"63"`
	FastCNP     fastCNPSection  `key:"fast_cnp"`
	LongHaulCNP longHaulSection `key:"long_haul_cnp"`
	PPFC        laterSection    `key:"ppfc"`
	StandardCNP laterSection    `key:"standard_cnp"`
	Limits      limitsSection   `key:"limits"`
}

type fastCNPSection struct {
	place
	Enabled              toggle  `key:"enabled" default:"false"`
	OptionType           integer `key:"option_type" default:"0x9E" min:"0x80" max:"0x9F"` // act 10, chg 0 (RFC 8200 4.2)
	TraceOptionType      integer `key:"trace_option_type" min:"0x80" max:"0x9F"`
	ICRCExtensionHeaders toggle  `key:"icrc_extension_headers" default:"true"`
}

type longHaulSection struct {
	place
	Enabled         toggle  `key:"enabled" default:"false"`
	ICMPv6Type      integer `key:"icmpv6_type" default:"200" min:"128" max:"255"`   // informational (RFC 4443 2.1)
	ExtensionClass  integer `key:"extension_class" default:"247" min:"1" max:"255"` // RFC 4884 9: 247 to 255 for private use
	ReducePercent   integer `key:"reduce_percent" default:"30" min:"1" max:"100"`
	DiscloseMetrics toggle  `key:"disclose_metrics" default:"true"`
}

// laterSection is a feature that can only be off in this version.
type laterSection struct {
	place
	Enabled toggle `key:"enabled" default:"false"`
}

type limitsSection struct {
	place
	PerFlow        duration  `key:"per_flow" min:"0s" max:"1h"`
	PerDestination perSecond `key:"per_destination" default:"10000/s" max:"1000000000/s"`
	PerPort        perSecond `key:"per_port" default:"100000/s" max:"1000000000/s"`
}

type qpPairSection struct {
	place
	Source        address `key:"source" required:"yes"`
	Destination   address `key:"destination" required:"yes"`
	SourceQP      integer `key:"source_qp" required:"yes" min:"2" max:"16777214"`
	DestinationQP integer `key:"destination_qp" required:"yes" min:"2" max:"16777214"`
}

type proxySection struct {
	place
	Enabled toggle              `key:"enabled" default:"false"`
	Listen  address             `key:"listen"`
	Port    integer             `key:"port" default:"1022" min:"1" max:"65535"` // RFC 4727 6
	Senders list[senderSection] `key:"senders"`
	BGP     opaque              `key:"bgp"`
}

type senderSection struct {
	place
	Prefix prefix  `key:"prefix" required:"yes"`
	Proxy  address `key:"proxy" required:"yes"`
}

type domainSection struct {
	place
	Members             list[prefix] `key:"members"`
	NotificationSources list[prefix] `key:"notification_sources"`
}

type managementSection struct {
	place
	Listen  listener `key:"listen"`
	Metrics socket   `key:"metrics"`
}
