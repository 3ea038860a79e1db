package cnpdec

import "github.com/cnpgate/cnpgate/internal/packet"

// readFastCNP reads a Fast CNP (draft-xiao-fast-cnp 4). Its Destination Options header must be the packet's only one and directly
// precede UDP, with at most a Hop-by-Hop Options header before it. So the option found by Classify is the one read here.
func (r *Receiver) readFastCNP(frame []byte, p *packet.Parsed, n *Notification) Reason {
	n.Body = frame[p.Ext():p.ICRC]
	if reason := r.readCNP(frame, p, n, len(n.Body) == packet.CNPReservedLen); reason != Accepted {
		return reason
	}
	at := int(p.DstOpts)
	before := int(p.L3) + packet.IPv6Len
	if p.HopOpts != 0 {
		before = int(p.HopOpts) + len(packet.OptionsHeader(frame, int(p.HopOpts), int(p.L4)))
	}
	header := packet.OptionsHeader(frame, at, int(p.L4))
	if at != before || at+len(header) != int(p.L4) {
		return OptionMisplaced
	}
	n.Start = at
	if reason := decodeOptions(header, &r.Code, &n.Fast); reason != Accepted {
		return reason
	}
	if impostor(n.Family, n.Fast.Option.Dst) {
		return WrongAddress
	}
	return r.knownFlow(n, n.Fast.Option.Dst)
}

// decodeOptions reads a Destination Options header with one Fast CNP option. Padding and skippable options may surround it in any way: the
// drafts require no layout.
func decodeOptions(header []byte, c *packet.CodePoints, h *packet.FastCNPHeader) Reason {
	list, found := header[2:], false
	for at := 0; at < len(list); { // each iteration uses at least one of at most 2,046 octets
		o, size := packet.NextOption(list[at:])
		ours := o.Type == c.FastCNPOption || o.Type == c.FastCNPTraceOption
		switch {
		case size == 0:
			return OptionMalformed
		case ours && found:
			return OptionRepeated
		case ours:
			option, ok := packet.DecodeFastCNPOption(o.Data)
			if !ok || o.Type != typeOf(&option, c) {
				return OptionMalformed
			}
			*h = packet.FastCNPHeader{NextHeader: header[0], Type: o.Type, Option: option, Before: list[:at], After: list[at+size:]}
			found = true
		case !o.Skippable():
			return OptionUnknown
		}
		at += size
	}
	if !found {
		return OptionMisplaced
	}
	return Accepted
}

// typeOf returns the type of an option with this content.
func typeOf(o *packet.FastCNPOption, c *packet.CodePoints) uint8 {
	if o.Trace.Data != nil {
		return c.FastCNPTraceOption
	}
	return c.FastCNPOption
}
