package packet

// Option is an option of a Hop-by-Hop or Destination Options header (RFC 8200 4.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Option Type  |  Opt Data Len |  Option Data                  ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Pad1 is a type octet of 0 alone.
type Option struct {
	Type uint8
	Data []byte // at most 255 octets
}

// Option types that are padding (RFC 8200 4.2).
const (
	OptionPad1 = 0
	OptionPadN = 1
)

// OptionHeaderLen is the length in octets of what precedes an option's data.
const OptionHeaderLen = 2

// optionAct are the two high bits of an option type: 0 is to skip an unknown option, any other value to discard the packet.
const optionAct = 0xc0

// Skippable reports whether a node that doesn't know the option continues with the packet (RFC 8200 4.2, act 00).
func (o Option) Skippable() bool { return o.Type&optionAct == 0 }

// NextOption reads the option at the front of a list of options and returns it with its length in octets, at least 1; the length is 0 if
// the list is empty or the option exceeds it. Data is a view of the list.
func NextOption(list []byte) (Option, int) {
	if len(list) == 0 {
		return Option{}, 0
	}
	if list[0] == OptionPad1 {
		return Option{}, 1
	}
	if len(list) < OptionHeaderLen {
		return Option{}, 0
	}
	end := OptionHeaderLen + int(list[1])
	if len(list) < end {
		return Option{}, 0
	}
	return Option{list[0], list[OptionHeaderLen:end]}, end
}

// OptionsHeader returns the complete Hop-by-Hop or Destination Options header at off (RFC 8200 4.3, 4.6), or nil if it exceeds limit or
// isn't completely in b. Its list of options starts at octet 2.
func OptionsHeader(b []byte, off, limit int) []byte {
	limit = min(limit, len(b))
	if off < 0 || limit < off+8 {
		return nil
	}
	end := off + extHeaderLen(ProtoDestOpts, b[off+1])
	if end > limit {
		return nil
	}
	return b[off:end]
}

// OptionsOK checks every Hop-by-Hop and Destination Options header of an IPv6 packet whose extension headers are valid up to p.L4. whole:
// no option exceeds its header. skippable: a node that knows only the Fast CNP options may continue with the packet (RFC 8200 4.2). The
// frame is in b at least up to p.L4.
func OptionsOK(b []byte, p *Parsed, c *CodePoints) (whole, skippable bool) {
	skippable = true
	for next, header := range extHeaders(b, p) {
		if next != ProtoHopByHop && next != ProtoDestOpts {
			continue
		}
		for list := header[2:]; len(list) > 0; { // each iteration uses at least one of at most 2,046 octets
			o, size := NextOption(list)
			if size == 0 {
				return false, skippable
			}
			known := next == ProtoDestOpts && (o.Type == c.FastCNPOption || o.Type == c.FastCNPTraceOption)
			skippable = skippable && (known || o.Skippable())
			list = list[size:]
		}
	}
	return true, skippable
}

// IPv4 options (RFC 791 3.1).
const (
	optionEnd          = 0
	optionNOP          = 1
	optionLooseRoute   = 131
	optionStrictRoute  = 137
	ipv4OptionShortest = 2 // octets, of an option other than the first two
)

// SourceRouted reports whether the host at a parsed IP packet's destination address would forward it to another one: it has an IPv4 source
// route, or an IPv6 Routing header with segments left (RFC 8200 4.4). It is also true for unreadable IPv4 options. It reads extension
// headers up to p.L4, which must not be 0 over IPv6.
func SourceRouted(b []byte, p *Parsed) bool {
	switch p.Family {
	case 4:
		return routed4(b, p)
	case 6:
		for next, header := range extHeaders(b, p) {
			if next == ProtoRouting && header[3] != 0 {
				return true
			}
		}
	}
	return false
}

func routed4(b []byte, p *Parsed) bool {
	at, end := int(p.L3)+IPv4Len, int(p.L3)+int(b[p.L3]&0xf)*4
	if end > len(b) {
		return true
	}
	for at < end { // each iteration uses at least one of at most 40 octets
		switch option := b[at]; {
		case option == optionEnd:
			return false
		case option == optionNOP:
			at++
			continue
		case option == optionLooseRoute, option == optionStrictRoute, at+1 == end, b[at+1] < ipv4OptionShortest:
			return true
		}
		at += int(b[at+1])
	}
	return false
}
