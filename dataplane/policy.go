package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// Policy is what an operator may change while the gateway runs: an immutable snapshot that every burst goes by whole.
type Policy struct {
	Ports []PortPolicy // by port
	Who   *congestion.Policy
	Build cnpgen.Gateway

	ReducePercent   uint16 // Parameter of Rate Reduce (draft-tian 6.1)
	DiscloseMetrics bool   // else Metric Type and Value are 0 (draft-tian 9)

	PerDestination ratelimit.Rate // notifications towards one sender
	PerPort        ratelimit.Rate // notifications out of one port (draft-tian 9: a global limit a port)

	Border *Border // nil: no domain is set
}

// PortPolicy is the part of the policy that belongs to a port's queue.
type PortPolicy struct {
	Thresholds congestion.Thresholds
	PerFlow    ratelimit.Interval // between notifications for one flow that congest this port
}
