package congestion

// Format is a kind of notification.
type Format uint8

const (
	FastCNP           Format = iota // draft-xiao-rtgwg-rocev2-fast-cnp-05
	LongHaulCNP                     // RoCEv2 format, draft-tian 6.2
	LongHaulCNPICMPv6               // ICMPv6 format, draft-tian 6.1
	PPFC                            // draft-xz-rtgwg-ppfc-rocv2-00
	StandardCNP                     // IBTA Annex A17
	ProxyNotification               // draft-xiao-rtgwg-proxy-congestion-notification-03
)

const (
	// Formats is the number of formats.
	Formats = 6
	// EndpointFormats is the number of formats that go to a sender: the first ones. The others go to its proxy.
	EndpointFormats = int(ProxyNotification)
)

// formats has the properties of each format. The builders are in cnpgen, the decoders in cnpdec.
var formats = [Formats]struct {
	name      string
	ipv4      bool  // exists for IPv4; all exist for IPv6
	sourceQP  bool  // names the source QP, so the flow's must be confirmed
	receivers bool  // its source address is the receiver's, so the gateway needs none
	asks      uint8 // the actions that it can ask for, a bit for each
}{
	FastCNP:           {name: "fast-cnp", asks: canNotify | canSlowDown}, // names the receiver's QP
	LongHaulCNP:       {name: "long-haul-cnp", ipv4: true, sourceQP: true, asks: canNotify | canSlowDown | canResume},
	LongHaulCNPICMPv6: {name: "long-haul-cnp-icmpv6", sourceQP: true, asks: canNotify | canSlowDown | canResume},
	PPFC:              {name: "ppfc", ipv4: true, asks: canSlowDown | canResume}, // names the receiver and its QP; pauses only
	StandardCNP:       {name: "standard-cnp", ipv4: true, sourceQP: true, receivers: true, asks: canNotify | canSlowDown},
	ProxyNotification: {name: "proxy-notification", ipv4: true, asks: canNotify | canSlowDown}, // has a level, and no action
}

// Actions that a format can ask for. Some can ask for RateReduce and Pause only together, as "slow down".
const (
	canNotify   = 1 << Notify
	canSlowDown = 1<<RateReduce | 1<<Pause
	canResume   = 1 << Resume
)

// String is the format's name in configuration, reports and metrics.
func (f Format) String() string {
	if f >= Formats {
		return "unknown"
	}
	return formats[f].name
}

// Expresses reports whether a notification of the format can ask for an action.
func (f Format) Expresses(a Action) bool { return formats[f].asks>>a&1 != 0 }

// Preference is the formats that an endpoint accepts, the preferred one first. The zero value accepts none.
type Preference uint32 // preferenceBits for each format, the first one lowest: the format plus 1

const (
	preferenceBits = 4
	preferenceMask = 1<<preferenceBits - 1
)

var _ [32 - EndpointFormats*preferenceBits]struct{} // they fit

// Prefer makes a Preference. It ignores formats that don't go to a sender, and repetitions.
func Prefer(formats ...Format) Preference {
	p, n := Preference(0), 0
	for _, f := range formats {
		if int(f) < EndpointFormats && !p.Accepts(f) {
			p |= Preference(f+1) << n
			n += preferenceBits
		}
	}
	return p
}

// Accepts reports whether f is among the accepted formats.
func (p Preference) Accepts(f Format) bool {
	for ; p != 0; p >>= preferenceBits {
		if p.first() == f {
			return true
		}
	}
	return false
}

// first is the preferred format; p accepts one.
func (p Preference) first() Format { return Format(p&preferenceMask - 1) }
