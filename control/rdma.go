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
	var export func(*rdmahealth.Report)
	if address := g.started.Management.IPFIX; address != "" {
		e, err := ipfix.New(address, 0)
		if err != nil {
			g.options.Log.Error().Err(err).Str("address", address).Msg("No flow records are exported: management.ipfix can't be reached. Forwarding continues.")
		} else {
			defer e.Close()
			export = func(r *rdmahealth.Report) {
				if err := e.Export(r, time.Now()); err != nil {
					g.options.Log.Debug().Err(err).Str("address", address).Msg("Flow records could not be exported.")
				}
			}
		}
	}
	g.rdma.Watch(ctx, g.options.Log, export)
}
