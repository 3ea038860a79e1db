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

// Notification is a kind of notification. It is the index of all tables by kind: builders are in cnpgen, decoders in cnpdec.
type Notification uint8

const (
	FastCNP           Notification = iota // RoCEv2 CNP after a Destination Options header with a Fast CNP option (draft-xiao-fast-cnp 4)
	LongHaulCNP                           // Long-haul CNP as a RoCEv2 CNP with ExtensionBit (draft-tian 6.2)
	LongHaulCNPICMPv6                     // Long-haul CNP as an ICMPv6 message (draft-tian 6.1)
	PPFC                                  // RoCEv2 CNP with ExtensionBit (draft-xz-ppfc 3)
	StandardCNP                           // RoCEv2 CNP (IBTA Annex A17)
	ProxyNotification                     // UDP to the proxy port (draft-xiao-proxy 4), the last one that a gateway sends
	ExtendedCNP                           // received RoCEv2 CNP with ExtensionBit: nothing on the wire says which of LongHaulCNP and PPFC it is
	LinkPause                             // PAUSE of a link (IEEE 802.3 31B)
	LinkPFC                               // PFC of a link (IEEE 802.1Qbb)
	NotANotification
)

const (
	// Notifications is the number of kinds.
	Notifications = int(NotANotification)
	// ReceivedNotifications is the number of kinds that Classify distinguishes, or is for: the first ones.
	ReceivedNotifications = int(ExtendedCNP) + 1
	// SentNotifications is the number of kinds that a gateway sends: the first ones.
	SentNotifications = int(ProxyNotification) + 1
	// SenderNotifications is the number of kinds that go to a sender: the first ones. The others go to its proxy.
	SenderNotifications = int(ProxyNotification)
)

// kinds has the properties of each kind.
var kinds = [Notifications + 1]struct {
	name         string
	section      string // of the configuration, which enables it
	ipv4         bool   // exists for IPv4; all exist for IPv6
	sourceQP     bool   // names the source QP, so the flow's must be confirmed
	fromReceiver bool   // its source address is the receiver's, so the gateway needs none
	extension    bool   // has ExtensionBit, so that on the wire it is an ExtendedCNP
	asks         uint8  // the actions that it can ask for, a bit for each
	slows        Slowing
}{
	FastCNP: { // names the receiver and its QP
		name: "fast-cnp", section: "notifications.fast_cnp",
		asks: canNotify | canSlowDown, slows: ByCut},
	LongHaulCNP: {
		name: "long-haul-cnp", section: "notifications.long_haul_cnp", ipv4: true, sourceQP: true, extension: true,
		asks: canNotify | canSlowDown | canResume, slows: ToRate},
	LongHaulCNPICMPv6: {
		name: "long-haul-cnp-icmpv6", section: "notifications.long_haul_cnp", sourceQP: true,
		asks: canNotify | canSlowDown | canResume, slows: ToRate},
	PPFC: { // names the receiver and its QP; pauses only
		name: "ppfc", section: "notifications.ppfc", ipv4: true, extension: true,
		asks: canSlowDown | canResume, slows: ByPause},
	StandardCNP: {
		name: "standard-cnp", section: "notifications.standard_cnp", ipv4: true, sourceQP: true, fromReceiver: true,
		asks: canNotify | canSlowDown, slows: ByCut},
	ProxyNotification: { // has a level, and no action
		name: "proxy-notification", section: "proxy", ipv4: true,
		asks: canNotify | canSlowDown, slows: ByCut},
	ExtendedCNP:      {name: "extended-cnp"},
	LinkPause:        {name: "pause"},
	LinkPFC:          {name: "pfc"},
	NotANotification: {name: "none"},
}

// Actions that a kind can ask for. Some can ask for RateReduce and Pause only together, as "slow down".
const (
	canNotify   = 1 << ActionNotify
	canSlowDown = 1<<ActionRateReduce | 1<<ActionPause
	canResume   = 1 << ActionResume
)

// Slowing is how a kind makes a sender slow down, for the control law.
type Slowing uint8

const (
	ByCut   Slowing = iota + 1 // each cuts the rate by the sender's own algorithm, as a CNP does
	ToRate                     // it says by how much
	ByPause                    // it says for how long the sender stops
)

// String is the kind's name in configuration, reports and metrics.
func (n Notification) String() string {
	if n > NotANotification {
		return "unknown"
	}
	return kinds[n].name
}

// Section is the section of the configuration that enables the kind and says how it is sent.
func (n Notification) Section() string { return kinds[n].section }

// Over reports whether the kind exists for an IP version.
func (n Notification) Over(is4 bool) bool { return !is4 || kinds[n].ipv4 }

// NamesSourceQP reports whether the kind names the flow's source QP.
func (n Notification) NamesSourceQP() bool { return kinds[n].sourceQP }

// FromReceiver reports whether the kind has the address of the data's receiver as its source, otherwise the gateway's.
func (n Notification) FromReceiver() bool { return kinds[n].fromReceiver }

// Extended reports whether the kind is an ExtendedCNP on the wire. A host can obey only one such kind.
func (n Notification) Extended() bool { return kinds[n].extension }

// Received is the kind as which Classify finds it.
func (n Notification) Received() Notification {
	if n.Extended() {
		return ExtendedCNP
	}
	return n
}

// Slows is how the kind makes a sender slow down; all kinds that are sent do.
func (n Notification) Slows() Slowing { return kinds[n].slows }

// Formats are the kinds that go to a sender besides the standard CNP.
var Formats = func() (all []Notification) {
	for n := range Notification(SenderNotifications) {
		if n != StandardCNP {
			all = append(all, n)
		}
	}
	return all
}()

// FormatNames are their names.
var FormatNames = func() (names []string) {
	for _, n := range Formats {
		names = append(names, n.String())
	}
	return names
}()

// Expresses reports whether a notification of the kind can ask for an action.
func (n Notification) Expresses(a Action) bool { return kinds[n].asks>>a&1 != 0 }

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
			return LongHaulCNPICMPv6
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
	for next, header := range extHeaders(b, p) {
		if next != ProtoDestOpts {
			continue
		}
		list := header[2:]
		for o, size := NextOption(list); size > 0; o, size = NextOption(list) { // each uses at least one of at most 2,046 octets
			if o.Type == c.FastCNPOption || o.Type == c.FastCNPTraceOption {
				return true
			}
			list = list[size:]
		}
	}
	return false
}
