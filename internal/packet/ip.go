package packet

// Protocol numbers (IANA "Assigned Internet Protocol Numbers"), as in IPv4's Protocol and IPv6's Next Header.
const (
	ProtoHopByHop = 0
	ProtoICMP     = 1
	ProtoIPv4     = 4 // IPv4 in IP (RFC 2003, RFC 2473)
	ProtoTCP      = 6
	ProtoUDP      = 17
	ProtoIPv6     = 41 // IPv6 in IP (RFC 4213, RFC 2473)
	ProtoRouting  = 43
	ProtoFragment = 44
	ProtoGRE      = 47
	ProtoAH       = 51
	ProtoICMPv6   = 58
	ProtoNoNext   = 59 // IPv6: no next header (RFC 8200 4.7)
	ProtoDestOpts = 60
	ProtoEthernet = 143 // an Ethernet frame in IPv6 (RFC 8986 10.1)
)

// IPHeaderLen is the length in octets of an IP header without options for an address.
func IPHeaderLen(a Addr) int {
	if a.Is4() {
		return IPv4Len
	}
	return IPv6Len
}
