package runner

import (
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Phase is a period in which a sender offers frames at one rate.
type Phase struct {
	Rate   int64 // bit/s on the line: each frame counts with preamble, FCS and inter-frame gap
	Length int64 // ns; 0, allowed for the last phase only: without end
}

// Config describes an endpoint. Without RDMA-CM, both ends must be configured alike: QPs and PSN are the same, and FirstQP at one end is
// PeerFirstQP at the other. Times are nanoseconds.
type Config struct {
	Send    bool       // it sends messages as soon as it runs; otherwise it only answers
	Addr    netip.Addr // of this end
	MAC     [6]byte    // of this end
	Peer    netip.Addr // of the other end; optional for an answering endpoint, which uses the first sender's
	PeerMAC [6]byte    // next hop towards the peer; an answering endpoint learns it from the first frame

	QPs         int    // 1 to MaxQPs
	FirstQP     uint32 // number of this end's first QP; the others count upwards
	PeerFirstQP uint32
	PSN         uint32 // starting PSN of both ends' first QP; each further QP's is PSNStep higher
	CMPort      uint16 // RDMA-CM's port, by which connections are set up: PeerFirstQP and PSN are then unused; 0: no RDMA-CM
	Seed        uint64 // of RDMA-CM's random numbers

	Verb    endpoint.Op      // Write, Send or Read
	Ping    bool             // rounds of rping's exchange instead of messages, with buffers of Message bytes; needs RDMA-CM
	Remote  *endpoint.Region // the receiver's memory for Write and Read; nil: a made-up one, which only a receiver of this package accepts
	Message uint32           // bytes of a message
	Window  int64            // most bytes in flight for each QP
	MTU     int              // path MTU: most payload bytes in a packet
	Load    []Phase          // what to offer; an answering endpoint has one phase, without end
	Timeout int64            // a QP retransmits after this time without an acknowledgement
	RTT     int64            // RTT_est of the reaction point

	Trusted []netip.Prefix        // who may send notifications
	Accept  []packet.Notification // formats to obey besides the peer's standard CNP
	// NIC is the reaction point's algorithm, and the formats that it obeys; nil: DCQCN with its published parameters, scaled to the rate.
	NIC   *endpoint.ReactionConfig
	NoCNP bool // CE marks cause no CNP
	// CNPInterval is the least time between two CNPs of a QP.
	CNPInterval int64
	AnyICRC     bool  // data with a wrong ICRC is accepted: less to compute for a receiver that only measures
	Probe       Probe // takes part in what the endpoint sends and receives; nil: nothing does
	UnixTime    int64 // offset from the backend's times to Unix time
}

// Probe measures a peer by means of an endpoint. Its times are the backend's.
type Probe interface {
	// Received sees a frame that the endpoint has processed.
	Received(now int64, h *endpoint.Host, frame []byte, length int)
	// Due is when Next has a frame to send; Next writes it to out, which holds a whole frame, and returns its length, 0 if there is none after all.
	Due() (at int64, any bool)
	Next(now int64, out []byte) (length int)
	// Done reports whether the endpoint may stop.
	Done() bool
}

const (
	// MaxQPs is the greatest number of QPs of an endpoint.
	MaxQPs = 4096
	// PSNStep is how far apart the starting PSNs of an endpoint's QPs are.
	PSNStep = 4096

	ackEvery = 4 // packets: the gateway learns QPs from acknowledgements, too
)

// Line is the rate of the host's NIC: the highest of the load's rates.
func (c *Config) Line() (highest int64) {
	for _, p := range c.Load {
		highest = max(highest, p.Rate)
	}
	return highest
}

// Check refuses invalid values. It doesn't check the MAC address, which may come from the device, so it can be called before a device is
// opened.
func (c *Config) Check() error {
	for _, step := range []func() error{c.checkEnds, c.checkQPs, c.checkLoad} {
		if err := step(); err != nil {
			return err
		}
	}
	config, err := c.host()
	if err == nil {
		_, err = endpoint.New(config)
	}
	return err
}

func (c *Config) checkEnds() error {
	switch {
	case !c.Addr.IsValid():
		return fmt.Errorf("no address of this end is given; expected one such as 10.0.0.1")
	case c.Send && !c.Peer.IsValid():
		return fmt.Errorf("no peer is given; a sender expects the receiver's address")
	case c.Send && c.PeerMAC == [6]byte{}:
		return fmt.Errorf("no MAC address of the peer is given; a sender expects that of the receiver, or of the router towards it")
	case c.Peer.IsValid() && c.Peer.Is4() != c.Addr.Is4():
		return fmt.Errorf("the addresses %v and %v have different IP versions", c.Addr, c.Peer)
	}
	return nil
}

func (c *Config) checkQPs() error {
	last := uint32(c.QPs) - 1
	agreed := c.CMPort == 0 // QP numbers and PSNs are configured
	switch {
	case c.QPs < 1 || c.QPs > MaxQPs:
		return fmt.Errorf("%d QPs; expected 1 to %d", c.QPs, MaxQPs)
	case agreed && (min(c.FirstQP, c.PeerFirstQP) == 0 || max(c.FirstQP, c.PeerFirstQP) > packet.MaxQP-last):
		return fmt.Errorf("the first QPs are %d at this end and %d at the other; expected numbers from 1 to %d for all %d QPs", c.FirstQP, c.PeerFirstQP, packet.MaxQP, c.QPs)
	case agreed && c.PSN > packet.PSNMask:
		return fmt.Errorf("a starting PSN of %d; expected 0 to %d", c.PSN, packet.PSNMask)
	case c.Verb != endpoint.Write && c.Verb != endpoint.Send && c.Verb != endpoint.Read:
		return fmt.Errorf("verb %d is not known; expected Write, Send or Read", c.Verb)
	case c.Ping && (c.CMPort == 0 || c.Message > endpoint.MaxPing):
		return fmt.Errorf("rping's exchange with buffers of %d bytes; expected RDMA-CM, and at most %d bytes", c.Message, endpoint.MaxPing)
	case c.MTU < 1:
		return fmt.Errorf("a path MTU of %d bytes; expected 1 to 9216", c.MTU)
	case c.Timeout <= 0 || c.RTT <= 0 || c.CNPInterval <= 0:
		return fmt.Errorf("a timeout of %d ns, an RTT of %d ns and a CNP interval of %d ns; expected more than 0", c.Timeout, c.RTT, c.CNPInterval)
	case c.Message == 0 || c.Window < int64(c.MTU):
		return fmt.Errorf("messages of %d bytes and a window of %d; expected messages of at least 1 byte and a window of at least a packet of %d", c.Message, c.Window, c.MTU)
	}
	return nil
}

func (c *Config) checkLoad() error {
	if len(c.Load) == 0 {
		return fmt.Errorf("no rate is given")
	}
	for i, p := range c.Load {
		last := i == len(c.Load)-1
		if p.Rate <= 0 || p.Length < 0 || p.Length == 0 && !last {
			return fmt.Errorf("phase %d of the load has %d bit/s for %d ns; expected a rate above 0, and a length for each phase but the last", i+1, p.Rate, p.Length)
		}
	}
	return nil
}

// host makes the configuration of package endpoint.
func (c *Config) host() (endpoint.Config, error) {
	line := c.Line()
	reaction := endpoint.ReactionConfig{Algorithm: endpoint.DCQCN, DCQCN: scaledDCQCN(line, c.RTT)}
	if c.NIC != nil {
		reaction = *c.NIC
	}
	reaction.Trusted, reaction.RTT, reaction.UnixTime = c.Trusted, c.RTT, c.UnixTime
	e := endpoint.Config{
		Addr: packet.AddrFrom(c.Addr), MAC: c.MAC, LineRate: line, Overhead: endpoint.EthernetOverhead, MTU: c.MTU,
		Payload: endpoint.PayloadReal, Window: c.Window, AckEvery: ackEvery, Timeout: c.Timeout,
		CNPInterval: c.CNPInterval, NoCNP: c.NoCNP, AnyICRC: c.AnyICRC, FirstQP: c.FirstQP, Remote: c.Remote, Reaction: reaction,
	}
	if c.CMPort != 0 {
		const spare = 64 // records of connections that ended
		e.CM = endpoint.CMConfig{Enabled: true, Connections: 2*c.QPs + spare, Seed: c.Seed, Rping: !c.Send}
		if !c.Send {
			e.CM.Listen = c.CMPort
		}
	}
	for _, k := range c.Accept {
		r := &e.Reaction
		switch k {
		case packet.FastCNP:
			r.FastCNP = true
		case packet.LongHaulCNPICMPv6:
			r.LongHaulICMPv6 = true
		case packet.LongHaulCNP, packet.PPFC:
			if r.Extension.Extended() && r.Extension != k {
				return e, fmt.Errorf("both long-haul-cnp and ppfc are to be accepted; expected one of them, as both use the same bit of the BTH")
			}
			r.Extension = k
		default:
			return e, fmt.Errorf("format %v can't be accepted; expected fast-cnp, long-haul-cnp, long-haul-cnp-icmpv6 or ppfc", k)
		}
	}
	return e, nil
}

// scaledDCQCN scales DCQCN's published parameters, which are for 40 Gb/s, to a slower line: rates in proportion to the line rate, timers in
// inverse proportion, so that as many packets pass between two steps. The effect of a cut shows after a round-trip time, so cuts are at
// least that far apart.
func scaledDCQCN(line, rtt int64) endpoint.DCQCNConfig {
	const (
		published        = 40_000_000_000 // bit/s
		alphaTimer       = 55_000         // ns
		rateTimer        = 55_000
		decreaseInterval = 50_000
		additive         = 1000 // fraction of the line rate
		hyper            = 100
	)
	c := endpoint.DCQCNConfig{DecreaseInterval: max(decreaseInterval, rtt)}
	if line < published {
		slower := float64(published) / float64(line)
		c.AlphaTimer, c.RateTimer = int64(alphaTimer*slower), int64(rateTimer*slower)
		c.AdditiveIncrease, c.HyperIncrease, c.MinRate = max(1, line/additive), max(1, line/hyper), max(1, line/additive)
	}
	return c
}
