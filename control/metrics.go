package control

import (
	"fmt"
	"log"

	"github.com/cnpgate/cnpgate/control/metrics"
)

// openMetrics listens for Prometheus at an address.
func (g *gateway) openMetrics(address string) (*metrics.Server, error) {
	source := metrics.Source{
		Counters: g.Counters, Problems: g.Problems, Build: g.options.Build,
		Hash: func() string { return g.running.Load().File.Hash() }, BGP: g.BGP,
	}
	server, err := metrics.Open(address, source, log.New(g.options.Log, "metrics: ", 0))
	if err != nil {
		return nil, fmt.Errorf("%w; expected an address of this machine, and a port that nothing else listens at", err)
	}
	return server, nil
}
