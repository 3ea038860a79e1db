package rdma

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/health"
)

// Wanted says which end's requests a trace is of. The first connection that fits is traced.
type Wanted struct {
	Requester, Responder     netip.Addr
	RequesterQP, ResponderQP *uint32 // nil: any
	Duration                 time.Duration
}

// Errors of Trace.
var (
	ErrNotFollowed = errors.New("no connection that is followed has these ends: GET /v1/rdma lists them")
	ErrBusy        = errors.New("another connection is traced at present: try again when that has ended")
)

// end is the requester among a connection's ends; -1: it isn't wanted.
func (q *Wanted) end(c *health.Connection) int {
	fits := func(e *health.Endpoint, a netip.Addr, qp *uint32) bool {
		return e.Addr.Netip() == a && (qp == nil || *qp == e.QP)
	}
	for i := range c.End {
		if fits(&c.End[i], q.Requester, q.RequesterQP) && fits(&c.End[i^1], q.Responder, q.ResponderQP) {
			return i
		}
	}
	return -1
}

// Trace records what passes of a connection for a time, or until the recording is full, and makes a trace of it.
func (c *Collector) Trace(ctx context.Context, q Wanted) (*health.Trace, error) {
	select {
	case c.trace <- struct{}{}:
		defer func() { <-c.trace }()
	default:
		return nil, ErrBusy
	}
	for worker := range c.plane.Workers() {
		of, requester := health.Ends{}, -1
		if err := c.read(ctx, worker, func(o *health.Connection) bool {
			of, requester = o.Ends, q.end(o)
			return requester < 0
		}); err != nil {
			return nil, err
		}
		if requester < 0 {
			continue
		}
		r := health.NewRecording(of, q.Duration.Nanoseconds())
		if err := c.record(ctx, worker, r); err != nil {
			return nil, err
		}
		return r.Trace(requester), nil
	}
	return nil, ErrNotFollowed
}

// record lets a worker make a recording.
func (c *Collector) record(ctx context.Context, worker int, r *health.Recording) error {
	begin := &dataplane.HealthRecording{Recording: r}
	if err := c.tell(ctx, worker, begin); err != nil {
		return err
	}
	switch {
	case begin.Busy:
		return ErrBusy
	case !r.Begun(): // it has ended since
		return ErrNotFollowed
	}
	c.wait(ctx, r)
	return c.tell(context.WithoutCancel(ctx), worker, &dataplane.HealthRecording{Recording: r, End: true})
}

// wait waits until a recording has ended, or the context.
func (c *Collector) wait(ctx context.Context, r *health.Recording) {
	const often = 20 * time.Millisecond
	end, look := time.NewTimer(time.Duration(r.Duration)), time.NewTicker(often)
	defer end.Stop()
	defer look.Stop()
	for !r.Full() {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-look.C:
		}
	}
}

func (c *Collector) tell(ctx context.Context, worker int, r *dataplane.HealthRecording) error {
	if !c.ask(ctx, worker, &dataplane.Snapshot{Recording: r}) {
		return silent(worker)
	}
	return nil
}
