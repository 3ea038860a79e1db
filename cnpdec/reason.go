package cnpdec

// Reason is why a packet is refused.
type Reason uint8

const (
	Accepted Reason = iota
	NotANotification
	Truncated
	WrongLength
	WrongAddress
	UntrustedSource
	WrongChecksum
	WrongICRC
	WrongBTH
	UnknownPKey
	UnknownQP
	UnknownFlow
	OptionMisplaced
	OptionRepeated
	OptionUnknown
	OptionMalformed
	UnknownCode
	WrongParameter
	WrongMetric
	WrongSourceQP
	ExtensionEmpty
	ExtensionVersion
	ExtensionChecksum
	ObjectMalformed
	ObjectPadding
	ObjectContent
	UnknownPauseType
	FiveTupleMalformed
	FiveTupleMismatch
	UnknownMACControl
	WrongDestination

	// Reasons is the number of reasons, including Accepted: the size of a table of counters.
	Reasons = iota
)

var reasons = [Reasons]struct{ name, text string }{
	Accepted:         {"accepted", "nothing is wrong"},
	NotANotification: {"not-a-notification", "no format known here; check the code points (option type, ICMPv6 type, proxy port)"},
	Truncated:        {"truncated", "the packet isn't whole; capture full frames"},
	WrongLength: {"wrong-length",
		"its length isn't what its format asks for; check which of Long-haul CNP and PPFC the sender speaks"},
	WrongAddress: {"wrong-address",
		"its source or destination isn't the address of one host, or an IPv6 address in it is an IPv4-mapped one"},
	UntrustedSource: {"untrusted-source", "its source address isn't on the access list"},
	WrongChecksum: {"wrong-checksum",
		"the IPv4, UDP or ICMPv6 checksum is wrong: the packet was damaged, or captured before the device filled it in"},
	WrongICRC: {"wrong-icrc",
		"the ICRC is wrong: the packet was damaged, or its sender treats IPv6 extension headers in another way; see icrc_extension_headers"},
	WrongBTH: {"wrong-bth",
		"the BTH isn't a CNP's: SE, PadCount, FECN, AckReq and PSN are to be 0, BECN 1, and with an extension MigReq 0"},
	UnknownPKey: {"unknown-p-key", "its partition key is neither 0xFFFF nor one of this host's"},
	UnknownQP:   {"unknown-qp", "it names a QP that isn't active here"},
	UnknownFlow: {"unknown-flow", "it names a receiver and QP to which no QP here is connected"},
	OptionMisplaced: {"option-misplaced",
		"the Fast CNP option isn't in the one Destination Options header that stands directly before UDP"},
	OptionRepeated: {"option-repeated", "there is more than one Fast CNP option"},
	OptionUnknown: {"option-unknown",
		"there is an unknown IPv6 option that forbids to go on (RFC 8200 4.2); check the option type of Fast CNP"},
	OptionMalformed: {"option-malformed",
		"an IPv6 option goes past its header, or the Fast CNP option hasn't 16 octets of data, nor 26 and more with an IOAM trace"},
	UnknownCode: {"unknown-code", "the ICMPv6 code isn't 0, flow level"},
	WrongParameter: {"wrong-parameter",
		"the parameter doesn't go with the action: 0 for Notify, 0 to 100 for Rate Reduce and Resume"},
	WrongMetric:       {"wrong-metric", "an ECN marking rate is above 100 percent"},
	WrongSourceQP:     {"wrong-source-qp", "the Source QP Number has more than 24 bits"},
	ExtensionEmpty:    {"extension-empty", "there is an Extension Header without an object behind it"},
	ExtensionVersion:  {"extension-version", "the Extension Header's version isn't 2"},
	ExtensionChecksum: {"extension-checksum", "the Extension Header's checksum is wrong"},
	ObjectMalformed:   {"object-malformed", "an Extension Object's length is below 4, or goes past the message"},
	ObjectPadding:     {"object-padding", "an Extension Object is padded with something else than zeros"},
	ObjectContent:     {"object-content", "a timestamp object hasn't 8 octets, or a device identifier isn't UTF-8"},
	UnknownPauseType:  {"unknown-pause-type", "the PT field is neither 0, pause, nor 1, resume"},
	FiveTupleMalformed: {"five-tuple-malformed",
		"the five-tuple's IP version is neither 4 nor 6, or it is cut"},
	FiveTupleMismatch: {"five-tuple-mismatch",
		"the five-tuple isn't that of the invoking packet, or that isn't an IP packet"},
	UnknownMACControl: {"unknown-mac-control", "the MAC control opcode is neither PAUSE nor PFC"},
	WrongDestination: {"wrong-destination",
		"a MAC control frame goes to 01:80:c2:00:00:01, a PAUSE also to a station's own address"},
}

// String returns the reason as in a metric's label.
func (r Reason) String() string {
	if int(r) < Reasons {
		return reasons[r].name
	}
	return "unknown"
}

// Explain describes to an operator what was wrong and, if possible, what to check.
func (r Reason) Explain() string {
	if int(r) < Reasons {
		return reasons[r].text
	}
	return "unknown reason"
}
