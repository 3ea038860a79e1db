package control

import (
	"context"

	rdmahealth "github.com/cnpgate/cnpgate/health"
)

// RDMA is the health of the RDMA connections that the workers follow.
func (g *gateway) RDMA(ctx context.Context) (*rdmahealth.Report, error) { return g.rdma.Report(ctx) }

// watchRDMA logs what is wrong with RDMA connections, until the context ends.
func (g *gateway) watchRDMA(ctx context.Context) {
	if g.started.Dataplane.Followed > 0 {
		g.rdma.Watch(ctx, g.options.Log, nil)
	}
}
