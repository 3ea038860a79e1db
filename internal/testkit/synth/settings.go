package synth

import "github.com/cnpgate/cnpgate/internal/transport"

// settings is Config with defaults filled in, and derived values.
type settings struct {
	Config
	lossBefore, lossAfter [2]chance
	reorder, ce, rnr      chance
	sampled, reject       chance
	onPath                chance
	byCM, mra, stale      chance
	fakeREP, refuse       chance
	rnrAgain              chance
	kindLoss              [2]struct{ before, after [2]chance } // of requests and of responses
}

func (c Config) settings() settings {
	or(&c.Hosts[Fabric], 1)
	or(&c.Hosts[WAN], 1)
	or(&c.Connections, 256)
	or(&c.QPBase[Fabric], 0x11)
	or(&c.QPBase[WAN], 0x11)
	or(&c.MTU, 1024)
	if c.Sizes == [2]int{} {
		c.Sizes = [2]int{256, 16384}
	}
	or(&c.Messages, 16)
	or(&c.Window, 64)
	or(&c.DSCP, 26)
	or(&c.Period, 50_000)
	or(&c.Gap, 1000)
	or(&c.Coalesce, 1)
	or(&c.AckDelay, 500)
	or(&c.Delay[Fabric], 5000)
	or(&c.Delay[WAN], 500_000)
	or(&c.ReorderDelay, 10_000)
	or(&c.CNPInterval, 50_000)
	or(&c.Sampled, 1)
	or(&c.ReuseGap, 20_000)
	late := c.PathJitter + c.ConnJitter + c.ReorderDelay
	long := 4*(c.Delay[Fabric]+c.Delay[WAN]+late) + int64(c.Window)*c.Gap*4 + 100_000
	or(&c.Timeouts.Requester, long)
	or(&c.Timeouts.Manager, long)
	or(&c.Timeouts.Retries, 7)
	or(&c.Timeouts.MADs, 8)
	or(&c.Bottleneck.Capacity, 65_536)
	or(&c.Managers.Share, 1)
	or(&c.Managers.MRADelay, 10*c.Timeouts.Manager)
	or(&c.Managers.StaleDelay, 1_000_000_000)
	if c.Near == [2]uint32{} {
		c.Near[1] = 1 << 16
	}
	if c.Transports == (Transports{}) {
		c.Transports.RC = 1
	}
	if c.Mix == (Mix{}) {
		c.Mix.Write = 1
	}
	s := settings{Config: c,
		reorder: chanceOf(c.Reorder), ce: chanceOf(c.CE), sampled: chanceOf(c.Sampled),
		rnr: chanceOf(c.RNR), rnrAgain: chanceOf(c.NAKs.RNRAgain),
		reject: chanceOf(c.CMReject), byCM: chanceOf(c.Managers.Share), mra: chanceOf(c.Managers.MRA), stale: chanceOf(c.Managers.Stale),
		onPath: chanceOf(c.Attack.OnPath), fakeREP: chanceOf(c.Attack.Managers.REP), refuse: chanceOf(c.Attack.Managers.Refused)}
	for end := range 2 {
		s.lossBefore[end], s.lossAfter[end] = chanceOf(c.LossBefore[end]), chanceOf(c.LossAfter[end])
	}
	for i, l := range [2]KindLoss{c.RequestLoss, c.ResponseLoss} {
		for end := range 2 {
			s.kindLoss[i].before[end], s.kindLoss[i].after[end] = chanceOf(l.Before[end]), chanceOf(l.After[end])
		}
	}
	s.check()
	return s
}

// transport makes the configuration of the QPs' transport.
func (s *settings) transport() transport.Config {
	c := transport.Config{MTU: uint32(s.MTU), AckEvery: s.AckEvery, NoAckIfFull: s.AckFull == NoAckIfFull, Timeout: s.Timeouts.Requester,
		Retries: s.Timeouts.Retries, Coalesce: s.Coalesce}
	if s.NAKs.Every {
		c.NAKInterval, c.GoBackAlways = 1, true
	}
	return c
}

func or[T int | int64 | uint8 | uint32 | float64](v *T, ordinary T) {
	if *v == 0 {
		*v = ordinary
	}
}

func (s *settings) check() {
	switch {
	case s.MTU < 256 || s.MTU > 4096 || s.MTU&(s.MTU-1) != 0:
		panic("synth: MTU must be 256, 512, 1024, 2048 or 4096")
	case s.Sizes[0] < 0 || s.Sizes[1] < s.Sizes[0] || s.Sizes[1] > 1<<24:
		panic("synth: Sizes must be a smallest and a largest size of at most 2^24 bytes")
	case s.Connections >= 1<<(taskBits-1):
		panic("synth: too many connections")
	case s.Tenants > 3000:
		panic("synth: at most 3,000 tenants")
	case s.Timeouts.Requester < 0 || s.Timeouts.Manager < 0 || s.Bottleneck.Rate < 0 || s.Bottleneck.Capacity < 0:
		panic("synth: time-outs, and a bottleneck's rate and capacity, must not be negative")
	case s.Near[0]+s.Near[1] >= 1<<23:
		panic("synth: Near must be less than 2^23 PSNs in all")
	case s.CMReject >= 1:
		panic("synth: with CMReject 1 no connection would ever come up")
	}
}
