package config

// The schema of proxies, and of protocols that announce and learn them.

type proxySection struct {
	place
	Enabled toggle              `key:"enabled" default:"false"`
	Mode    choice              `key:"mode" default:"send" one:"send|observe"`
	Listen  address             `key:"listen"`
	Port    integer             `key:"port" default:"1022" min:"1" max:"65535" to:"Dataplane.Policy.Build.Code.ProxyPort"` // RFC 4727 6
	Senders list[senderSection] `key:"senders" to:"Senders"`
	Sources list[cidr]          `key:"sources" unique:"the prefix %"`
	Limits  proxyLimitsSection  `key:"limits"`
	BGP     bgpSection          `key:"bgp" absent:"off" to:"BGP"`
	OSPF    ospfSection         `key:"ospf" absent:"off" to:"OSPF"`
	OSPF6   ospf6Section        `key:"ospf6" absent:"off" to:"OSPF6"`
}

type proxyLimitsSection struct {
	place
	PerProxy  perSecond `key:"per_proxy" default:"100000/s" max:"1000000000/s" to:"Dataplane.Policy.PerProxy"`
	PerSource perSecond `key:"per_source" default:"5000/s" max:"1000000000/s"`
	Received  perSecond `key:"received" default:"10000/s" max:"1000000000/s"`
}

type senderSection struct {
	place
	Prefix cidr   `key:"prefix" required:"yes" unique:"the prefix %"`
	Proxy  routed `key:"proxy" required:"yes"`
}

type bgpSection struct {
	place
	AS              integer               `key:"as" min:"1" max:"4294967294"`
	RouterID        address4              `key:"router_id"`
	IPv4            address4              `key:"ipv4"`
	IPv6            address6              `key:"ipv6"`
	Port            integer               `key:"port" default:"179" min:"0" max:"65535"`
	Characteristic  integer               `key:"characteristic" default:"65400" min:"1" max:"65534"`
	Announce        list[cidr]            `key:"announce" most:"1024" unique:"the prefix %"`
	NextHopIPv4     address4              `key:"next_hop_ipv4"`
	NextHopIPv6     address6              `key:"next_hop_ipv6"`
	Accept          list[acceptSection]   `key:"accept" most:"1024"`
	GracefulRestart toggle                `key:"graceful_restart" default:"true"`
	HoldTime        duration              `key:"hold_time" default:"90s" min:"3s" max:"18h"`
	ConnectRetry    duration              `key:"connect_retry" default:"10s" min:"2s" max:"1h"`
	Peers           list[neighborSection] `key:"peers" most:"64"`
}

type acceptSection struct {
	place
	Prefix    cidr    `key:"prefix" required:"yes" unique:"the prefix %"`
	MaxLength integer `key:"max_length" min:"0" max:"128"`
}

type neighborSection struct {
	place
	Address      address      `key:"address" required:"yes" unique:"the address %"`
	AS           integer      `key:"as" required:"yes" min:"1" max:"4294967294"`
	Port         integer      `key:"port" default:"179" min:"1" max:"65535"`
	PasswordFile text         `key:"password_file"`
	Passive      toggle       `key:"passive" default:"false"`
	Multihop     integer      `key:"multihop" min:"2" max:"255"`
	TTLSecurity  integer      `key:"ttl_security" min:"1" max:"254"`
	Families     list[choice] `key:"families" default:"[ipv4-unicast, ipv6-unicast]" items:"1" most:"2" one:"ipv4-unicast|ipv6-unicast" unique:"the family"`
	MaxPrefixes  integer      `key:"max_prefixes" default:"10000" min:"1" max:"1000000"`
}

type ospfSection struct {
	place
	API      socket              `key:"api" default:"127.0.0.1:2607" to:"-"`
	Announce list[cidr]          `key:"announce" most:"1024" unique:"the prefix %"`
	Accept   list[acceptSection] `key:"accept" most:"1024"`
}

type ospf6Section struct {
	place
	Socket   text                `key:"socket" default:"/var/run/frr/ospf6d.vty"`
	Interval duration            `key:"interval" default:"10s" min:"1s" max:"1h"`
	Accept   list[acceptSection] `key:"accept" most:"1024"`
}
