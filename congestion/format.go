package congestion

// Format is a kind of notification: what a sender can be told by.
type Format uint8

const (
	FastCNP           Format = iota // draft-xiao-rtgwg-rocev2-fast-cnp-05; IPv6 only
	LongHaulCNP                     // RoCEv2 format, draft-tian 6.2
	LongHaulCNPICMPv6               // ICMPv6 format, draft-tian 6.1
	PPFC                            // draft-xz-rtgwg-ppfc-rocv2-00
	StandardCNP                     // IBTA Annex A17
)

// Formats is the number of formats.
const Formats = 5

var formatNames = [Formats]string{"fast-cnp", "long-haul-cnp", "long-haul-cnp-icmpv6", "ppfc", "standard-cnp"}

// String is the format's name in configuration, reports and metrics.
func (f Format) String() string {
	if f >= Formats {
		return "unknown"
	}
	return formatNames[f]
}

// Preference is what an endpoint accepts, the format it likes best first. The zero value accepts nothing.
type Preference struct {
	order [Formats]Format
	n     uint8
}

// Prefer makes a preference. A format given twice keeps its first place; what is no format is left out.
func Prefer(formats ...Format) Preference {
	var p Preference
	for _, f := range formats {
		if f < Formats && !p.Accepts(f) {
			p.order[p.n] = f
			p.n++
		}
	}
	return p
}

// Accepts tells whether f is among the preferred formats.
func (p Preference) Accepts(f Format) bool {
	for _, accepted := range p.order[:p.n] {
		if accepted == f {
			return true
		}
	}
	return false
}
