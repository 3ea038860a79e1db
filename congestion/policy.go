package congestion

import (
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// Policy decides which senders may be notified, and in which format. It is immutable: workers share one.
type Policy struct {
	// Enabled are the formats that the operator has switched on; none is by default (draft-xiao-fast-cnp-05 5, draft-tian 10.5).
	Enabled          [packet.SentNotifications]bool
	HasIPv4, HasIPv6 bool // whether the gateway has an address of the family to send from
	CNPFromGateway   bool // a standard CNP's source is the gateway's address, not the receiver's
	// Endpoints are the hosts configured to accept notifications, the longest prefix first; nil: none. draft-tian 10.5 forbids a
	// Long-haul CNP to any other host, and Fast CNP is for a controlled domain (draft-xiao-fast-cnp-05 5).
	Endpoints *prefix.Table[Preference]
}

// Reason is why a sender can't be notified. If several formats fail for different reasons, the largest counts, which is nearest to success.
type Reason uint8

const (
	OK               Reason = iota
	NotUnicast              // the source, or the destination, is no host's address
	NoEndpoint              // no configured prefix covers the source
	NothingAccepted         // the source's endpoint accepts no format
	NotEnabled              // none of the accepted formats is enabled
	WrongFamily             // the enabled ones don't exist for the source's IP version
	NoGatewayAddress        // the gateway has no address of the source's IP version, or of its proxy's
	NotExpressible          // the format can't ask for the action
	OptionRefused           // the host has reported that it doesn't know the Fast CNP option
	SourceQPUnknown         // the format names the source QP, and the flow's isn't confirmed
)

// Reasons is the number of reasons, OK included.
const Reasons = 10

var reasonNames = [Reasons]string{"ok", "not-unicast", "no-endpoint", "nothing-accepted", "not-enabled", "wrong-family",
	"no-gateway-address", "action-not-expressible", "option-refused", "source-qp-unknown"}

// String is the reason's name in reports and metrics.
func (r Reason) String() string {
	if r >= Reasons {
		return "unknown"
	}
	return reasonNames[r]
}

// Recent is what a caller of Choose remembers: its last choice, and the hosts for which it is the same. So most senders take no search.
// The zero Recent remembers nothing. It never has to be cleared: it has all that the choice depends on, and a Policy is immutable.
type Recent struct {
	policy *Policy
	around prefix.Range // hosts of one family that the policy's Endpoints don't distinguish
	about  about
	format packet.Notification
	reason Reason
}

// about is what a choice depends on besides the policy and the sender.
type about struct {
	sourceQPKnown, optionRefused bool
	action                       Action
}

// Considered is a format that an endpoint accepts, and why it can't be notified in it now; OK if it can.
type Considered struct {
	Kind   packet.Notification
	Reason Reason
}

// Consider lists the formats that Choose considers, in the order of the endpoint's preference. It is for explanations.
func (p *Policy) Consider(src packet.Addr, sourceQPKnown, optionRefused bool, a Action) (all []Considered) {
	accepts, _ := p.Endpoints.Lookup(src)
	for ; accepts != 0; accepts >>= preferenceBits {
		f := accepts.first()
		all = append(all, Considered{f, p.possible(f, src.Is4(), sourceQPKnown, optionRefused, a)})
	}
	return all
}

// Choose returns the format for a request to src, the sender of congested data: the first in its endpoint's order of preference that is
// enabled and possible. sourceQPKnown: the flow's source QP is confirmed. optionRefused: src has reported that it doesn't know the Fast CNP
// option. The format is valid only with Reason OK.
func (p *Policy) Choose(r *Recent, src *packet.Addr, sourceQPKnown, optionRefused bool, a Action) (packet.Notification, Reason) {
	if !src.Unicast() {
		return 0, NotUnicast
	}
	if this := (about{sourceQPKnown, optionRefused, a}); r.policy != p || r.about != this || !r.around.Has(*src) {
		r.policy, r.about, r.around = p, this, p.Endpoints.Around(*src)
		r.format, r.reason = p.choose(*src, this)
	}
	return r.format, r.reason
}

// choose is Choose for a unicast address.
func (p *Policy) choose(src packet.Addr, about about) (packet.Notification, Reason) {
	accepts, ok := p.Endpoints.Lookup(src)
	if !ok {
		return 0, NoEndpoint
	}
	nearest := NothingAccepted
	for ; accepts != 0; accepts >>= preferenceBits {
		f := accepts.first()
		reason := p.possible(f, src.Is4(), about.sourceQPKnown, about.optionRefused, about.action)
		if reason == OK {
			return f, OK
		}
		nearest = max(nearest, reason)
	}
	return 0, nearest
}

// ToProxy reports whether the proxy at address to can be notified of the congestion that src, a sender behind it, causes (draft-xiao-proxy 5).
// Its reasons are OK, NotUnicast, NotEnabled, NoGatewayAddress for an address of the proxy's IP version, and NotExpressible. What src accepts
// doesn't matter: the proxy knows it.
func (p *Policy) ToProxy(src, to packet.Addr, a Action) Reason {
	if !src.Unicast() {
		return NotUnicast
	}
	return p.possible(packet.ProxyNotification, to.Is4(), false, false, a)
}

// Permits reports whether src, which was notified in format f before, may be asked for an action in that format now: the policy may have changed
// since. Its reasons are OK, NoEndpoint, NothingAccepted if src no longer accepts f, NotEnabled, NoGatewayAddress and NotExpressible.
func (p *Policy) Permits(f packet.Notification, src packet.Addr, a Action) Reason {
	accepts, ok := p.Endpoints.Lookup(src)
	switch {
	case !ok:
		return NoEndpoint
	case !accepts.Accepts(f):
		return NothingAccepted
	}
	return p.possible(f, src.Is4(), true, false, a)
}

// possible reports whether a host of this address family can be notified in format f now: a sender, or its proxy.
func (p *Policy) possible(f packet.Notification, is4, sourceQPKnown, optionRefused bool, a Action) Reason {
	switch {
	case !p.Enabled[f]:
		return NotEnabled
	case !f.Over(is4):
		return WrongFamily // draft-xiao-fast-cnp-05 3: only IPv6; draft-tian 4: the ICMPv6 format is for IPv6 only
	case (p.CNPFromGateway || !f.FromReceiver()) && (is4 && !p.HasIPv4 || !is4 && !p.HasIPv6):
		return NoGatewayAddress
	case !f.Expresses(a):
		return NotExpressible
	case f == packet.FastCNP && optionRefused:
		return OptionRefused
	case f.NamesSourceQP() && !sourceQPKnown:
		return SourceQPUnknown // a guessed one would slow down an innocent flow
	}
	return OK
}
