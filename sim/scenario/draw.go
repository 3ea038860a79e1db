package scenario

import (
	"fmt"
	"math"

	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// A Drawn is a network and its NICs that were drawn: an incast over a WAN, through a gateway with its defaults.
//
// Rates are those of Ethernet; round trips of 1 to 40 ms are 200 to 8,000 km of fibre; a loop, from the gateway to a sender and back, of 2 to 80 us is one within a
// data centre. NICs' parameters are drawn from a set each; any two of them may meet.
type Drawn struct {
	Name    string // SET-SEED-NUMBER
	Summary string
	Text    []byte // the scenario
	WAN     uint64 // rate, bit/s

	senders, bytes int     // bytes of each
	host           uint64  // rate, bit/s
	loop           float64 // ns
}

// NICSet is the parameters that NICs are drawn from, each as likely as the next.
type NICSet struct {
	Name                                                          string
	timer, counter, additive, hyper, recovery, cut, period, alpha []string
	clamp, least                                                  []string
	gain                                                          []string // empty: the paper's
}

// Published and Settable are the sets of NICs.
//
// Published spans what the files of nics name: the paper, ConnectX's defaults, and the HPCC simulator.
//
// Settable also has what operators can set. NVIDIA ("DCQCN CC Parameters", DOCA documentation; Mellanox community DOC-2790; mlxconfig's listings): dce_tcp_rtt 1 to 131071
// us, 1 by default; dce_tcp_g 0 to 1023 of 1024, 1019; rate_reduce_monitor_period from 1 us on, 4; rpg_min_rate 1 Mbps to the line rate, 1; rpg_time_reset 300 us;
// rpg_byte_reset 32767 bytes, older 150, 0 for none; rpg_threshold 1, older 5; rpg_ai_rate 5 Mbps and rpg_hai_rate 50, to the line rate. Intel (irdma's module
// parameters and its README): T 55 us, B 150,000 bytes, F 5, rai_factor 1 and hai_factor 5 segments, rreduce_mperiod 50 us. Of another vendor's driver with
// DCQCN in the NIC (sxe2): T 120 us (1 to 65535), B 131072 bytes (to 16 MB), F 5 (0 to 15), rreduce_mperiod 60 us. Spirent's tester, which imitates NICs: R_AI 5 and R_HAI 40
// Mbps (1 to 100,000), B 2 MB (1 to 4,294), least rate 2 Mbps, alpha's timer 1.55 ms. Broadcom's README and AMD's driver publish no ranges of these.
//
// Not drawn, as the endpoint has no parameter for it: rpg_gd of 10, rpg_min_dec_fac above 50, rate_to_set_on_first_cnp and initial_alpha_value.
var (
	Published = &NICSet{
		Name:  "draw",
		timer: []string{"55us", "100us", "300us", "900us", "1500us"}, counter: []string{"0B", "32KB", "150KB", "1MB", "10MB"},
		additive: []string{"5Mbps", "40Mbps", "100Mbps"}, hyper: []string{"50Mbps", "100Mbps", "400Mbps"}, recovery: []string{"1", "5"},
		cut: []string{"at-once", "period"}, period: []string{"4us", "50us"}, alpha: []string{"1us", "55us"}, clamp: []string{"true", "false"},
		least: []string{"1Mbps", "100Mbps"},
	}
	Settable = &NICSet{
		Name:  "settable",
		timer: []string{"20us", "55us", "120us", "300us", "1500us", "5ms"}, counter: []string{"0B", "32KB", "150KB", "2MB", "10MB", "100MB"},
		additive: []string{"1Mbps", "5Mbps", "40Mbps", "100Mbps", "1Gbps"}, hyper: []string{"10Mbps", "50Mbps", "400Mbps", "2Gbps"}, recovery: []string{"1", "5", "15"},
		cut: []string{"at-once", "period"}, period: []string{"1us", "4us", "50us", "200us"}, alpha: []string{"1us", "55us", "1550us"}, clamp: []string{"true", "false"},
		least: []string{"1Mbps", "100Mbps", "1Gbps"}, gain: []string{"0.003906", "0.004883", "0.0625"},
	}
)

// drawnRates and the others are the networks that are drawn from: Gbps, Gbps and ms.
var drawnRates, drawnWANs, drawnRTTs = []int{25, 50, 100, 200, 400}, []int{10, 25, 40, 100, 200, 400}, []int{1, 2, 5, 10, 20, 40}

// drawnTime is how long the WAN is busy at least, ms, and drawnBytes what it sends at least, four default queues.
const (
	drawnTime  = 40
	drawnBytes = 128_000_000
)

// Draw draws a network and NICs of a set. The same seed and number give the same one, and the same network with each set.
func Draw(d *NICSet, seed, number uint64) Drawn {
	r := splitmix.New(seed, number)
	senders, host, wan := 0, 0, 0
	for senders*host*10 < wan*11 || senders == 0 { // else the WAN is no bottleneck
		senders = int(math.Exp2(1+4*r.Float()) + 0.5)
		host, wan = one(&r, drawnRates), one(&r, drawnWANs)
	}
	rtt, loop := one(&r, drawnRTTs), 2*math.Pow(40, r.Float())
	nic := fmt.Sprintf("rate_timer: %s, byte_counter: %s, additive_increase: %s, hyper_increase: %s, fast_recovery: %s, cut: %s, clamp_target: %s, decrease_interval: %s, alpha_timer: %s, min_rate: %s",
		one(&r, d.timer), one(&r, d.counter), one(&r, d.additive), one(&r, d.hyper), one(&r, d.recovery), one(&r, d.cut), one(&r, d.clamp), one(&r, d.period),
		one(&r, d.alpha), one(&r, d.least))
	if len(d.gain) > 0 {
		nic += ", g: " + one(&r, d.gain)
	}
	name := fmt.Sprintf("%s-%d-%d", d.Name, seed, number)
	const packet = 4096
	bytes := max(wan*drawnTime*1e6/8, drawnBytes) / senders / packet * packet
	text := fmt.Sprintf(`name: %s
length: %dms
topology: {dumbbell: {senders: %d, receivers: %[3]d, rate: %dGbps, delay: %dns, spans: [{rate: %dGbps, delay: %dus, gateway: west}]}}
hosts: {dcqcn: {%s}}
gateways: {west: {}}
responses: [ecn, standard-cnp, long-haul-cnp]
traffic:
`, name, 10*(bytes*senders*8/wan/1e6+rtt), senders, host, int(loop*1000)/4, wan, rtt*500, nic)
	for i := range senders {
		text += fmt.Sprintf("  - incast: {from: %d, to: %d, bytes: %dB}\n", i, senders+i, bytes)
	}
	return Drawn{
		Name: name, Summary: fmt.Sprintf("%d x %dG into %dG, RTT %d ms, loop %.0f us", senders, host, wan, rtt, loop), Text: []byte(text), WAN: uint64(wan) * 1e9,
		senders: senders, bytes: bytes, host: uint64(host) * 1e9, loop: loop * 1000,
	}
}

func one[T any](r *splitmix.Rand, of []T) T { return of[r.Below(uint64(len(of)))] }

// FindDrawn is the drawn network with a name, if it is one of a drawn network.
func FindDrawn(name string) (d Drawn, ok bool) {
	for _, set := range []*NICSet{Published, Settable} {
		var seed, number uint64
		if _, err := fmt.Sscanf(name, set.Name+"-%d-%d", &seed, &number); err != nil {
			continue
		}
		if d = Draw(set, seed, number); d.Name == name {
			return d, true
		}
	}
	return Drawn{}, false
}

// What a drawn network's WAN is to be: full, without loss, not worse than with ECN alone, and with a short queue.
const (
	DrawnFull     = 0.95  // part of the possible goodput
	drawnTolerant = 0.995 // of ECN alone's goodput: not worse
	drawnQueue    = 16e6  // bytes, or what the WAN sends in drawnDelay: the longest short queue
	drawnDelay    = 1.3e-3
)

// short is the length of the longest short queue, bytes.
func (d *Drawn) short() float64 { return max(drawnQueue, drawnDelay*float64(d.WAN)/8) }

// Verdict is how a response does on a drawn network.
type Verdict struct {
	Part   float64 // of the possible goodput
	Full   bool    // it is at least DrawnFull, and nothing is lost
	Worse  bool    // than ECN alone: less goodput, or more packets lost
	Short  bool    // the 99th percentile of the queue is 16 MB or 1.3 ms of the rate at most
	Reason string  // unless it is full
}

// Judge compares a response's outcome with that of ECN alone.
func (d *Drawn) Judge(o, alone *Outcome) Verdict {
	v := Verdict{
		Part:  o.All.Goodput / o.Possible,
		Worse: o.All.Goodput < drawnTolerant*alone.All.Goodput || o.Dropped > alone.Dropped,
		Short: float64(o.Gateway.P99) <= d.short(),
	}
	if v.Full = v.Part >= DrawnFull && o.Dropped == 0; !v.Full {
		v.Reason = o.Shortfall
	}
	return v
}

// shortfall says what keeps a response from filling the WAN without loss, from its samples.
func shortfall(o *Outcome) string {
	s := o.Series
	if len(s.Gateway) == 0 || o.Crossed < 0 {
		return ""
	}
	const overload = 2_000_000 // ns: the first overload has ended
	first := min((o.Crossed+overload)/s.Every, int64(len(s.Gateway)-1))
	last := int64(len(s.Gateway) - 1)
	empty := 0
	for _, depth := range s.Gateway[first:] {
		if depth == 0 {
			empty++
		}
	}
	idle := fmt.Sprintf("queue empty for %d %% of the time", 100*empty/int(last-first+1))
	switch at, all := s.Lost[first], s.Lost[last]; {
	case all == 0:
		return idle
	case 10*at >= 9*all:
		return "lost in the first 2 ms; " + idle
	default:
		return fmt.Sprintf("%d %% lost after 2 ms; %s", 100*(all-at)/all, idle)
	}
}
