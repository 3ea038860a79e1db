package synth

import (
	"encoding/binary"
	"hash/fnv"
	"testing"
)

// digest is a hash over the headers of every frame of a run, its length, its time and the truth about it.
func digest(c Config) uint64 {
	h := fnv.New64a()
	t := New(c)
	var truth [32]byte
	var head [HeadLen]byte
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		binary.BigEndian.PutUint64(truth[0:], uint64(e.Time))
		binary.BigEndian.PutUint32(truth[8:], uint32(e.Conn))
		binary.BigEndian.PutUint32(truth[12:], e.SourceQP)
		binary.BigEndian.PutUint32(truth[16:], e.Message)
		truth[20] = byte(e.From)
		for i, is := range []bool{e.Forged, e.Resent, e.Lost} {
			truth[21+i] = 0
			if is {
				truth[21+i] = 1
			}
		}
		binary.BigEndian.PutUint32(truth[24:], e.Packet.Len)
		h.Write(truth[:])
		h.Write(head[:Head(&e, head[:])])
	}
	return h.Sum64()
}

// lossy are long connections that survive a loss of 50% each way, half of it before the tap.
func lossy(change func(c *Config)) Config {
	const half = .29289 // lost before the tap, and lost behind it: 1-.29289^2 is .5
	c := Config{Connections: 32, Messages: 20, Requesters: FromBoth, Timeouts: Timeouts{Retries: Forever},
		LossBefore: [2]float64{half, half}, LossAfter: [2]float64{half, half}}
	change(&c)
	return c
}

// TestKnobs: what each knob is for comes up, by least counts of what passes the tap, and no run differs from what it was. So a new knob
// whose value is zero changes nothing: figures and seeds in other tests, and in reports of failures, keep their meaning. The rules and the
// truth hold in those that the tap sees whole, as in TestTruth.
func TestKnobs(t *testing.T) {
	tenants := busy(5)
	tenants.Tenants, tenants.IPv6, tenants.Lifetime, tenants.Messages, tenants.Reuse = 2, true, 3e6, 1000, ReuseShuffled
	off := func(a Attack) Config {
		return Config{CM: true, Connections: 50, Messages: 50, CE: .05, QPNs: QPSequential, Attack: a}
	}
	for _, c := range []struct {
		name   string
		config Config
		want   uint64
		least  map[string]int // nil: the tap sees a part of the run only
	}{
		{"zero", Config{}, 0x73d30adcaefad628, map[string]int{"RC": 20_000}},
		{"busy", busy(1), 0xb04f33a2571128d7, map[string]int{"forged": 1000}},
		{"lockstep", Config{Seed: 7, Schedule: Lockstep, StartPSN: PSNZero, Ports: PortsEqual, QPNs: QPSequential, Jitter: 500, Messages: 4},
			0xeacb55edef9453e1, map[string]int{"RC": 1000}},
		{"tenants", tenants, 0x73ec1466da2c98bd, map[string]int{"MAD 0x15": 10}},
		{"blind attacker", Config{Seed: 9, Connections: 64, Messages: 4, CM: true, NoDREQ: true, Spread: 1e6, Generations: 1, Reuse: ReusePeerHost,
			Hosts: [2]int{2, 2}, Sight: SeeMixed, Attack: Attack{Interval: 4000, ACK: true, CNP: true, CM: true}}, 0x914eda03a6227b1c, nil},
		{"half lost", lossy(func(*Config) {}), 0x91ae1cbe826ceea3, map[string]int{"NAK 3": 500, "resent": 10_000}},
		{"half lost, RDMA-CM", lossy(func(c *Config) { c.CM, c.Timeouts.MADs, c.Mix = true, 100, Mix{Send: 1, Write: 2, Read: 1, Atomic: 1} }),
			0x722c328c99134dce, map[string]int{"MAD 0x10": 40, "read": 100, "atomic": 100}},
		{"long lives", lossy(func(c *Config) {
			c.Connections, c.Messages, c.Lifetime, c.Generations, c.Reuse, c.StartPSN = 4, 1<<30, 5e8, 2, ReusePeerQP, PSNNear
		}), 0x414c42d030543c78, map[string]int{"RC": 10_000}},
		{"lost responses", Config{Connections: 64, Messages: 20, Mix: Mix{Write: 3, Read: 1, Atomic: 1}, Timeouts: Timeouts{Retries: Forever},
			ResponseLoss: KindLoss{After: [2]float64{WAN: .4}}}, 0xa7e155768c32ae1e, map[string]int{"answered again": 1000}},
		{"early time-outs", Config{Connections: 4, MTU: 256, Sizes: [2]int{262_144, 262_144}, Messages: 5, Window: 8192, Gap: 100, Period: 1000,
			Delay: [2]int64{2_000_000, 500_000}, Timeouts: Timeouts{Requester: 500_000, Retries: Forever}},
			0xa59b15a6a9b86887, map[string]int{"back behind the acknowledged": 15}},
		{"bottleneck", Config{Connections: 4, Messages: 20, Sizes: [2]int{65536, 65536}, Window: 256,
			Bottleneck: Bottleneck{Rate: 100_000_000, Capacity: 100_000}, Timeouts: Timeouts{Requester: 50_000_000, Retries: Forever}},
			0x995b32c26dd1f94c, map[string]int{"resent": 1000}},
		{"NAKs for every request", Config{Connections: 32, Messages: 20, Sizes: [2]int{16384, 16384}, Timeouts: Timeouts{Retries: Forever},
			RequestLoss: KindLoss{After: [2]float64{Fabric: .05}}, NAKs: NAKs{Every: true}}, 0x12f6150e82583302, map[string]int{"NAK 3": 3000}},
		{"RNR NAKs again", Config{Connections: 32, Messages: 20, Mix: Mix{Send: 1}, RNR: 1, NAKs: NAKs{RNRAgain: .75}}, 0xafac43ef036cbe20, map[string]int{"NAK 1": 1920}},
		{"AckReq by window", Config{Sizes: [2]int{16384, 16384}, Window: 6, AckEvery: 4, Connections: 32}, 0x2d77abcad9098676, map[string]int{"ACK": 2000}},
		{"AckReq by count", Config{Sizes: [2]int{16384, 16384}, Window: 6, AckEvery: 4, AckFull: NoAckIfFull, Connections: 32}, 0x8a6519ad7f1c82f0, map[string]int{"ACK": 1000}},
		{"coalesced", Config{Sizes: [2]int{100, 1000}, Coalesce: 4, Ports: PortsSpray}, 0x67f2e6498a389b87, map[string]int{"ACK": 500}},
		{"shares of RDMA-CM", Config{CM: true, NoDREQ: true, Managers: Managers{Share: .5}, Generations: 3, Messages: 4, Connections: 100,
			Ports: PortsFlowLabel, StartPSN: PSNNear, Near: [2]uint32{0, 1 << 16}}, 0xe11d8ac03f4851e4, map[string]int{"MAD 0x10": 150}},
		{"MRA, refusals, IPv6", Config{CM: true, IPv6: true, CMReject: .2, Managers: Managers{MRA: .5, MRADelay: 50_000_000}, Connections: 100, Messages: 1,
			Generations: 1}, 0xe78e8221e30418f2, map[string]int{"MAD 0x11": 40, "MAD 0x12": 20}},
		{"MADs again", Config{CM: true, Managers: Managers{Stale: .3, StaleDelay: 100_000_000}, Connections: 50, Messages: 2, Generations: 2, Mix: Mix{Read: 1}},
			0xf64b69b5e22f415d, map[string]int{"MAD 0x10": 180, "MAD 0x15": 180}},
		{"two tags", Config{Tenants: 4, TwoTags: true, Connections: 64, Messages: 2}, 0x9a0e57a603b12bb0, map[string]int{"RC": 800}},
		{"SIDR", Config{CM: true, Transports: Transports{UD: 1}, Messages: 8}, 0x463e85c46dafe88d, map[string]int{"MAD 0x17": 256, "MAD 0x18": 256}},
		{"forged connections", off(Attack{Interval: 50_000, KnowsQPs: true, Managers: ForgedCM{Connect: true, Refused: .5}}), 0xec5e71221b41c88e, map[string]int{"forged": 30}},
		{"foreseen connections", Config{Connections: 50, Messages: 2, Spread: 60e9, Generations: 1, ReuseGap: 40e9, QPNs: QPSequential,
			QPBase: [2]uint32{0x1000, 0x8000}, Attack: Attack{KnowsQPs: true, Managers: ForgedCM{Ahead: 30e9, Recycle: true}}}, 0xd7ace90e8ce1ac0f, map[string]int{"forged": 80}},
		{"forged REPs", off(Attack{KnowsQPs: true, Managers: ForgedCM{REP: 1, KnowsIDs: true}}), 0xf40ebfd37789ae2b, map[string]int{"forged": 10}},
		{"all forged messages", off(Attack{Interval: 10_000, KnowsQPs: true, CM: true, Managers: ForgedCM{All: true, KnowsIDs: true}}),
			0x2d2db5a7f261b3ca, map[string]int{"forged": 150, "MAD 0x11": 5, "MAD 0x19": 5, "MAD 0x1a": 5}},
		{"forged requests", off(Attack{Interval: 10_000, KnowsQPs: true, KnowsPSNs: true, Request: true}), 0xf9efe33b35b4f36c, map[string]int{"forged": 150}},
		{"forged on the path", off(Attack{OnPath: .5, KnowsQPs: true}), 0x93b02f23f5fe7916, map[string]int{"forged": 600}},
		{"late and sampled", Config{Messages: 8, Connections: 64, Sampled: .3, TapStart: 2e5, Duration: 1e6, Sight: SeeForward, Drift: .01, ConnJitter: 5000}, 0x2712835e186519fa, nil},
		{"pairs again, equal PSNs", Config{Reuse: ReusePair, Generations: 3, Hosts: [2]int{3, 3}, Connections: 30, Messages: 2, StartPSN: PSNEqual,
			Ports: PortsAsymmetric}, 0x2dda6a1a6b7cbf51, map[string]int{"RC": 1000}},
		{"borrowed ports", Config{Ports: PortsBorrowed, Messages: 2, Requesters: FromEither, NotECT: true}, 0x6789f3beecdebe2f, map[string]int{"RC": 1000}},
	} {
		if got := digest(c.config); got != c.want {
			t.Errorf("%s: digest %#x, want %#x", c.name, got, c.want)
		}
		if c.least == nil {
			continue
		}
		counts := map[string]int{}
		if err := checkRun(c.config, counts); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for what, n := range c.least {
			if counts[what] < n {
				t.Errorf("%s: %d of %q, want %d: %v", c.name, counts[what], what, n, counts)
			}
		}
	}
}

func run(c Config) (events []Event, conns []Conn) {
	t := New(c)
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		events = append(events, e)
	}
	return events, t.Conns()
}
