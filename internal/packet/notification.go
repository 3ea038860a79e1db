package packet

// CodePoints are the numbers of notifications that no registry has assigned yet; all nodes of a domain must agree on them.
type CodePoints struct {
	FastCNPOption      uint8  // IPv6 option type of Fast CNP option 1 (draft-xiao-fast-cnp 6, TBD1)
	FastCNPTraceOption uint8  // IPv6 option type of Fast CNP option 2, with a trace (TBD2). May be the same
	LongHaulICMPv6Type uint8  // ICMPv6 type of the Long-haul CNP (draft-tian 6.1)
	ProxyPort          uint16 // UDP destination port of notifications to a proxy (draft-xiao-proxy)
	ExtensionClass     uint8  // Class-Num of the Long-haul CNP's Extension Objects (draft-tian 10.3)
}

// DefaultCodePoints are from the ranges for experiments and private use: RFC 4727, RFC 4443 2.1, and private use of RFC 4884.
var DefaultCodePoints = CodePoints{FastCNPOption: 0x9e, FastCNPTraceOption: 0x9e, LongHaulICMPv6Type: 200, ProxyPort: 1022, ExtensionClass: 247}

// Notification is a kind of congestion notification, as distinguishable on the wire.
type Notification uint8

const (
	NotANotification  Notification = iota
	StandardCNP                    // RoCEv2 CNP (IBTA Annex A17)
	FastCNP                        // RoCEv2 CNP after a Destination Options header with a Fast CNP option
	ExtendedCNP                    // RoCEv2 CNP with ExtensionBit: Long-haul CNP or PPFC, which are not distinguishable on the wire
	LongHaulICMPv6                 // Long-haul CNP as an ICMPv6 message
	ProxyNotification              // UDP to the proxy port
)

// String returns the kind as in reports and metrics; "" for NotANotification.
func (n Notification) String() string {
	switch n {
	case StandardCNP:
		return "standard-cnp"
	case FastCNP:
		return "fast-cnp"
	case ExtendedCNP:
		return "extended-cnp"
	case LongHaulICMPv6:
		return "long-haul-cnp-icmpv6"
	case ProxyNotification:
		return "proxy-notification"
	}
	return ""
}

// Classify returns the kind of congestion notification of the parsed frame. A CNP with both the Fast CNP option and ExtensionBit is a Fast
// CNP: its receiver acts on the option. What is in a tunnel is no notification for the network that the tunnel crosses. b is the frame that
// was parsed.
func Classify(b []byte, p *Parsed, c *CodePoints) Notification {
	if p.Encapsulated() {
		return NotANotification
	}
	return classify(b, p, c)
}

// classify is Classify, also for what is in a tunnel.
func classify(b []byte, p *Parsed, c *CodePoints) Notification {
	switch {
	case p.Kind == RoCEv2:
		if p.Opcode != CNP {
			return NotANotification
		}
		return classifyCNP(b, p, c)
	case p.Proto == ProtoICMPv6 && p.Family == 6:
		if at := int(p.L4); at != 0 && at < int(p.IPEnd) && at < len(b) && b[at] == c.LongHaulICMPv6Type {
			return LongHaulICMPv6
		}
	case p.Proto == ProtoUDP && p.DstPort == c.ProxyPort:
		return ProxyNotification
	}
	return NotANotification
}

func classifyCNP(b []byte, p *Parsed, c *CodePoints) Notification {
	switch {
	case p.DstOpts != 0 && hasDestOption(b, p, c):
		return FastCNP
	case p.BTHFlags&ExtensionBit != 0:
		return ExtendedCNP
	}
	return StandardCNP
}

// hasDestOption looks for a Fast CNP option in each Destination Options header of a packet whose extension headers are valid up to p.L4. It
// checks all such headers: the domain filter must find every option that a receiver finds.
func hasDestOption(b []byte, p *Parsed, c *CodePoints) bool {
	next, off := b[p.L3+6], int(p.L3)+IPv6Len
	for n := 0; n < maxExtHeaders && off < int(p.L4); n++ {
		end := off + extHeaderLen(next, b[off+1])
		if next == ProtoDestOpts && hasOption(b[off+2:end], c.FastCNPOption, c.FastCNPTraceOption) {
			return true
		}
		next, off = b[off], end
	}
	return false
}

// optPad1 is the one option without a length octet (RFC 8200 4.2).
const optPad1 = 0

// hasOption reports whether a list of at most 2,046 octets of options (RFC 8200 4.2) holds a whole one of either type. Each iteration uses at
// least one octet.
func hasOption(options []byte, either, other uint8) bool {
	for len(options) > 0 {
		size := 1
		if options[0] != optPad1 {
			if len(options) < 2 || len(options) < 2+int(options[1]) {
				return false
			}
			size = 2 + int(options[1])
		}
		if options[0] == either || options[0] == other {
			return true
		}
		options = options[size:]
	}
	return false
}
