// Package cnpdec reads notifications of cnpgen and of other vendors' gateways: standard CNP, Fast CNP, Long-haul CNP in both formats, PPFC
// notification and notification to a proxy; also the PAUSE and PFC frames of a link. Decode takes a frame that packet.Parse has parsed,
// makes all checks that the drafts require of a receiver, and fills a Notification or returns why the packet is refused. The package has no
// state, doesn't allocate, and doesn't act on notifications.
//
// An accepted packet can be rebuilt octet by octet from the Notification: it keeps bits that receivers must ignore. A packet that can't be
// rebuilt isn't accepted.
package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// Kind is the format of a decoded notification. It determines which fields of a Notification are set.
type Kind uint8

const (
	None              Kind = iota
	StandardCNP            // IBTA Annex A17; also a CNP with ExtensionBit at a receiver that supports no extension
	FastCNP                // draft-xiao-fast-cnp 4
	LongHaulCNP            // draft-tian 6.2
	LongHaulCNPICMPv6      // draft-tian 6.1
	PPFC                   // draft-xz-ppfc 3
	ProxyNotification      // draft-xiao-proxy 4
	Pause                  // IEEE 802.3 31B
	PFC                    // IEEE 802.1Qbb
)

var kindNames = [...]string{
	None: "none", StandardCNP: "standard-cnp", FastCNP: "fast-cnp", LongHaulCNP: "long-haul-cnp", LongHaulCNPICMPv6: "long-haul-cnp-icmpv6",
	PPFC: "ppfc", ProxyNotification: "proxy-notification", Pause: "pause", PFC: "pfc",
}

// String returns the kind as in configuration and metrics.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Notification is a decoded notification. Slices in it are views of the frame.
type Notification struct {
	Kind       Kind
	Family     uint8       // 4 or 6; 0 of Pause and PFC
	Src, Dst   packet.Addr // of the IP header
	Start, End int         // the notification's octets in the frame: after the IP header, or after the Ethernet header

	UDP  packet.UDPHeader // all kinds but LongHaulCNPICMPv6, Pause and PFC
	BTH  packet.BTH       // StandardCNP, FastCNP, LongHaulCNP, PPFC
	ICRC ICRCCoverage     // the same: what its ICRC covers

	Body     []byte               // StandardCNP, FastCNP: what is between BTH and ICRC, reserved
	Fast     packet.FastCNPHeader // FastCNP
	LongHaul LongHaul             // LongHaulCNP, LongHaulCNPICMPv6
	PPFC     packet.PPFC          // PPFC
	Proxy    Proxy                // ProxyNotification
	Pause    packet.Pause         // Pause
	PFC      packet.PFC           // PFC
}

// FromReceiver reports whether the data's receiver sent a Fast CNP, rather than a device on the path (draft-xiao-fast-cnp 4).
func (n *Notification) FromReceiver() bool { return n.Kind == FastCNP && n.Src == n.Fast.Option.Dst }
