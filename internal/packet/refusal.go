package packet

import "encoding/binary"

// ICMPv6 Parameter Problem (RFC 4443 3.4), and its Code for an IPv6 option that the host doesn't know.
const (
	icmpv6ParameterProblem = 4
	unknownOption          = 2
	parameterProblemLen    = 8 // octets in front of the invoking packet
)

// FastCNPRefusal is the reply of a host that doesn't know the Fast CNP option. The option's type makes such a host discard the packet and
// send an ICMPv6 Parameter Problem, Code 2, with the packet (draft-xiao-fast-cnp-05 4, RFC 8200 4.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 4    |   Code = 2    |          Checksum             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Pointer: where the option is in the invoking packet      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Fast CNP from its IPv6 header on                             ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type FastCNPRefusal struct {
	Dst    Addr   // of the data packet, from the option of the Fast CNP
	DestQP uint32 // of the Fast CNP
}

// ParameterProblem reports whether a parsed frame is a complete ICMPv6 Parameter Problem.
func ParameterProblem(b []byte, p *Parsed) bool {
	l4 := int(p.L4)
	return p.Kind == IP && p.Family == 6 && p.Proto == ProtoICMPv6 && l4 != 0 && int(p.IPEnd) <= len(b) && l4+parameterProblemLen <= int(p.IPEnd) &&
		b[l4] == icmpv6ParameterProblem
}

// DecodeFastCNPRefusal reads an ICMPv6 Parameter Problem. It returns false for one that isn't about the option of a Fast CNP from the packet's
// destination to its source, and for one with a wrong checksum.
func DecodeFastCNPRefusal(b []byte, p *Parsed, c *CodePoints) (r FastCNPRefusal, ok bool) {
	message := b[p.L4:p.IPEnd]
	pointer, invoking := binary.BigEndian.Uint32(message[4:]), message[parameterProblemLen:]
	const options = IPv6Len // where the Destination Options header of a Fast CNP begins
	if message[1] != unknownOption || len(invoking) < options+8 || invoking[6] != ProtoDestOpts ||
		AddrFrom16(invoking[8:]) != p.Dst || AddrFrom16(invoking[24:]) != p.Src || binary.BigEndian.Uint16(message[2:]) != ICMPv6Checksum(p.Src, p.Dst, message) {
		return r, false
	}
	udp := options + extHeaderLen(ProtoDestOpts, invoking[options+1])
	if len(invoking) < udp+UDPLen+BTHLen || pointer < options+2 || uint64(pointer)+OptionHeaderLen > uint64(udp) {
		return r, false
	}
	option := invoking[pointer:udp]
	end := OptionHeaderLen + int(option[1])
	if option[0] != c.FastCNPOption && option[0] != c.FastCNPTraceOption || end > len(option) {
		return r, false
	}
	fields, ok := DecodeFastCNPOption(option[OptionHeaderLen:end])
	const destQP = UDPLen + 4
	return FastCNPRefusal{Dst: fields.Dst, DestQP: binary.BigEndian.Uint32(invoking[udp+destQP:]) & 0xffffff}, ok
}
