package scenario

import (
	"fmt"
	"math"

	"github.com/cnpgate/cnpgate/internal/splitmix"
)

// A Drawn is a network and its NICs that were drawn: an incast over a WAN, through a gateway with its defaults.
//
// The ranges: rates are those of Ethernet; round trips of 1 to 40 ms are 200 to 8,000 km of fibre; a loop, from the gateway to a sender and back, of 2 to 80 us is
// one within a data centre. NICs' parameters span the published ones, which the files of nics name: of the paper, of ConnectX, and of the HPCC simulator. Any two
// of them may meet.
type Drawn struct {
	Name    string // draw-SEED-NUMBER
	Summary string
	Text    []byte // the scenario
}

// draws are what is drawn from, each as likely as the next.
var draws = struct {
	host, wan, rtt                                                []int // Gbps, Gbps, ms
	timer, counter, additive, hyper, recovery, cut, period, alpha []string
	clamp, least                                                  []string
}{
	host: []int{25, 50, 100, 200, 400}, wan: []int{10, 25, 40, 100, 200, 400}, rtt: []int{1, 2, 5, 10, 20, 40},
	timer: []string{"55us", "100us", "300us", "900us", "1500us"}, counter: []string{"0B", "32KB", "150KB", "1MB", "10MB"},
	additive: []string{"5Mbps", "40Mbps", "100Mbps"}, hyper: []string{"50Mbps", "100Mbps", "400Mbps"}, recovery: []string{"1", "5"},
	cut: []string{"at-once", "period"}, period: []string{"4us", "50us"}, alpha: []string{"1us", "55us"}, clamp: []string{"true", "false"},
	least: []string{"1Mbps", "100Mbps"},
}

// drawnTime is how long the WAN is busy at least, ms, and drawnBytes what it sends at least, four default queues.
const (
	drawnTime  = 40
	drawnBytes = 128_000_000
)

// Draw draws a network. The same seed and number give the same one.
func Draw(seed, number uint64) Drawn {
	r := splitmix.New(seed, number)
	senders, host, wan := 0, 0, 0
	for senders*host*10 < wan*11 || senders == 0 { // else the WAN is no bottleneck
		senders = int(math.Exp2(1+4*r.Float()) + 0.5)
		host, wan = one(&r, draws.host), one(&r, draws.wan)
	}
	rtt, loop := one(&r, draws.rtt), 2*math.Pow(40, r.Float())
	d := &draws
	nic := fmt.Sprintf("rate_timer: %s, byte_counter: %s, additive_increase: %s, hyper_increase: %s, fast_recovery: %s, cut: %s, clamp_target: %s, decrease_interval: %s, alpha_timer: %s, min_rate: %s",
		one(&r, d.timer), one(&r, d.counter), one(&r, d.additive), one(&r, d.hyper), one(&r, d.recovery), one(&r, d.cut), one(&r, d.clamp), one(&r, d.period),
		one(&r, d.alpha), one(&r, d.least))
	name := fmt.Sprintf("draw-%d-%d", seed, number)
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
	return Drawn{name, fmt.Sprintf("%d x %dG into %dG, RTT %d ms, loop %.0f us", senders, host, wan, rtt, loop), []byte(text)}
}

func one[T any](r *splitmix.Rand, of []T) T { return of[r.Below(uint64(len(of)))] }

// FindDrawn is the drawn network with a name, if it is one of a drawn network.
func FindDrawn(name string) (d Drawn, ok bool) {
	var seed, number uint64
	if _, err := fmt.Sscanf(name, "draw-%d-%d", &seed, &number); err != nil {
		return d, false
	}
	d = Draw(seed, number)
	return d, d.Name == name
}
