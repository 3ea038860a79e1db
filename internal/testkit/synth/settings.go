package synth

import "github.com/cnpgate/cnpgate/internal/transport"

// complete sets defaults, and panics on a mistake.
func (c *Config) complete() {
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
	or(&c.Period, 50_000)
	or(&c.Gap, 1000)
	or(&c.Coalesce, 1)
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
	c.check()
}

// transport makes the configuration of the QPs' transport.
func (c *Config) transport() transport.Config {
	t := transport.Config{MTU: uint32(c.MTU), AckEvery: c.AckEvery, NoAckIfFull: c.AckFull == NoAckIfFull, Timeout: c.Timeouts.Requester,
		Retries: c.Timeouts.Retries, Coalesce: c.Coalesce}
	if c.NAKs.Every {
		t.NAKInterval, t.GoBackAlways = 1, true
	}
	return t
}

func or[T int | int64 | uint8 | uint32 | float64](v *T, ordinary T) {
	if *v == 0 {
		*v = ordinary
	}
}

func (c *Config) check() {
	switch {
	case c.MTU < 256 || c.MTU > 4096 || c.MTU&(c.MTU-1) != 0:
		panic("synth: MTU must be 256, 512, 1024, 2048 or 4096")
	case c.Sizes[0] < 0 || c.Sizes[1] < c.Sizes[0] || c.Sizes[1] > 1<<24:
		panic("synth: Sizes must be a smallest and a largest size of at most 2^24 bytes")
	case c.Connections >= 1<<(taskBits-1):
		panic("synth: too many connections")
	case c.Tenants > 3000:
		panic("synth: at most 3,000 tenants")
	case c.Timeouts.Requester < 0 || c.Timeouts.Manager < 0 || c.Bottleneck.Rate < 0 || c.Bottleneck.Capacity < 0:
		panic("synth: time-outs, and a bottleneck's rate and capacity, must not be negative")
	case c.Near[0]+c.Near[1] >= 1<<23:
		panic("synth: Near must be less than 2^23 PSNs in all")
	case c.CMReject >= 1:
		panic("synth: with CMReject 1 no connection would ever come up")
	}
}
