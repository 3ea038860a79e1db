package congestion

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// Enabled are the formats that the operator has switched on; none is by default (draft-xiao-fast-cnp-05 5, draft-tian 10.5). PPFC
// and standard CNP are not among them: this version builds neither.
type Enabled struct{ FastCNP, LongHaulCNP, LongHaulCNPICMPv6 bool }

// Policy decides who may be told and how. It is immutable: workers share one.
type Policy struct {
	Enabled          Enabled
	HasIPv4, HasIPv6 bool // whether the gateway has an address of the family to send from
	// Endpoints are the hosts configured to accept notifications, the longest prefix first; nil: none. draft-tian 10.5 forbids a
	// Long-haul CNP to any other host, and Fast CNP is for a controlled domain (draft-xiao-fast-cnp-05 5).
	Endpoints *prefix.Table[Preference]
}

// Reason is why a sender can't be told. Of several formats' reasons the one that came nearest to success is given, which is the
// largest.
type Reason uint8

const (
	OK               Reason = iota
	NotUnicast              // the source is no host's address
	NoEndpoint              // no configured prefix covers the source
	NothingAccepted         // the source's endpoint accepts no format
	NotEnabled              // none of the accepted formats is enabled
	WrongFamily             // the enabled ones don't exist for the source's IP version
	NoGatewayAddress        // the gateway has no address of the source's IP version
	SourceQPUnknown         // the format names the source QP, and the flow's isn't confirmed
)

// Reasons is the number of reasons, OK included.
const Reasons = 8

var reasonNames = [Reasons]string{"ok", "not-unicast", "no-endpoint", "nothing-accepted", "not-enabled", "wrong-family",
	"no-gateway-address", "source-qp-unknown"}

// String is the reason's name in reports and metrics.
func (r Reason) String() string {
	if r >= Reasons {
		return "unknown"
	}
	return reasonNames[r]
}

// Choose gives the format to tell src, the sender of congested data, by: the first in its endpoint's order of preference that is
// enabled and possible. sourceQPKnown tells whether the flow's source QP is confirmed. The format counts for Reason OK only.
func (p *Policy) Choose(src packet.Addr, sourceQPKnown bool) (Format, Reason) {
	if !unicast(src) {
		return 0, NotUnicast
	}
	return p.choose(src, sourceQPKnown)
}

// Choice is what a policy's Choose says of all senders of a range of addresses. To keep the last one saves a search where senders are
// of few prefixes.
type Choice struct {
	around         prefix.Range
	known, unknown answer // by whether the source QP is
}

type answer struct {
	format Format
	reason Reason
}

// Around makes the choice for the range that src, a host's address, lies in; of any other address there is none, and false is returned.
func (p *Policy) Around(src packet.Addr, c *Choice) bool {
	if !unicast(src) {
		return false
	}
	c.around = p.Endpoints.Around(src)
	c.known.format, c.known.reason = p.choose(src, true)
	c.unknown.format, c.unknown.reason = p.choose(src, false)
	return true
}

// Covers tells whether the choice is for this sender, too. The zero Choice is for none.
func (c *Choice) Covers(src packet.Addr) bool { return c.around.Has(src) && unicast(src) }

// Of gives what Choose would.
func (c *Choice) Of(sourceQPKnown bool) (Format, Reason) {
	if sourceQPKnown {
		return c.known.format, c.known.reason
	}
	return c.unknown.format, c.unknown.reason
}

// choose is Choose for a host's address.
func (p *Policy) choose(src packet.Addr, sourceQPKnown bool) (Format, Reason) {
	if p.Endpoints == nil {
		return 0, NoEndpoint
	}
	endpoint, ok := p.Endpoints.Lookup(src)
	if !ok {
		return 0, NoEndpoint
	}
	nearest := NothingAccepted
	for _, f := range endpoint.order[:endpoint.n] {
		reason := p.possible(f, src.Is4(), sourceQPKnown)
		if reason == OK {
			return f, OK
		}
		nearest = max(nearest, reason)
	}
	return 0, nearest
}

// possible tells whether a sender of the family can be told by f now.
func (p *Policy) possible(f Format, is4, sourceQPKnown bool) Reason {
	switch {
	case !p.Enabled.has(f):
		return NotEnabled
	case is4 && f != LongHaulCNP:
		return WrongFamily // draft-xiao-fast-cnp-05 3: only IPv6; draft-tian 4: the ICMPv6 format is for IPv6 only
	case is4 && !p.HasIPv4, !is4 && !p.HasIPv6:
		return NoGatewayAddress
	case f != FastCNP && !sourceQPKnown:
		return SourceQPUnknown // a guessed one would slow down an innocent flow; a Fast CNP names the receiver's QP
	}
	return OK
}

func (e Enabled) has(f Format) bool {
	switch f {
	case FastCNP:
		return e.FastCNP
	case LongHaulCNP:
		return e.LongHaulCNP
	case LongHaulCNPICMPv6:
		return e.LongHaulCNPICMPv6
	}
	return false
}

// unicast tells whether a can be a host's address: a forged source must not make the gateway send to a group, to everyone or to
// nobody (RFC 1122 3.2.1.3, RFC 4291 2.5.2, 2.5.3 and 2.7).
func unicast(a packet.Addr) bool {
	if a.Is4() {
		first := uint8(a.Lo >> 24)
		return first != 0 && first != 127 && first < 224
	}
	return a.Hi>>56 != 0xff && (a.Hi != 0 || a.Lo > 1)
}
