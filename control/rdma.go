package control

import (
	"context"
	"time"

	"github.com/cnpgate/cnpgate/control/ipfix"
	rdmahealth "github.com/cnpgate/cnpgate/health"
)

// RDMA is the health of the RDMA connections that the workers follow.
func (g *gateway) RDMA(ctx context.Context) (*rdmahealth.Report, error) { return g.rdma.Report(ctx) }

// watchRDMA logs what is wrong with RDMA connections, until the context ends.
func (g *gateway) watchRDMA(ctx context.Context) {
	if g.started.Dataplane.Followed == 0 {
		return
	}
	e := exporter{g: g}
	defer e.use("")
	g.rdma.Watch(ctx, g.options.Log, e.export)
}

// exporter sends reports to the collector of the configuration in force.
type exporter struct {
	g       *gateway
	address string
	to      *ipfix.Exporter // nil: none
}

// use changes the collector; "" for none.
func (e *exporter) use(address string) {
	if e.to != nil {
		_ = e.to.Close()
		e.to = nil
	}
	e.address = address
	if address == "" {
		return
	}
	var err error
	if e.to, err = ipfix.New(address, 0); err != nil {
		e.to = nil
		e.g.options.Log.Error().Err(err).Str("address", address).Msg("No flow records are exported: management.ipfix can't be reached. Forwarding continues.")
	}
}

func (e *exporter) export(r *rdmahealth.Report) {
	if address := e.g.running.Load().Management.IPFIX; address != e.address {
		e.use(address)
	}
	if e.to == nil {
		return
	}
	if err := e.to.Export(r, time.Now()); err != nil {
		e.g.options.Log.Debug().Err(err).Str("address", e.address).Msg("Flow records could not be exported.")
	}
}
