package control

import (
	"context"
	"time"

	"github.com/cnpgate/cnpgate/control/ipfix"
	rdmahealth "github.com/cnpgate/cnpgate/health"
)

// watchRDMA logs what is wrong with RDMA connections, until the context ends, and gives each report to the exporter.
func (g *gateway) watchRDMA(ctx context.Context) {
	if g.started.Dataplane.Followed == 0 {
		return
	}
	g.rdma.Watch(ctx, g.options.Log, func(r *rdmahealth.Report) {
		if e := g.exporter.Load(); e != nil {
			e.export(r, time.Now())
		}
	})
}

// exporter sends flow records to a collector.
type exporter struct {
	*ipfix.Exporter
	note   func(error)
	failed time.Time
}

// export sends a report. An ICMP error is of an earlier message, and its socket accepts others in between, so only a time without errors means that the collector listens.
func (e *exporter) export(r *rdmahealth.Report, now time.Time) {
	const quiet = 30 * time.Second
	if err := e.Export(r, now); err != nil {
		e.failed = now
		e.note(err)
	} else if now.Sub(e.failed) > quiet {
		e.note(nil)
	}
}

// exportRecords sends flow records to the collector at an address, until the context ends.
func (g *gateway) exportRecords(ctx context.Context, address string, note func(error)) error {
	to, err := ipfix.New(address, 0)
	if err != nil {
		return err
	}
	defer to.Close()
	g.exporter.Store(&exporter{Exporter: to, note: note})
	defer g.exporter.Store(nil)
	note(nil)
	<-ctx.Done()
	return nil
}
