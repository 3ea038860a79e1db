package endpoint

import (
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
)

// Algorithm is what a reaction point does on notifications that don't prescribe a rate.
type Algorithm uint8

const (
	NoControl Algorithm = iota // nothing: it only obeys instructions (Pause, Rate Reduce, Resume, PPFC)
	DCQCN                      // DCQCN on every CNP
	HPCC                       // HPCC on Fast CNPs with a trace, DCQCN on every other CNP; the lower rate applies
)

// ReactionConfig describes a reaction point. Times are nanoseconds, rates bits per second. A zero field takes the default that its comment
// gives.
type ReactionConfig struct {
	Addr     packet.Addr // of this host
	LineRate int64       // of its NIC: a QP's rate without congestion

	// Trusted is the access list: the addresses that may send notifications (draft-xiao-fast-cnp 5; draft-tian 5.6, 9). If it is empty,
	// only a QP's peer may send standard CNPs.
	Trusted []netip.Prefix

	// Formats other than the standard CNP must be enabled (draft-xiao-fast-cnp 5, draft-tian 10.5). Extension decides whether a CNP with
	// ExtensionBit is a Long-haul CNP or a PPFC notification. If neither is set, it is a standard CNP (draft-tian 5.6).
	FastCNP        bool
	LongHaulICMPv6 bool
	Extension      packet.Notification

	Algorithm Algorithm
	DCQCN     DCQCNConfig
	HPCC      HPCCConfig
	// DCQCN obeys a CNP after ReactionDelay to ReactionDelayMax, ns, as slow NICs do; CNPs that come in that time have no further effect.
	ReactionDelay, ReactionDelayMax int64

	RTT              int64 // RTT_est: round-trip time to the farthest peer; 1 ms
	RecoveryInterval int64 // time after the last Long-haul CNP until a reduced rate begins to rise, by a 100th of LineRate each RTT; 2 * RTT (draft-tian 5.6)
	MaxResume        int64 // most that one Resume adds, bit/s; half of LineRate (draft-tian 9)

	UnixTime int64 // what to add to the caller's times to have Unix time, ns
}

func (c *ReactionConfig) complete() error {
	if c.LineRate <= 0 {
		return fmt.Errorf("LineRate is %d bit/s, expected more than 0", c.LineRate)
	}
	setDefault(&c.RTT, 1_000_000)
	setDefault(&c.RecoveryInterval, 2*c.RTT)
	setDefault(&c.MaxResume, max(1, c.LineRate/2))
	if c.RTT < 0 || c.RecoveryInterval < 0 || c.MaxResume < 0 {
		return fmt.Errorf("RTT is %d ns, RecoveryInterval %d ns and MaxResume %d bit/s, expected more than 0", c.RTT, c.RecoveryInterval, c.MaxResume)
	}
	for _, p := range c.Trusted {
		if !p.IsValid() {
			return fmt.Errorf("an invalid prefix in Trusted; expected one such as 10.0.0.0/8")
		}
	}
	setDefault(&c.ReactionDelayMax, c.ReactionDelay)
	if c.ReactionDelay < 0 || c.ReactionDelayMax < c.ReactionDelay {
		return fmt.Errorf("ReactionDelay is %d ns and ReactionDelayMax %d, expected 0 <= ReactionDelay <= ReactionDelayMax", c.ReactionDelay, c.ReactionDelayMax)
	}
	if err := c.DCQCN.complete(c.LineRate); err != nil {
		return err
	}
	return c.HPCC.complete(c)
}

// recoveryIncrease is one increase of a reduced rate, bit/s.
func (c *ReactionConfig) recoveryIncrease() float64 { return float64(max(1, c.LineRate/100)) }

// maxAge is how much a Long-haul CNP's timestamp may differ from the host's time, ns.
func (c *ReactionConfig) maxAge() int64 { return max(10_000_000, c.RTT) }

// replayWindow is the time in which a Long-haul CNP without a timestamp and with the same content as the last from its source is a replay, ns: senders leave an RTT
// between two (draft-tian 5.5).
func (c *ReactionConfig) replayWindow() int64 { return c.RTT / 2 }

// ReactionPoint processes the notifications that arrive at a host and sets the rates of its QPs. It keeps a Flow for each QP.
type ReactionPoint struct {
	c        ReactionConfig
	decoder  cnpdec.Receiver
	trusted  *prefix.Table[struct{}]
	counters ReactionCounters

	byQP   map[uint32]*Flow
	byPeer map[peerQP]*Flow

	n    cnpdec.Notification
	hops [maxHops]Hop
}

type peerQP struct {
	addr packet.Addr
	qp   uint32
}

// NewReactionPoint makes a reaction point. The error names the field of c that is wrong.
func NewReactionPoint(c ReactionConfig) (*ReactionPoint, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("endpoint: Reaction: %w", err)
	}
	entries := make([]prefix.Entry[struct{}], len(c.Trusted))
	for i, p := range c.Trusted {
		entries[i].Prefix = p
	}
	r := &ReactionPoint{c: c, trusted: prefix.New(entries), byQP: make(map[uint32]*Flow), byPeer: make(map[peerQP]*Flow)}
	r.decoder = cnpdec.Receiver{
		Code: packet.DefaultCodePoints, Extension: c.Extension,
		Trusted:   r.trusts,
		KnownQP:   func(qp uint32) bool { return r.byQP[qp] != nil },
		KnownFlow: func(dst packet.Addr, qp uint32) bool { return r.byPeer[peerQP{dst, qp}] != nil },
	}
	return r, nil
}

// Counters returns what the reaction point has counted.
func (r *ReactionPoint) Counters() *ReactionCounters { return &r.counters }

// Flow returns the flow of a QP, or nil.
func (r *ReactionPoint) Flow(qp uint32) *Flow { return r.byQP[qp] }

// Open adds a QP of this host. If several QPs send to one QP of a peer, notifications that name the peer's QP reach the one that was opened last: a
// connected QP of the peer has only that connection, and the others have ended. If it is closed, they reach the one opened before it.
func (r *ReactionPoint) Open(id FlowID) *Flow {
	f := &Flow{FlowID: id, r: r}
	f.dcqcn.start(&r.c.DCQCN, float64(r.c.LineRate))
	r.byQP[id.QP] = f
	key := peerQP{id.Dst, id.DestQP}
	f.before, r.byPeer[key] = r.byPeer[key], f
	return f
}

// Close removes a QP.
func (r *ReactionPoint) Close(f *Flow) {
	delete(r.byQP, f.QP)
	key := peerQP{f.Dst, f.DestQP}
	last := r.byPeer[key]
	if last == f {
		if r.byPeer[key] = f.before; f.before == nil {
			delete(r.byPeer, key)
		}
		return
	}
	for ; last != nil; last = last.before {
		if last.before == f {
			last.before = f.before
		}
	}
}

// Receive processes a packet that packet.Parse has parsed. If it is a notification that this host accepts, Receive obeys it. It returns the
// decision, and the QP's flow if its rate or pause may have changed, else nil. Each packet is counted once.
func (r *ReactionPoint) Receive(now int64, frame []byte, p *packet.Parsed) (*Flow, Decision) {
	f, d := r.judge(now, frame, p)
	r.counters.Decisions[d]++
	if !d.Accepted() {
		return nil, d
	}
	return f, d
}

// judge checks the packet's sender and destination, then calls the format's own checks.
func (r *ReactionPoint) judge(now int64, frame []byte, p *packet.Parsed) (*Flow, Decision) {
	n := &r.n
	if reason := r.decoder.Decode(frame, p, n); reason != cnpdec.Accepted {
		r.counters.Refused[reason]++
		return nil, Refused
	}
	if n.Dst != r.c.Addr {
		return nil, WrongHost
	}
	switch n.Kind {
	case packet.StandardCNP:
		return r.standardCNP(now, n)
	case packet.FastCNP:
		return r.fastCNP(now, n)
	case packet.LongHaulCNP, packet.LongHaulCNPICMPv6:
		return r.longHaul(now, n)
	case packet.PPFC:
		return r.ppfc(now, n)
	}
	return nil, NotForHosts
}

// standardCNP obeys a CNP from the QP's peer (IBTA Annex A17) or from a node on the access list. A host that isn't configured for Long-haul
// CNPs treats them as standard CNPs (draft-tian 5.6).
func (r *ReactionPoint) standardCNP(now int64, n *cnpdec.Notification) (*Flow, Decision) {
	f := r.byQP[n.BTH.DestQP]
	if n.Src != f.Dst && !r.trusts(n.Kind, n.Src) {
		return nil, NotFromPeer
	}
	return f, f.SlowDown(now)
}

// trusts reports whether an address is on the access list.
func (r *ReactionPoint) trusts(_ packet.Notification, src packet.Addr) bool {
	_, ok := r.trusted.Lookup(src)
	return ok
}

// fastCNP obeys a Fast CNP (draft-xiao-fast-cnp 4): the QP is the one connected to the original destination and its QP.
func (r *ReactionPoint) fastCNP(now int64, n *cnpdec.Notification) (*Flow, Decision) {
	if !r.c.FastCNP {
		return nil, Disabled
	}
	option := &n.Fast.Option
	f := r.byPeer[peerQP{option.Dst, n.BTH.DestQP}]
	if r.c.Algorithm != HPCC || option.Trace.Data == nil {
		return f, f.SlowDown(now)
	}
	hops, ok := decodeTrace(&option.Trace, &r.hops)
	if !ok {
		return nil, WrongTrace
	}
	f.advance(now)
	if !f.hpcc.react(now, &r.c, r.hops[:hops]) {
		return nil, Replayed
	}
	return f, Measured
}

// ppfc obeys a PPFC notification (draft-xz-ppfc 3).
func (r *ReactionPoint) ppfc(now int64, n *cnpdec.Notification) (*Flow, Decision) {
	f := r.byPeer[peerQP{n.PPFC.Dst, n.BTH.DestQP}]
	if n.PPFC.PT == packet.PTResume {
		return f, f.unpause(now)
	}
	if n.PPFC.Duration == 0 {
		return nil, Inconsistent
	}
	return f, f.pause(now, n.PPFC.Duration)
}
